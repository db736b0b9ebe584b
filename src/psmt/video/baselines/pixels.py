"""Each pixel by itself: copying, and straight lines."""

from __future__ import annotations

from psmt.video.baselines.base import Array, Peer


class CopyFrames(Peer):
    """The next frame is the last one: what every predictor has to beat.

    >>> import numpy as np
    >>> CopyFrames().fit(np.zeros((2, 3, 3))).update(np.ones((3, 3))).predict()[0]
    array([1., 1., 1.], dtype=float32)
    """

    _memory = 1

    def _next(self, last: Array) -> Array:
        return last[-1].copy()


class LinearPixels(Peer):
    """Every pixel goes on along the straight line through its last two values."""

    _memory = 2

    def _next(self, last: Array) -> Array:
        return 2 * last[-1] - last[-2]
