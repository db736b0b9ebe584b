"""Progressive scoring, of series and of whole frames, and the metrics. What is scored is any `psmt.types.Predictor`."""

from psmt.evaluation.intervals import Interval, difference_interval, mean_interval
from psmt.evaluation.methods import METHODS
from psmt.evaluation.metrics import FrameScore, error_ratio, log_mse, mse, psnr, score_frames, ssim, trimmed
from psmt.evaluation.progressive import Score, free_running, teacher_forced
from psmt.evaluation.streaming import FrameRow, Rollout, RolloutRow, Step, score_stream

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
    "score_frames",
    "score_stream",
    "ssim",
    "teacher_forced",
    "trimmed",
]
