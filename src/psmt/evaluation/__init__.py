"""Step-by-step scores of predictors (`psmt.types.Predictor`) on series and whole frames, and confidence intervals."""

from psmt.evaluation.intervals import Interval, difference_interval, mean_interval, ratio_interval, swap_interval
from psmt.evaluation.metrics import FrameScore, error_ratio, log_mse, mse, psnr, score_frames, ssim, trimmed
from psmt.evaluation.progressive import (
    METHODS,
    FrameRow,
    Rollout,
    RolloutRow,
    Score,
    Step,
    free_running,
    score_stream,
    teacher_forced,
)

__all__ = [
    "METHODS",
    "FrameRow",
    "FrameScore",
    "Interval",
    "Rollout",
    "RolloutRow",
    "Score",
    "Step",
    "difference_interval",
    "error_ratio",
    "free_running",
    "log_mse",
    "mean_interval",
    "mse",
    "psnr",
    "ratio_interval",
    "score_frames",
    "score_stream",
    "ssim",
    "swap_interval",
    "teacher_forced",
    "trimmed",
]
