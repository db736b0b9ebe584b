"""What the baselines for whole frames have in common."""

from __future__ import annotations

from numpy.typing import ArrayLike

from psmt.last_frames import LastFramesPredictor
from psmt.types import Levels
from psmt.video.checks import check_film, check_next_frame


class FrameBaseline(LastFramesPredictor):
    """Autoregressive predictor of whole frames: grey levels (time, height, width) in, grey levels out.

    A baseline is a file in this folder with a subclass, and a line in `FRAME_BASELINES`. It says how many of the last
    frames it looks at (`_order`), which frame follows them (`_next`), and, where `fit` learns something, how (`_learn`)
    and what (`_learned`).
    """

    def _check_past(self, X: ArrayLike) -> Levels:
        return check_film(X, minimum=self._order)

    def _check_next(self, x: ArrayLike) -> Levels:
        return check_next_frame(x, self.shape_)
