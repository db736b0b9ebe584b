"""What is shown in a terminal: progress while a command works, tables and verdicts at its end."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from textwrap import wrap
from threading import Event, Lock, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psmt.experiments.contract import Shown
    from psmt.report import Cell, Table

_GAP = 2
"""Spaces between columns."""
_HEAD = 13
"""Letters of a column's name in one line; longer names are wrapped."""
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
            from rich import progress
            from rich.console import Console

            columns = (
                progress.TextColumn("{task.description:27}"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("left"),
                progress.TimeRemainingColumn(),
            )
            self._bars = self._stack.enter_context(progress.Progress(*columns, console=Console(stderr=True)))
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
            print(f"psmt: {stage}: {done:,} done in {known.age:.1f} s", file=sys.stderr, flush=True)

    def _tick(self) -> None:
        while not self._ended.wait(self._interval):
            with self._lock:
                lines = [stage.line() for stage in list(self._stages.values())[-1:] if stage.age > self._interval / 2]
            for line in lines:
                print(f"psmt: {line}", file=sys.stderr, flush=True)


@dataclass
class _Stage:
    """Progress of a stage, and when it began."""

    name: str
    found: int
    """Pieces that an earlier run left; they do not count for the pace."""
    done: int = 0
    total: int = 0
    began: float = field(default_factory=perf_counter)

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


# Results


def show(things: Iterable[Shown]) -> None:
    """Print tables, lines, and claims in one line each with the size of the effect."""
    from rich.console import Console

    from psmt.report import Claim, Table

    for thing in things:
        if isinstance(thing, Table):
            show_table(thing)
        elif isinstance(thing, Claim):
            colour = {"holds": "green", "does not hold": "red"}.get(thing.verdict, "yellow")
            size = f" [dim]({thing.size})[/]" if thing.size else ""
            Console(highlight=False, soft_wrap=True).print(f"  [{colour}]{thing.verdict:15}[/] {thing.text}{size}")
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
    from rich.text import Text

    room, kept = width - 2, []
    for i in dict.fromkeys([0, *table.key, *range(len(table.columns))]):
        texts = [*_head(table.columns[i]), *(_marked(row[i]) for row in table.rows)]
        needed = max(Text.from_markup(text).cell_len for text in texts) + _GAP
        if i == 0 or needed <= room:
            kept.append(i)
            room -= needed
        elif i in table.key:
            # A less important column does not take its place.
            break
    return sorted(kept)


def _head(name: str) -> list[str]:
    """The name of a column, wrapped."""
    return wrap(name, _HEAD, break_long_words=False) or [""]


def _marked(cell: Cell) -> str:
    return {"best": f"[bold]{cell.text}[/]", "loses": f"[red]{cell.text} loses[/]"}.get(cell.mark, cell.text)
