"""What whole-frame prediction is compared with, behind the interface of `FramePSMT`: `fit`, `update`, `predict`.

All take and give grey levels. None sees more than the frames it was given, and none is tuned on what it predicts.
"""

from typing import NamedTuple

from psmt.video.baselines.base import FrameBaseline
from psmt.video.baselines.block_motion import BlockMotion
from psmt.video.baselines.fourier import FourierPhase
from psmt.video.baselines.pixels import CopyLastFrame, LinearPixels
from psmt.video.baselines.ridge import RidgePixels

__all__ = [
    "FRAME_BASELINES",
    "BlockMotion",
    "CopyLastFrame",
    "FourierPhase",
    "FrameBaseline",
    "FrameBaselineEntry",
    "LinearPixels",
    "RidgePixels",
]


class FrameBaselineEntry(NamedTuple):
    """A baseline as comparisons know it."""

    label: str
    """Name for people."""
    make: type[FrameBaseline]
    """Called without arguments, it gives a baseline that is not yet fitted."""
    slow: bool = False
    """Whether it costs about as much as the model, and is left out unless asked for."""


FRAME_BASELINES = {
    "copy": FrameBaselineEntry("copy last frame", CopyLastFrame),
    "linear": FrameBaselineEntry("linear in pixels", LinearPixels),
    "fourier": FrameBaselineEntry("Fourier phase advance", FourierPhase),
    "blocks": FrameBaselineEntry("block motion", BlockMotion, slow=True),
    "ridge": FrameBaselineEntry("ridge regression", RidgePixels, slow=True),
}
"""All baselines, by their name in files. Comparisons, their options and their tables follow this list."""
