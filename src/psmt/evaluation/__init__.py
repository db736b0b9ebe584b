"""Scores: predict, receive, learn, for patches and for whole frames, and the metrics."""

from psmt.evaluation.frames import FrameScore, psnr, score_frames, ssim
from psmt.evaluation.metrics import log_mse, mse
from psmt.evaluation.progressive import Score, free_running, teacher_forced
from psmt.evaluation.streaming import FrameRow, Rollout, RolloutRow, Step, follow

__all__ = [
    "FrameRow",
    "FrameScore",
    "Rollout",
    "RolloutRow",
    "Score",
    "Step",
    "follow",
    "free_running",
    "log_mse",
    "mse",
    "psnr",
    "score_frames",
    "ssim",
    "teacher_forced",
]
