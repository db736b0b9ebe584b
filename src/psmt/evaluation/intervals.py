"""Confidence intervals of means of dependent values: the block bootstrap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psmt.utils.constraints import check_count, check_real
from psmt.utils.validation import real_array

N_RESAMPLES = 2000
"""Number of resampled means: enough to know the bounds to a few percent of the interval's width."""

_DRAWN = 1 << 18
"""Number of blocks in memory while means are drawn: 4 MB."""


class Interval(NamedTuple):
    """A mean and the bounds of its confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether there were enough values for an interval."""
        return bool(np.isfinite([self.mean, self.low, self.high]).all())


def mean_interval(
    values: ArrayLike, *, block: int = 1, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Interval:
    """The mean of `values` (n,), in the order of time, and its bootstrap interval.

    Successive values are correlated, so whole blocks of them are drawn (circular block bootstrap: all values are drawn
    equally often). The spread of the resampled means is widened by ``sqrt(b / (b - 1))`` for b blocks; otherwise the
    interval of few blocks would be too narrow. With fewer than three blocks the interval is infinite.

    Parameters
    ----------
    values : (n,) array-like
        Values to average. Those that are not finite are left out.
    block : int
        Values per block, >= 1: the length over which values are correlated.
    level : float
        Confidence level, between 0 and 1.
    n_resamples : int
        Number of resampled means.
    seed : int
        Seed of the random draws.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt.evaluation import mean_interval
    >>> mean, low, high = mean_interval(np.random.default_rng(0).normal(1.0, 0.5, 100), block=4)
    >>> bool(low < 1.0 < high), bool(0.0 < low)
    (True, True)
    """
    check_count("block", block)
    check_real("level", level, open_bound=True)
    if level >= 1:
        raise ValueError(f"level={level} is out of range; use a level < 1")
    given = real_array(values, name="values").astype(np.float64).ravel()
    given = given[np.isfinite(given)]
    n = len(given)
    n_blocks = n // block
    if n == 0:
        return Interval(np.nan, -np.inf, np.inf)
    mean = float(given.mean())
    if n_blocks < 3:
        return Interval(mean, -np.inf, np.inf)
    rng = np.random.default_rng(seed)
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([given, given[: block - 1]]))])
    block_means = (sums[block:] - sums[:-block]) / block
    # In parts, which draws the same numbers: memory for all resamples would be 2,000 numbers per block.
    at_a_time = max(_DRAWN // n_blocks, 1)
    sizes = [min(at_a_time, n_resamples - done) for done in range(0, n_resamples, at_a_time)]
    drawn = np.concatenate([block_means[rng.integers(n, size=(size, n_blocks))].mean(axis=1) for size in sizes])
    spread = (drawn - mean) * np.sqrt(n_blocks / (n_blocks - 1))
    low, high = mean + np.quantile(spread, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean, float(low), float(high))


def difference_interval(first: Interval, second: Interval) -> Interval:
    """The difference of two independent means, first minus second, and its interval.

    Variances add, so the squares of the half widths add, on each side separately (MOVER, Zou and Donner 2008). The
    interval can exclude zero although the two intervals overlap.

    >>> difference_interval(Interval(1.0, 0.7, 1.3), Interval(0.0, -0.4, 0.4))
    Interval(mean=1.0, low=0.5, high=1.5)
    """
    mean = first.mean - second.mean
    below = np.hypot(first.mean - first.low, second.high - second.mean)
    above = np.hypot(first.high - first.mean, second.mean - second.low)
    return Interval(mean, float(mean - below), float(mean + above))
