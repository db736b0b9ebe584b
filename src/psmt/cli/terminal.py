"""Output in a terminal: progress while a command runs, then tables and verdicts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from textwrap import wrap
from threading import Event, Lock, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

from psmt.utils.files import shown

if TYPE_CHECKING:
    from rich.console import Console

    from psmt.experiments.contract import Shown
    from psmt.report import Claim, Table

_MARKED = {"best": "[bold]{}[/]", "loses": "[red]{} loses[/]"}
"""Formats of the cells of a table, by their marks."""
_HEAD = 10
"""Largest number of letters of a column's name in one line. Longer names are wrapped."""
_VERDICTS = (14, 17)  # widths of the columns of verdicts in letters
INTERVAL = 15.0
"""Seconds between two progress lines of a stage if stderr is not a terminal, so that a log stays short."""

_SOONEST = 2.0  # seconds of work before which the speed is not measured

LOAD, DRAW = "load libraries", "draw figures"
"""Names of the first and last stage of all commands."""

_CODED = {"dictionaries": 5, "codes": 1}

STAGES: Mapping[str, Mapping[str, float]] = {
    "sweep": {**_CODED, "windows": 9},
    "sweep-null": {**_CODED, "windows of null models": 3},
    "topology": {**_CODED, "windows": 4, "nulls": 9},
    "reconstruction": {**_CODED, "all frames": 1},
    "prediction": {"phases": 10, "more starts": 20, "null (shuffled)": 16, "null (noise)": 16},
    "brain": {
        "predictions": 12,
        "networks": 1,
        "codes": 1,
        "number of states": 2,
        "states": 1,
        "graphs": 3,
        "surrogates": 65,
        "halves of the people": 7,
        "halves of a person": 7,
        "rivals": 7,
    },
}
"""Stages of each experiment in order, with their typical relative times, as measured on built-in films. The progress of
a whole command is estimated from them."""


def planned(experiments: Iterable[str]) -> dict[str, float]:
    """Return the stages of a command that runs these experiments, with their usual relative durations."""
    before = {"sweep": ("sweep", "sweep-null"), "prediction": ("reconstruction", "prediction")}
    names = dict.fromkeys(part for name in experiments for part in before.get(name, (name,)))
    own = {f"{name}: {stage}": share for name in names for stage, share in STAGES.get(name, {}).items()}
    others = {"learn": 1.0, "predict frames": 20.0} if "predict_video" in names else {}
    return {LOAD: 2.0, "read": 2.0, **others, **own, DRAW: 8.0}


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, or as hours, minutes and seconds.

    >>> clock(75.2), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


