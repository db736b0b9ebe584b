"""Errors around all changes, and statistics of them: errors before and after, and the time to recover."""

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
"""Names of the methods in reports by their names in files, in the order of `ChangesResult.errors`."""

RECOVERED = 1.5
"""An error has recovered when its mean over `STEADY` frames is at most this many times its mean before the change."""

STEADY = 5
"""Number of frames over which an error must have recovered."""


class ChangeRow(NamedTuple):
    """One line of changes.csv."""

    kind: str
    place: int
    method: str
    offset: int
    """Number of frames since the frame of the change."""
    mse: float
    surprise: float
    """Surprise of PSMT after the frame was received; NaN for other methods."""
    cut: float


class Median(NamedTuple):
    """A median over places with its 95% interval, which is NaN if there are too few places."""

    median: float
    low: float
    high: float


class MethodSummary(NamedTuple):
    """Effect of one kind of change on one method."""

    method: str
    level: Median
    """Mean MSE before the change."""
    after: Median
    """Mean MSE after the frame of the change, without this frame, because it cannot be predicted."""
    recovery: Median
    """Time to recover, see `recovery_time`."""
    lost: float
    """Share of the places where the error does not recover."""


@dataclass(frozen=True, kw_only=True)
class ChangesResult:
    """Errors around all changes."""

    settings: ChangesSettings
    places: tuple[int, ...]
    errors: Array
    """MSE (n_places, n_kinds, n_methods, before + horizon)."""
    surprise: Array
    """Surprise of PSMT (n_places, n_kinds, before + horizon)."""
    cut: Array
    """Whether PSMT classified the frame as a cut, 0 or 1 (n_places, n_kinds, before + horizon)."""

    def errors_of(self, kind: str, method: str) -> Array:
        """Return the MSE (n_places, before + horizon) of a method around one kind of change."""
        errors: Array = self.errors[:, list(KINDS).index(kind), list(METHODS).index(method)]
        return errors

    def after(self, kind: str, method: str) -> Array:
        """Return the mean MSE (n_places,) after the frame of the change."""
        mean: Array = self.errors_of(kind, method)[:, self.settings.before + 1 :].mean(axis=1)
        return mean

    def detected(self, kind: str) -> float:
        """Return the share of the places where PSMT classified the frame of the change as a cut."""
        return float(self.cut[:, list(KINDS).index(kind), self.settings.before].mean())

    def false_alarms(self) -> float:
        """Return the share of the frames of the unchanged film that PSMT classified as cuts."""
        return float(self.cut[:, list(KINDS).index("none")].mean())

    def summaries(self, kind: str) -> list[MethodSummary]:
        """Return the effect of a kind of change on each method. The least error after the change comes first."""
        before, horizon = self.settings.before, self.settings.horizon
        found = []
        for method in METHODS:
            errors = self.errors_of(kind, method)
            times = np.array([recovery_time(own, before) for own in errors])
            level = median_interval(errors[:, :before].mean(axis=1))
            after, recovery = median_interval(self.after(kind, method)), median_interval(times)
            found.append(MethodSummary(method, level, after, recovery, float(np.mean(times >= horizon))))
        return sorted(found, key=lambda summary: summary.after.median)

    def rows(self) -> Iterator[ChangeRow]:
        """Yield the lines of changes.csv."""
        unknown = np.full(self.cut.shape[2], np.nan)
        for p, place in enumerate(self.places):
            for k, kind in enumerate(KINDS):
                for m, method in enumerate(METHODS):
                    own = (self.surprise[p, k], self.cut[p, k]) if method == "psmt" else (unknown, unknown)
                    for i, values in enumerate(np.transpose([self.errors[p, k, m], *own]).tolist()):
                        yield ChangeRow(kind, place, method, i - self.settings.before, *values)

    def summary(self) -> dict[str, Any]:
        """Return the numbers for summary.json."""
        return {
            kind: {
                "found": self.detected(kind),
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
    """Return the number of frames after a change until errors (before + horizon,) recover; `horizon` if they do not.

    >>> recovery_time(np.array([1.0, 1.0, 9.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 2)
    3
    """
    after = errors[before:]
    limit = RECOVERED * errors[:before].mean()
    for offset in range(1, len(after) - STEADY + 1):
        if after[offset : offset + STEADY].mean() <= limit:
            return offset
    return len(after)


def median_interval(values: Array, *, level: float = 0.95) -> Median:
    """Return the median of independent values (n,), with a distribution-free interval from order statistics.

    >>> median_interval(np.arange(11.0))
    Median(median=5.0, low=1.0, high=9.0)
    """
    ordered, n = np.sort(values), len(values)
    rank = int(binom.ppf(0.5 * (1 - level), n, 0.5)) - 1
    if rank < 0:
        return Median(float(np.median(values)), float("nan"), float("nan"))
    return Median(float(np.median(values)), float(ordered[rank]), float(ordered[n - 1 - rank]))
