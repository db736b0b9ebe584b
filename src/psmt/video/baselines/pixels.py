"""Each pixel by itself: copying, and straight lines."""

from __future__ import annotations

import numpy as np

from psmt.types import Levels
from psmt.video.baselines.base import FrameBaseline


class CopyLastFrame(FrameBaseline):
    """Persistence: the next frame is the last one, which every predictor has to beat.

    >>> import numpy as np
    >>> CopyLastFrame().fit(np.zeros((2, 3, 3))).update(np.ones((3, 3))).predict()[0]
    array([1., 1., 1.], dtype=float32)
    """

    n_last = 1

    def next_frame(self, last: Levels) -> Levels:
        """Return the frame after the last few."""
        return np.array(last[-1])


class LinearPixels(FrameBaseline):
    """Linear extrapolation: every pixel goes on along the straight line through its last two values."""

    n_last = 2

    def next_frame(self, last: Levels) -> Levels:
        """Return the frame after the last few."""
        return np.asarray(2 * last[-1] - last[-2])
