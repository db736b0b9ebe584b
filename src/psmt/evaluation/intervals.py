"""How far a mean of dependent values can be trusted: the block bootstrap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psmt.utils.validation import check_count, check_real, real_array

N_RESAMPLES = 2000
"""Resampled means behind an interval: its ends are then known to a few percent of its width."""

_DRAWN = 1 << 18
"""Blocks that are held at a time while means are drawn: 4 MB."""


class Interval(NamedTuple):
    """A mean and the bounds that it lies between."""

    mean: float
    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether there were values enough to tell anything."""
        return bool(np.isfinite([self.mean, self.low, self.high]).all())


def mean_interval(
    values: ArrayLike, *, block: int = 1, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Interval:
    """The mean of `values` (n,), in their order in time, and its bootstrap interval.

    Neighbours depend on each other, so whole blocks of `block` successive values are drawn (circular block bootstrap:
    all values are drawn equally often). Values that are not finite are left out. The spread of the resampled means is
    widened by ``sqrt(b / (b - 1))`` for b blocks, without which few blocks look too certain; with fewer than three
    blocks the interval is infinite: nothing can be told.

    Parameters
    ----------
    values : (n,) array-like
        What is averaged.
    block : int
        Values in a block, >= 1: as many as depend on each other.
    level : float
        Fraction of intervals that hold the true mean, between 0 and 1.
    n_resamples : int
        Means that are drawn.
    seed : int
        Of the draws.

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
    # Some resamples at a time, which draws the same: all of them would take 2,000 numbers for each block.
    at_a_time = max(_DRAWN // n_blocks, 1)
    sizes = [min(at_a_time, n_resamples - done) for done in range(0, n_resamples, at_a_time)]
    drawn = np.concatenate([block_means[rng.integers(n, size=(size, n_blocks))].mean(axis=1) for size in sizes])
    spread = (drawn - mean) * np.sqrt(n_blocks / (n_blocks - 1))
    low, high = mean + np.quantile(spread, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean, float(low), float(high))


def difference_interval(first: Interval, second: Interval) -> Interval:
    """The difference of two means of independent values, first less second, and its interval.

    Variances add, so half widths do so in squares, each towards its own side (MOVER, Zou and Donner 2008): where two
    intervals only just touch, the difference is long beyond doubt.

    >>> difference_interval(Interval(1.0, 0.7, 1.3), Interval(0.0, -0.4, 0.4))
    Interval(mean=1.0, low=0.5, high=1.5)
    """
    mean = first.mean - second.mean
    below = np.hypot(first.mean - first.low, second.high - second.mean)
    above = np.hypot(first.high - first.mean, second.mean - second.low)
    return Interval(mean, float(mean - below), float(mean + above))
