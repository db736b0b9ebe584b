"""Prediction of whole video frames: the estimator `FramePredictor`, its priors, baselines, and a reader of films."""

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
from psmt.video.frames import FrameReader, has_colour, luma
from psmt.video.model import FRAME_EXTRAPOLATIONS, FramePredictor
from psmt.video.patch import PatchInFrame
from psmt.video.prior import Prior, learn_prior

__all__ = [
    "FRAME_BASELINES",
    "FRAME_EXTRAPOLATIONS",
    "BlockMotion",
    "CopyLastFrame",
    "FourierPhase",
    "FrameBaseline",
    "FrameBaselineEntry",
    "FramePredictor",
    "FrameReader",
    "LinearPixels",
    "PatchInFrame",
    "Prior",
    "RidgePixels",
    "has_colour",
    "learn_prior",
    "luma",
]
