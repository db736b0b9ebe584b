"""Baselines with the interface of PSMT: `fit`, `update`, `predict`. Each file has one kind of baseline."""

from psmt.model.baselines.gains import PatchMotion, PixelGain
from psmt.model.baselines.last_frames import CopyLast, LastFramesPredictor, LinearTrend, MeanFrame, SeriesBaseline
from psmt.model.baselines.layers import Baseline1, Baseline2, CodeExtrapolation, CopyCode, MeanCode
from psmt.model.baselines.ridge import RidgeAutoregression
from psmt.model.baselines.subspaces import PrincipalComponents, SlowFeatures

__all__ = [
    "Baseline1",
    "Baseline2",
    "CodeExtrapolation",
    "CopyCode",
    "CopyLast",
    "LastFramesPredictor",
    "LinearTrend",
    "MeanCode",
    "MeanFrame",
    "PatchMotion",
    "PixelGain",
    "PrincipalComponents",
    "RidgeAutoregression",
    "SeriesBaseline",
    "SlowFeatures",
]
