"""Bars with the time left while stderr is a terminal, and a line per stage where it is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

Report = Callable[[int, int | None], None]
"""Called with how much of a stage is done, and how much there is if that is known."""


class Bars:
    """Progress of stages that follow each other, see `psmt.types`.

    Parameters
    ----------
    log : bool
        Write a line at the end of each stage where there is no terminal to draw on.
    """

    def __init__(self, *, log: bool = True) -> None:
        self._log = log
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

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Tell that `done` of `total` pieces of a stage are done."""
        if stage not in self._began:
            self._began[stage] = perf_counter()
            if self._bars:
                self._tasks[stage] = self._bars.add_task(stage, total=total)
        if self._bars:
            self._bars.update(self._tasks[stage], completed=done, total=total)
        if done == total:
            began = self._began.pop(stage)
            if self._log and not self._bars:
                taken = perf_counter() - began
                print(f"psmt: {stage}: {done:,} done in {taken:.1f} s", file=sys.stderr, flush=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[Report]:
        """A stage that tells how much is done by calling what this yields, and ends here."""
        last = [0, 1]

        def report(done: int, total: int | None) -> None:
            last[:] = [done, total or done]
            if done != total:
                self(name, done, total)

        report(0, None)
        yield report
        self(name, last[1], last[1])  # a stage that told nothing is done all the same
