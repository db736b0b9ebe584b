"""A number held against the same number where the effect is not there: size first, then how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psmt.evaluation import Interval
from psmt.evaluation.missing_numbers import plain
from psmt.types import Array

LEVEL = 0.05
"""Largest p-value that counts against chance."""


@dataclass(frozen=True)
class Measured:
    """A number of the film, and the same number of each draw of a null."""

    value: float
    """NaN where the film does not have it."""
    null: Array
    """(n_draws,)"""

    @property
    def p_value(self) -> float:
        """(1 + number of draws that are at least as large) / (1 + n_draws)."""
        at_least = int(np.count_nonzero(self.null >= self.value))
        return (1 + at_least) / (1 + len(self.null)) if np.isfinite(self.value) else np.nan

    def beyond(self) -> Interval:
        """The value less the null's: by the mean draw, and by the draws that leave 1 in 20 above and below.

        If the null is true the film is one of n + 1 equals, so that 0 lies below the interval in one case of 20, and
        above it in one, whatever the distribution. With 19 draws the bounds are by the largest and the smallest.
        """
        beside = int(LEVEL * (len(self.null) + 1))
        if not np.isfinite(self.value):
            return Interval(np.nan, -np.inf, np.inf)
        less = self.value - np.sort(self.null)
        if beside == 0:
            return Interval(float(less.mean()) if len(less) else np.nan, -np.inf, np.inf)
        return Interval(float(less.mean()), float(less[-beside]), float(less[beside - 1]))

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        mean, low, high = self.beyond()
        return {
            "value": plain(self.value),
            "null": plain(float(self.null.mean())) if len(self.null) else None,
            "draws": len(self.null),
            "beyond": {"mean": plain(mean), "low": plain(low), "high": plain(high)},
            "p_value": plain(self.p_value),
        }
