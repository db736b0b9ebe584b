"""Bars with the time left while stderr is a terminal, and plain lines at intervals where it is none."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any

INTERVAL = 15.0
"""Seconds between two lines on one stage where stderr is no terminal: a log stays short, and nobody thinks it hangs."""


class Bars:
    """Progress of stages that follow each other, see `psmt.types`.

    Where stderr is no terminal, a thread tells every `interval` seconds how far the stage is, also while one of its
    pieces takes longer than that.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self._stack = ExitStack()
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._interval = interval
        self._stages: dict[str, _Stage] = {}
        self._lock, self._ended = Lock(), Event()

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
        else:
            ticking = Thread(target=self._tick, name="psmt-progress", daemon=True)
            ticking.start()
            self._stack.callback(ticking.join)
            self._stack.callback(self._ended.set)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tell that `done` of `total` pieces of a stage are done."""
        if self._bars:
            if stage not in self._tasks:
                self._tasks[stage] = self._bars.add_task(stage, total=total)
            self._bars.update(self._tasks[stage], completed=done, total=total)
            return
        with self._lock:
            # Of stages under way the last is the one that works; one that begins anew is counted anew.
            known = self._stages.pop(stage, None) or _Stage(stage, done)
            known.done, known.total = done, total
            if done < total:
                self._stages[stage] = known
        if done == total:
            _say(f"{stage}: {done:,} done in {known.age:.1f} s")

    def _tick(self) -> None:
        while not self._ended.wait(self._interval):
            with self._lock:
                lines = [stage.told() for stage in list(self._stages.values())[-1:] if stage.age > self._interval / 2]
            for line in lines:
                _say(line)


class _Stage:
    """How far a stage is, and since when."""

    def __init__(self, name: str, done: int) -> None:
        self.name, self.began = name, perf_counter()
        self.found = self.done = done
        """What was there at the beginning, from an earlier run, says nothing of the pace."""
        self.total = 0

    @property
    def age(self) -> float:
        """Seconds that it took so far."""
        return perf_counter() - self.began

    def told(self) -> str:
        """How far it is, how long it took, and how long it will take."""
        from psmt.report.numbers import seconds

        taken, new = self.age, self.done - self.found
        line = f"{self.name}: {self.done:,} of {self.total:,} after {seconds(taken)}"
        # While frames are read nobody may know how many there are: the total runs ahead by one.
        if new > 0 and self.total > self.done + 1:
            line += f", about {seconds(taken * (self.total - self.done) / new)} left"
        return line


def _say(line: str) -> None:
    print(f"psmt: {line}", file=sys.stderr, flush=True)
