"""What the baselines for whole frames have in common."""

from __future__ import annotations

from numpy.typing import ArrayLike

from psmt.model.baselines import LastFramesPredictor
from psmt.types import Levels
from psmt.video.checks import check_film, check_next_frame


class FrameBaseline(LastFramesPredictor):
    """Autoregressive predictor of whole frames: grey levels (time, height, width) in, grey levels out.

    A baseline is a file in this folder with a subclass, and a line in `FRAME_BASELINES`. It says how many of the last
    frames it looks at (`n_last`), which frame follows them (`next_frame`), and, where `fit` learns something, how
    (`learn`) and what (`learned`).
    """

    def check_past(self, X: ArrayLike) -> Levels:
        """Return the past frames, as numbers that can be computed with."""
        return check_film(X, minimum=self.n_last)

    def check_next(self, x: ArrayLike) -> Levels:
        """Return a frame, as numbers that can be computed with."""
        return check_next_frame(x, self.shape_)
