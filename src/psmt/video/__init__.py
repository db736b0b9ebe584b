"""Whole frames: `FramePSMT`, the reader of its films, and what it is compared with."""

from psmt.video.baselines import (
    FRAME_BASELINES,
    BlockMotion,
    CopyLastFrame,
    FourierPhase,
    FrameBaseline,
    FrameBaselineEntry,
    LinearPixels,
    RidgePixels,
)
from psmt.video.model import FRAME_EXTRAPOLATIONS, FramePSMT
from psmt.video.prior import Prior, learn_prior
from psmt.video.reader import ColourFrame, FrameReader

__all__ = [
    "FRAME_BASELINES",
    "FRAME_EXTRAPOLATIONS",
    "BlockMotion",
    "ColourFrame",
    "CopyLastFrame",
    "FourierPhase",
    "FrameBaseline",
    "FrameBaselineEntry",
    "FramePSMT",
    "FrameReader",
    "LinearPixels",
    "Prior",
    "RidgePixels",
    "learn_prior",
]
