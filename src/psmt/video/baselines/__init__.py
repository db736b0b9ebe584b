"""What whole-frame prediction is compared with, behind the interface of `FramePSMT`: `fit`, `update`, `predict`.

All take and give grey levels. None sees more than the frames it was given, and none is tuned on what it predicts.
"""

from psmt.video.baselines.base import FramePredictor
from psmt.video.baselines.block_motion import BlockMotion
from psmt.video.baselines.fourier import FourierPhase
from psmt.video.baselines.pixels import CopyFrames, LinearPixels
from psmt.video.baselines.ridge import RidgePixels

__all__ = ["BlockMotion", "CopyFrames", "FourierPhase", "FramePredictor", "LinearPixels", "RidgePixels"]
