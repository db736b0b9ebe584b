"""Bars with the time left while stderr is a terminal, and a line per stage where it is none."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from time import perf_counter
from typing import Any


class Bars:
    """Progress of stages that follow each other, see `psmt.types`."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._began: dict[str, float] = {}

    def __enter__(self) -> Bars:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            columns = (
                TextColumn("{task.description:27}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
            self._bars = self._stack.enter_context(Progress(*columns, console=Console(stderr=True)))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tell that `done` of `total` pieces of a stage are done."""
        if stage not in self._began:
            self._began[stage] = perf_counter()
            if self._bars:
                self._tasks[stage] = self._bars.add_task(stage, total=total)
        if self._bars:
            self._bars.update(self._tasks[stage], completed=done, total=total)
        if done == total:
            began = self._began.pop(stage)
            if not self._bars:
                taken = perf_counter() - began
                print(f"psmt: {stage}: {done:,} done in {taken:.1f} s", file=sys.stderr, flush=True)
