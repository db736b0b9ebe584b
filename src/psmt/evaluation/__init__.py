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

__all__ = ["Interval", "difference_interval", "mean_interval", "ratio_interval", "swap_interval"]
__all__ += ["FrameScore", "error_ratio", "log_mse", "mse", "psnr", "score_frames", "ssim", "trimmed"]
__all__ += ["METHODS", "FrameRow", "Rollout", "RolloutRow", "Score", "Step"]
__all__ += ["free_running", "score_stream", "teacher_forced"]
