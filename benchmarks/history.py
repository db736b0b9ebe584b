"""Is anything slower than it was?

    python -m benchmarks.history [--within 0.2]

`benchmarks.speed` adds the figures of each run to `benchmarks/history.csv`; this holds the last run of each piece of
work on this machine against the ones before it. What is compared is the ratio to a peer that ran in the same process: a
busy machine slows both. Ends with exit code 1 where a ratio fell by more than ``--within`` of the earlier runs' median.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.page import processor, table

HISTORY = Path(__file__).with_name("history.csv")

EARLIER = 5
"""Runs before the last one that it is held against: enough for a median that one bad run does not move."""

WITHIN = 0.2
"""Single runs on a shared machine differ by up to a fifth (benchmarks/README.md), so that less tells nothing."""


@dataclass(frozen=True)
class Figure:
    """One line of the history: seconds of us and of a peer for the same work, in the same process."""

    date: str
    commit: str
    machine: str
    work: str
    peer: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


@dataclass(frozen=True)
class Change:
    """The last ratio of some work to its peer, and the median of those before it."""

    last: Figure
    before: float
    n_before: int

    @property
    def factor(self) -> float:
        """Below 1: slower than it was, beside the same peer."""
        return self.last.ratio / self.before

    def cells(self, within: float) -> tuple[str, ...]:
        """The line as text; a slowdown is said to be one."""
        last = self.last
        verdict = f"{self.factor:.2f}" + (" slower" if self.factor < 1 - within else "")
        return last.work, last.peer, f"{self.before:.2f} ({self.n_before})", f"{last.ratio:.2f}", verdict, last.commit


HEADER = ("work", "peer", "ratio before (runs)", "now", "now / before", "commit")


def this_machine() -> str:
    """Its processor and number of cores: figures of another one are never compared with its own."""
    return f"{processor()}, {os.cpu_count()} cores"


def this_commit() -> str:
    """The short hash of what is checked out, with ``+`` where tracked files differ from it; ``unknown`` without git."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--exclude=*", "--dirty=+"],
            cwd=HISTORY.parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def append(rows: Iterable[tuple[str, str, float, float]], file: Path = HISTORY) -> None:
    """Add a run, as (work, peer, seconds of ours, of theirs), with its date, commit and machine."""
    now, commit, machine = datetime.now(UTC).isoformat(timespec="seconds"), this_commit(), this_machine()
    new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as opened:
        lines = csv.writer(opened, lineterminator="\n")
        if new:
            lines.writerow(field.name for field in fields(Figure))
        lines.writerows(astuple(Figure(now, commit, machine, *row)) for row in rows)


def read(file: Path = HISTORY) -> list[Figure]:
    """All figures, oldest first."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return [
            Figure(**{**line, "ours": float(line["ours"]), "theirs": float(line["theirs"])})
            for line in csv.DictReader(opened)
        ]


def changes(figures: Sequence[Figure], machine: str) -> list[Change]:
    """What was run at least twice on the machine, held against the median of up to five runs before the last."""
    runs = defaultdict(list)
    for figure in figures:
        if figure.machine == machine:
            runs[figure.work, figure.peer].append(figure)
    return [
        Change(last, statistics.median(figure.ratio for figure in before[-EARLIER:]), len(before[-EARLIER:]))
        for *before, last in runs.values()
        if before
    ]


def main() -> int:
    """Print the table; 1 where something became slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--within", type=float, default=WITHIN, help=f"fall of a ratio that is let pass (default {WITHIN})"
    )
    within = parser.parse_args().within
    found = changes(read(), this_machine())
    if not found:
        print(f"nothing ran twice on this machine ({this_machine()}): python -m benchmarks.speed adds a run")
        return 0
    print(table(HEADER, [change.cells(within) for change in sorted(found, key=lambda change: change.factor)]))
    return int(any(change.factor < 1 - within for change in found))


if __name__ == "__main__":
    sys.exit(main())
