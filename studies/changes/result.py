"""Errors around all changes, and what is made of them: level before, error after, time to recover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from psmt.types import Array
from studies.changes.settings import KINDS, ChangesSettings

METHODS = {
    "psmt": "PSMT",
    "psmt_ignore": "PSMT, cuts ignored",
    "psmt_gain": "PSMT, learned gain",
    "psmt_hold": "PSMT, hold",
    "baseline1": "Baseline 1",
    "baseline2": "Baseline 2",
    "copy": "copy last frame",
    "copy_code": "copy last code",
    "mean": "mean of the past",
    "ridge": "ridge regression",
}
"""Methods by their name in files, with the name for people, in the order of the errors."""

BACK = 1.5
"""An error is back when it is at most so many times its level before the change .."""

STEADY = 5
"""... as a mean over so many frames: one lucky frame is no recovery."""


class Row(NamedTuple):
    """One line of changes.csv."""

    kind: str
    place: int
    method: str
    offset: int
    """Frames since the change; it comes with 0."""
    mse: float
    surprise: float
    """What the method says of the frame once it has seen it: of PSMT only."""
    cut: float


class Median(NamedTuple):
    """A median over places, and the order statistics that its true value lies between, 95 times in 100.

    Too few places for that have NaN at both ends.
    """

    median: float
    low: float
    high: float


class Summary(NamedTuple):
    """What one kind of change did to one method."""

    kind: str
    method: str
    level: Median
    """Mean MSE of the frames before the change."""
    after: Median
    """Mean MSE of the frames after the one that it came with, which nobody can foresee."""
    recovery: Median
    """Frames until the error is back, see `recovery_time`."""
    lost: float
    """Share of the places where it is not back at the end."""


@dataclass(frozen=True, kw_only=True)
class ChangesResult:
    """Errors around all changes."""

    settings: ChangesSettings
    places: tuple[int, ...]
    errors: Array
    """MSE (n_places, n_kinds, n_methods, before + horizon)."""
    surprise: Array
    """PSMT's, (n_places, n_kinds, before + horizon)."""
    cut: Array
    """Whether PSMT took the frame for a cut, as 0 or 1, likewise."""

    def errors_of(self, kind: str, method: str) -> Array:
        """MSE (n_places, before + horizon)."""
        found: Array = self.errors[:, list(KINDS).index(kind), list(METHODS).index(method)]
        return found

    def after(self, kind: str, method: str) -> Array:
        """Mean MSE (n_places,) of the frames after the one that the change came with."""
        mean: Array = self.errors_of(kind, method)[:, self.settings.before + 1 :].mean(axis=1)
        return mean

    def recovery(self, kind: str, method: str) -> Array:
        """Frames (n_places,) until the error is back; `horizon` where it is not."""
        return np.array([recovery_time(errors, self.settings.before) for errors in self.errors_of(kind, method)])

    def found(self, kind: str) -> float:
        """Share of the places where PSMT took the frame of the change for a cut."""
        return float(self.cut[:, list(KINDS).index(kind), self.settings.before].mean())

    def false_alarms(self) -> float:
        """Share of the frames of the film as it is that PSMT took for a cut."""
        return float(self.cut[:, list(KINDS).index("none")].mean())

    def summaries(self, kind: str) -> list[Summary]:
        """What a kind of change did to each method, least error after it first."""
        before, horizon = self.settings.before, self.settings.horizon
        found = []
        for method in METHODS:
            level = self.errors_of(kind, method)[:, :before].mean(axis=1)
            times = self.recovery(kind, method)
            lost = float(np.mean(times >= horizon))
            after = median_interval(self.after(kind, method))
            found.append(Summary(kind, method, median_interval(level), after, median_interval(times), lost))
        return sorted(found, key=lambda summary: summary.after.median)

    def rows(self) -> Iterator[Row]:
        """Lines of changes.csv."""
        for p, place in enumerate(self.places):
            for k, kind in enumerate(KINDS):
                for m, method in enumerate(METHODS):
                    told = (self.surprise[p, k], self.cut[p, k]) if method == "psmt" else None
                    for i, error in enumerate(self.errors[p, k, m].tolist()):
                        own = (float("nan"),) * 2 if told is None else (float(told[0][i]), float(told[1][i]))
                        yield Row(kind, place, method, i - self.settings.before, error, *own)

    def summary(self) -> dict[str, Any]:
        """Numbers for programs."""
        return {
            kind: {
                "found": self.found(kind),
                "methods": {
                    one.method: {
                        "level": one.level.median,
                        "after": one.after._asdict(),
                        "recovery": one.recovery._asdict(),
                        "lost": one.lost,
                    }
                    for one in self.summaries(kind)
                },
            }
            for kind in KINDS
        }


def recovery_time(errors: Array, before: int) -> int:
    """Frames after a change until errors (before + horizon,) are back at their level; all of them where they are not.

    >>> recovery_time(np.array([1.0, 1.0, 9.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 2)
    3
    """
    after = errors[before:]
    limit = BACK * errors[:before].mean()
    for offset in range(1, len(after) - STEADY + 1):
        if after[offset : offset + STEADY].mean() <= limit:
            return offset
    return len(after)


def median_interval(values: Array, *, level: float = 0.95) -> Median:
    """Median of independent values (n,), with an interval by order statistics, which knows no distribution.

    >>> median_interval(np.arange(11.0))
    Median(median=5.0, low=1.0, high=9.0)
    """
    ordered, n = np.sort(values), len(values)
    rank = int(binom.ppf(0.5 * (1 - level), n, 0.5)) - 1
    if rank < 0:
        return Median(float(np.median(values)), float("nan"), float("nan"))
    return Median(float(np.median(values)), float(ordered[rank]), float(ordered[n - 1 - rank]))
