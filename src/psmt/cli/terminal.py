"""What is shown in a terminal: progress while a command works, tables and verdicts at its end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from textwrap import wrap
from threading import Event, Lock, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psmt.experiments.contract import Shown
    from psmt.report import Cell, Claim, Table

_GAP = 2
"""Spaces between columns."""
_HEAD = 13
"""Letters of a column's name in one line; longer names are wrapped."""
_MARKS = {"loses": " loses"}
"""Text that is added to a cell."""
INTERVAL = 15.0
"""Seconds between two lines on one stage if stderr is not a terminal: a log stays short, and does not seem to hang."""


class Bars:
    """Progress of successive stages, see `psmt.types`: bars with the time left, or lines if stderr is not a terminal.

    A thread prints a line every `interval` seconds, also while one piece of a stage takes longer than that.
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
        """Report that `done` of `total` pieces of a stage are done."""
        if self._bars:
            if stage not in self._tasks:
                self._tasks[stage] = self._bars.add_task(stage, total=total)
            self._bars.update(self._tasks[stage], completed=done, total=total)
            return
        with self._lock:
            # Of unfinished stages the last one is working; a stage that begins again is counted anew.
            known = self._stages.pop(stage, None) or _Stage(stage, done)
            known.done, known.total = done, total
            if done < total:
                self._stages[stage] = known
        if done == total:
            _say(f"{stage}: {done:,} done in {known.age:.1f} s")

    def _tick(self) -> None:
        while not self._ended.wait(self._interval):
            with self._lock:
                lines = [stage.line() for stage in list(self._stages.values())[-1:] if stage.age > self._interval / 2]
            for line in lines:
                _say(line)


class _Stage:
    """Progress of a stage, and when it began."""

    def __init__(self, name: str, done: int) -> None:
        self.name, self.began = name, perf_counter()
        self.found = self.done = done
        """Pieces that an earlier run left do not count for the pace."""
        self.total = 0

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return perf_counter() - self.began

    def line(self) -> str:
        """How far it is, how long it took, and how long it will take."""
        from psmt.report.numbers import seconds

        taken, new = self.age, self.done - self.found
        line = f"{self.name}: {self.done:,} of {self.total:,} after {seconds(taken)}"
        # While frames are read their number may be unknown: the total is one ahead.
        if new > 0 and self.total > self.done + 1:
            line += f", about {seconds(taken * (self.total - self.done) / new)} left"
        return line


def _say(line: str) -> None:
    print(f"psmt: {line}", file=sys.stderr, flush=True)


# Results


def show(things: Iterable[Shown]) -> None:
    """Print tables, claims and lines."""
    from psmt.report import Claim, Table

    for thing in things:
        if isinstance(thing, Table):
            show_table(thing)
        elif isinstance(thing, Claim):
            show_claim(thing)
        else:
            print(thing)


def show_table(table: Table) -> None:
    """Print a table of a report; on a narrow screen, its most important columns."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(highlight=False)
    kept = fitting_columns(table, console.width)
    console.print(f"\n[bold]{table.caption}[/]")
    shown = RichTable(box=SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False)
    for i in kept:
        head = "\n".join(_head(table.columns[i]))
        shown.add_column(head, justify="left" if i == 0 else "right", no_wrap=True, overflow="fold")
    for row in table.rows:
        shown.add_row(*(_marked(row[i]) for i in kept))
    console.print(shown)
    left_out = [name for i, name in enumerate(table.columns) if i not in kept]
    if left_out:
        console.print(f"[dim]No room here for: {', '.join(left_out)}. All columns are in report.html.[/]")


def fitting_columns(table: Table, width: int) -> list[int]:
    """Indices of the most important columns that fit into `width` letters, in their order.

    The first column, which names the rows, is always there.
    """
    room, kept = width - 2, []
    for i in dict.fromkeys([0, *table.key, *range(len(table.columns))]):
        needed = _width(table.columns[i], [row[i] for row in table.rows]) + _GAP
        if i == 0 or needed <= room:
            kept.append(i)
            room -= needed
        elif i in table.key:
            # A less important column does not take its place.
            break
    return sorted(kept)


def show_claim(claim: Claim) -> None:
    """Print a claim in one line, with the size of its effect."""
    from rich.console import Console

    colour = {"holds": "green", "does not hold": "red"}.get(claim.verdict, "yellow")
    size = f" [dim]({claim.size})[/]" if claim.size else ""
    Console(highlight=False, soft_wrap=True).print(f"  [{colour}]{claim.verdict:15}[/] {claim.text}{size}")


def _head(name: str) -> list[str]:
    """The name of a column, wrapped."""
    return wrap(name, _HEAD, break_long_words=False) or [""]


def _width(name: str, cells: Sequence[Cell]) -> int:
    from rich.cells import cell_len

    texts = [*_head(name), *(cell.text + _MARKS.get(cell.mark, "") for cell in cells)]
    return max(cell_len(text) for text in texts)


def _marked(cell: Cell) -> str:
    return {"best": f"[bold]{cell.text}[/]", "loses": f"[red]{cell.text}{_MARKS['loses']}[/]"}.get(cell.mark, cell.text)
