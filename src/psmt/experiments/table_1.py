"""What is said of Table 1 wherever it is made: the paper's own figures, trimming, and how two combinations compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psmt.evaluation import Interval, mean_interval
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
"""Table 1 of the paper, on its own film: mean and standard deviation, trimmed, by M and H / M."""

PAPER_SIZE = min(mean for mean, _ in PAPER.values()), max(mean for mean, _ in PAPER.values())
"""Least and largest mean of the paper's Table 1."""

TRIMMED = 0.25
"""Share of the errors that is left out at each end of Table 1."""

MARGIN = 0.01
"""Errors whose ratio, frame by frame, is closer to 1 than this are a tie."""

BLOCKS = 6
"""Blocks that a film is cut into at the least. A block is a window long, as all its frames may lie in one window; but
on the highway the differences of two frames correlate by less than a half beyond a quarter of the window, so a film of
few windows may be cut finer."""


def trimmed(errors: Array) -> Array:
    """The errors without a quarter at each end, ascending, as Table 1 has them.

    >>> trimmed(np.array([[8.0, 1.0], [2.0, 900.0]]))
    array([2., 8.])
    """
    ordered = np.sort(errors, axis=None)
    cut = int(TRIMMED * ordered.size)
    return ordered[cut : ordered.size - cut]


def mean_by_frame(values: Array, places: Sequence[tuple[int, int]], n_frames: int) -> Array:
    """Mean (n_frames,) of the values (n_places, length) of each frame over the places that hold it; NaN without any.

    >>> mean_by_frame(np.array([[1.0, 2.0], [4.0, 6.0]]), [(0, 2), (1, 3)], 4)
    array([ 1.,  3.,  6., nan])
    """
    sums, counts = np.zeros(n_frames), np.zeros(n_frames)
    for (start, stop), own in zip(places, values, strict=True):
        sums[start:stop] += own
        counts[start:stop] += 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def compare(first: Array, last: Array, *, window: int) -> Interval:
    """How much larger the logarithms of errors `last` (n_frames,) are than `first`, over the frames that both have.

    Frame by frame, so that calm and lively stretches do not hide it. `window` is the longer H of the two.
    """
    difference = last - first
    known = int(np.count_nonzero(np.isfinite(difference)))
    return mean_interval(difference, block=max(min(window, known // BLOCKS), 1))
