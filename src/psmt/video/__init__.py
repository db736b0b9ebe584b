"""Prediction of whole frames: `FramePSMT`, its reader of films, its priors and its baselines."""

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
from psmt.video.frames import ColourFrame, FrameReader
from psmt.video.model import FRAME_EXTRAPOLATIONS, FramePSMT
from psmt.video.prior import Prior, learn_prior

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
