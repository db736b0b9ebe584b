"""What whole-frame prediction is compared with, behind the interface of `FramePSMT`: `fit`, `update`, `predict`.

All take and give grey levels. None sees more than the frames it was given, and none is tuned on what it predicts.
"""

from psmt.whole_frames.peers.block_motion import BlockMotion
from psmt.whole_frames.peers.contract import FramePredictor
from psmt.whole_frames.peers.fourier import FourierPhase
from psmt.whole_frames.peers.pixels import CopyFrames, LinearPixels
from psmt.whole_frames.peers.ridge import RidgePixels

__all__ = ["BlockMotion", "CopyFrames", "FourierPhase", "FramePredictor", "LinearPixels", "RidgePixels"]
