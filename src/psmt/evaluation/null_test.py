"""Tests against a null distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psmt.evaluation import Interval
from psmt.types import Array

LEVEL = 0.05
"""Significance level: the largest p-value that speaks against chance."""


@dataclass(frozen=True, eq=False)
class NullTest:
    """A statistic and draws of its null distribution."""

    value: float
    """NaN if the statistic is not defined."""
    null: Array
    """(n_draws,)"""

    @property
    def null_mean(self) -> float:
        """Mean of the draws; NaN without any."""
        return float(self.null.mean()) if len(self.null) else np.nan

    @property
    def p_value(self) -> float:
        """(1 + number of draws that are at least as large) / (1 + n_draws)."""
        at_least = int(np.count_nonzero(self.null >= self.value))
        return (1 + at_least) / (1 + len(self.null)) if np.isfinite(self.value) else np.nan

    @cached_property
    def excess(self) -> Interval:
        """The statistic less the mean draw, with a 90% interval from the draws.

        The bounds are the statistic less the draws that leave 1 in 20 above and below. Under the null hypothesis the
        statistic is exchangeable with the draws, so that 0 lies below the interval in 1 of 20 cases and above it in 1
        of 20, for any distribution. With 19 draws the bounds come from the largest and the smallest one.
        """
        outside = int(LEVEL * (len(self.null) + 1))
        if not np.isfinite(self.value):
            return Interval(np.nan, -np.inf, np.inf)
        less = self.value - np.sort(self.null)
        if outside == 0:
            return Interval(float(less.mean()) if len(less) else np.nan, -np.inf, np.inf)
        return Interval(float(less.mean()), float(less[-outside]), float(less[outside - 1]))

    def summary(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "value": self.value,
            "null": self.null_mean,
            "draws": len(self.null),
            "beyond": self.excess._asdict(),
            "p_value": self.p_value,
        }
