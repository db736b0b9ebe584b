"""What is said of Table 1 wherever it is made: the paper's own figures, trimming, and how two combinations compare."""

from __future__ import annotations

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
"""Table 1 of the paper, on its own film: mean and standard deviation, trimmed, by M and H / M."""

PAPER_SIZE = min(mean for mean, _ in PAPER.values()), max(mean for mean, _ in PAPER.values())
"""Least and largest mean of the paper's Table 1."""

MARGIN = 0.01
"""Trimmed means whose ratio is closer to 1 than this are a tie."""

NOTHING = 0.95
"""Of the error of an empty picture: where errors are as large as that, nothing comes back, and nothing is compared."""

BLOCKS = 6
"""Blocks that a film is cut into at the least. A block is a window long, as all its frames may lie in one window; but
on the highway the differences of two frames correlate by less than a half beyond a quarter of the window, so a film of
few windows may be cut finer."""


def compare(
    first: Array,
    first_places: Sequence[tuple[int, int]],
    last: Array,
    last_places: Sequence[tuple[int, int]],
    *,
    n_frames: int,
) -> Interval:
    """Logarithm of the ratio of two entries of Table 1, trimmed means of errors (n_places, length), and its interval.

    The entries are made from the same film, so frames are drawn in blocks, the same ones for both (bootstrap). A
    trimmed mean follows a frame by its influence function, which is that of a mean of errors that are cut off at the
    quartiles; to first order the ratio's logarithm is a mean over frames, and that is what is drawn.

    >>> errors = np.random.default_rng(0).gamma(3.0, size=(20, 50))
    >>> places = [(50 * k, 50 * k + 50) for k in range(20)]
    >>> [round(value, 2) for value in compare(errors, places, 0.8 * errors, places, n_frames=1000)]
    [-0.22, -0.22, -0.22]
    """
    ratio = float(np.log(_mean(trimmed(last)) / _mean(trimmed(first))))
    moved = _influence(last, last_places, n_frames) - _influence(first, first_places, n_frames)
    known = moved[np.isfinite(moved)]
    # Influences have mean 0 over all errors; over the frames that both have, nearly so.
    window = max(first.shape[1], last.shape[1])
    return mean_interval(ratio + known - known.mean(), block=max(min(window, len(known) // BLOCKS), 1))


def _influence(errors: Array, places: Sequence[tuple[int, int]], n_frames: int) -> Array:
    """What each frame (n_frames,) adds to the logarithm of the trimmed mean of the errors; NaN where it has none."""
    kept = trimmed(errors)
    cut_off = np.clip(errors, kept[0], kept[-1])
    scores = (cut_off - cut_off.mean()) / ((1 - 2 * TRIMMED) * _mean(kept))
    sums, counts = np.zeros(n_frames), np.zeros(n_frames)
    for (start, stop), own in zip(places, scores, strict=True):
        sums[start:stop] += own
        counts[start:stop] += 1
    # A frame that lies in more windows than others counts as often.
    per_frame = sums * np.count_nonzero(counts) / errors.size
    return np.where(counts > 0, per_frame, np.nan)


def _mean(errors: Array) -> float:
    """Above zero, also in a film that comes back without any error."""
    return max(float(errors.mean()), np.finfo(float).tiny)
