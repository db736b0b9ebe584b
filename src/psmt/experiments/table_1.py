"""Table 1 of the paper (reconstruction errors), and the comparison of two entries of such a table."""

from collections.abc import Sequence

import numpy as np

from psmt.evaluation import Interval, mean_interval, trimmed
from psmt.evaluation.metrics import TRIMMED
from psmt.types import Array

PAPER = {
    (512, 2.0): (0.925, 0.129),
    (512, 2.5): (0.734, 0.125),
    (512, 3.0): (0.425, 0.106),
    (1024, 2.0): (0.484, 0.202),
    (1024, 2.5): (0.474, 0.220),
    (1024, 3.0): (0.316, 0.178),
    (2048, 2.0): (0.195, 0.174),
    (2048, 2.5): (0.309, 0.238),
    (2048, 3.0): (0.190, 0.228),
}
"""Table 1 of the paper: trimmed mean and standard deviation, by number of atoms and window length / number of atoms."""

PAPER_SIZE = min(mean for mean, _ in PAPER.values()), max(mean for mean, _ in PAPER.values())
"""Smallest and largest mean in Table 1 of the paper."""

MARGIN = 0.01
"""Two trimmed means count as equal if their ratio differs from 1 by less than this."""

NOTHING = 0.95
"""Errors above this share of the error of an empty picture are not compared, because nothing is reconstructed."""

BLOCKS = 6
"""Smallest number of blocks in a film. Frames of one window depend on each other, so a block is as long as a window. In
a film of few windows blocks are shorter, which is acceptable: on the highway film, the differences of frames more than
a quarter of a window apart correlate by less than 0.5."""


def compare(
    first: Array, first_at: Sequence[tuple[int, int]], last: Array, last_at: Sequence[tuple[int, int]], *, n_frames: int
) -> Interval:
    """Return log(trimmed mean of `last` / trimmed mean of `first`) with its confidence interval.

    `first` and `last` are the errors (n_windows, length) of frames in windows of one film. `first_at` and `last_at`
    have the (start, stop) of each window. The influence functions of the trimmed means linearise the log ratio: it
    becomes a mean of paired differences over frames. The interval is that of this mean.

    >>> errors = np.random.default_rng(0).gamma(3.0, size=(20, 50))
    >>> places = [(50 * k, 50 * k + 50) for k in range(20)]
    >>> [round(value, 2) for value in compare(errors, places, 0.8 * errors, places, n_frames=1000)]
    [-0.22, -0.22, -0.22]
    """
    ratio = float(np.log(_mean(trimmed(last)) / _mean(trimmed(first))))
    moved = _influence(last, last_at, n_frames) - _influence(first, first_at, n_frames)
    known = moved[np.isfinite(moved)]
    # Influences have mean 0 over all errors, and nearly so over the frames that both have.
    window = max(first.shape[1], last.shape[1])
    return mean_interval(ratio + known - known.mean(), block=max(min(window, len(known) // BLOCKS), 1))


def _influence(errors: Array, places: Sequence[tuple[int, int]], n_frames: int) -> Array:
    """Return each frame's influence (n_frames,) on the log of the trimmed mean, or NaN if no window contains it."""
    kept = trimmed(errors)
    cut_off = np.clip(errors, kept[0], kept[-1])
    scores = (cut_off - cut_off.mean()) / ((1 - 2 * TRIMMED) * _mean(kept))
    sums, counts = np.zeros(n_frames), np.zeros(n_frames)
    for (start, stop), own in zip(places, scores, strict=True):
        sums[start:stop] += own
        counts[start:stop] += 1
    # A frame counts once for each window that it lies in.
    return np.where(counts > 0, sums * np.count_nonzero(counts) / errors.size, np.nan)


def _mean(errors: Array) -> float:
    """Return the mean of the errors, or the smallest positive float if it is 0, so that its logarithm exists."""
    return max(float(errors.mean()), np.finfo(float).tiny)
