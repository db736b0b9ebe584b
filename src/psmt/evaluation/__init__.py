"""Scores: the progressive evaluator (predict, receive, learn) and its metrics."""

from psmt.evaluation.metrics import log_mse, mse
from psmt.evaluation.progressive import Score, free_running, teacher_forced

__all__ = ["Score", "free_running", "log_mse", "mse", "teacher_forced"]