class Bars:
    """Shows the progress of a command: a bar with stage and remaining time, or lines if there is no terminal.

    The first line or bar appears immediately. Without a terminal, a thread prints a line every `interval` seconds.

    Parameters
    ----------
    title : str
        The command and its source, for the first line.
    plan : mapping
        Stage names in order, with their relative durations. A stage belongs to the first name that it starts with.
    """

    def __init__(self, title: str, plan: Mapping[str, float], interval: float = INTERVAL) -> None:
        self._title, self._plan, self._interval = title, plan, interval
        self._stack = ExitStack()
        self._bar: Any = None
        self._stage, self._stage_began, self._recent = "", perf_counter(), list[tuple[float, float]]()
        self._done = self._total = 0
        self._reached = self._pace = 0.0
        self._lock, self._ended = Lock(), Event()

    def __enter__(self) -> Bars:
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console
            from rich.table import Column

            columns = (
                progress.TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True)),
                progress.BarColumn(bar_width=20),
                progress.TaskProgressColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.fields[left]:>14}"),
            )
            bars = progress.Progress(*columns, console=Console(stderr=True), expand=True)
            self._bar = self._stack.enter_context(bars), bars.add_task(f"{self._title}: {LOAD}", total=1.0, left="")
        else:
            print(f"psmt: {self._title}: {LOAD}, stage 1 of {len(self._plan)}", file=sys.stderr, flush=True)
            ticking = Thread(target=self._tick, name="psmt-progress", daemon=True)
            ticking.start()
            self._stack.callback(ticking.join)
            self._stack.callback(self._ended.set)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report that `done` of `total` pieces of a stage are done."""
        with self._lock:
            now, self._done, self._total = perf_counter(), done, total
            names, shares = list(self._plan), list(self._plan.values())
            place = next((i for i, name in enumerate(names) if stage.startswith(name)), None)
            if place is not None:
                within = (sum(shares[:place]) + shares[place] * done / max(total, 1)) / sum(shares)
                self._reached = max(within, self._reached)
            if stage != self._stage:  # what is done by then was skipped or found in the folder: not counted as speed
                self._stage, self._stage_began, self._mark, self._compiles = stage, now, (now, self._reached), True
            elif now - self._mark[0] > _SOONEST and self._reached > self._mark[1]:
                if not self._compiles or done == total:  # the first task of a stage compiles its kernels
                    self._recent = [*self._recent[-7:], (now - self._mark[0], self._reached - self._mark[1])]
                    self._pace = sum(seconds for seconds, _ in self._recent) / sum(share for _, share in self._recent)
                self._mark, self._compiles = (now, self._reached), False
        if self._bar:
            bars, task = self._bar
            shown = f"{stage} {done:,}/{total:,}" if total > 1 else stage
            bars.update(task, completed=self._reached, description=shown, left=self._left())
        elif done == total:
            told = f"{stage}: {done:,} done in {perf_counter() - self._stage_began:.1f} s"
            print(f"psmt: {told}{self._overall()}", file=sys.stderr, flush=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the bar while results are printed."""
        if self._bar:
            self._bar[0].stop()
        yield
        if self._bar:
            self._bar[0].start()

    def _left(self) -> str:
        """Return the estimated remaining time as text, or an empty text if it is not known."""
        return f"{clock(self._pace * (1 - self._reached))} left" if self._pace and self._reached < 1 else ""

    def _overall(self) -> str:
        """Return the progress of the whole command as text, to be appended to the progress of a stage."""
        return "; ".join(["", f"{self._reached:.0%} of all", *filter(None, [self._left()])]) if self._reached else ""

    def _tick(self) -> None:
        while not self._ended.wait(self._interval):
            age = perf_counter() - self._stage_began
            with self._lock:
                name, done, total = self._stage, self._done, self._total
            if age > self._interval / 2 and done < total:
                # While frames are read, their number may be unknown. The total is then one more than the number done.
                of = f" of {total:,}" if total > done + 1 or total == 1 else ""
                print(f"psmt: {name}: {done:,}{of} after {clock(age)}{self._overall()}", file=sys.stderr, flush=True)


def show(things: Iterable[Shown]) -> None:
    """Print lines, tables and claims. A claim is printed with its two verdicts and the deciding evidence."""
    from rich.console import Console

    from psmt.report import Claim, Table

    in_claims = False
    for thing in things:
        if isinstance(thing, Table):
            show_table(thing)
        elif isinstance(thing, Claim):
            if not in_claims:
                print(f"  {'as measured':<{_VERDICTS[0]}}{'beyond controls':<{_VERDICTS[1]}}claim")
            _show_claim(thing, Console(highlight=False, soft_wrap=True))
        else:
            print(shown(thing, 10_000))  # names of files are in it
        in_claims = isinstance(thing, Claim)


def _show_claim(claim: Claim, console: Console) -> None:
    from rich.markup import escape

    colours = {"yes": "green", "no": "red", "inconclusive": "yellow"}
    told = [own.verdict for own in claim.verdicts.values()]
    cells = [f"[{colours[verdict]}]{verdict:<{width}}[/]" for verdict, width in zip(told, _VERDICTS, strict=False)]
    cells += [" " * width for width in _VERDICTS[len(told) :]]
    size = claim.as_measured.effect or claim.size
    console.print(f"  {''.join(cells)}{escape(claim.text)}{f': [dim]{escape(size)}[/]' if size else ''}")
    measured, *beyond = claim.verdicts.values()
    why = beyond[0].why if beyond and measured.verdict == "yes" else measured.why
    for line in wrap(why, max(console.width - 6, 40)):
        console.print(f"      [dim]{escape(line)}[/]")


def show_table(table: Table) -> None:
    """Print a table of a report. On a narrow screen, its cells are wrapped."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(highlight=False)
    console.print(f"\n[bold]{table.caption}[/]")
    printed = RichTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for i, name in enumerate(table.columns):
        head = "\n".join(wrap(name, _HEAD, break_long_words=False))
        printed.add_column(head, justify="right" if i else "left", no_wrap=not i, overflow="fold")
    for row in table.rows:
        printed.add_row(*(_MARKED.get(cell.mark, "{}").format(cell.text) for cell in row))
    console.print(printed)
