"""Progressive evaluation of a series: predict, then receive the truth, then learn from it (the paper's loop)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psmt.errors import NotEnoughFramesError
from psmt.evaluation.metrics import mse
from psmt.types import Array, Predictor


@dataclass(frozen=True)
class Score:
    """Predictions of one method and their errors, one row per predicted frame."""

    frames: NDArray[np.intp]
    """Index (n_steps,) of each predicted frame in the delayed frames."""
    predicted: Array
    """(n_steps, n_features)"""
    vs_code: Array
    """MSE (n_steps,) against the patch that the true code stands for: what layer 1 can show."""
    vs_frame: Array
    """MSE (n_steps,) against the frame itself."""


def teacher_forced(
    method: Predictor, delayed: Array, estimates: Array, *, progress: Callable[[int, int], None] | None = None
) -> Score:
    """Score of one-step predictions with delayed inputs: what the paper calls predicting K frames.

    The fitted `method` receives delayed[0] and predicts delayed[1], receives delayed[1] and predicts delayed[2], ..

    Parameters
    ----------
    method : Predictor
        Fitted to the frames before these.
    delayed : (n_steps + 1, n_features) array
        The frames that follow those that the method was fitted to.
    estimates : (n_steps + 1, n_features) array
        What layer 1 makes of these frames, ``Phi a``.
    progress : callable or None
        Called with (done, total) after each step.
    """
    steps = _steps(delayed)
    predicted = []
    for step in range(steps):
        predicted.append(method.update(delayed[step]).predict())
        if progress is not None:
            progress(step + 1, steps)
    return _score(np.array(predicted), delayed, estimates)


def free_running(method: Predictor, delayed: Array, estimates: Array) -> Score:
    """Score of a rollout: the method receives delayed[0] alone and predicts all that follows by itself."""
    steps = _steps(delayed)
    return _score(method.update(delayed[0]).predict(steps), delayed, estimates)


def _steps(delayed: Array) -> int:
    """How many of the delayed frames are predicted: all but the first."""
    if len(delayed) < 2:
        raise NotEnoughFramesError(f"{len(delayed)} delayed frames; one to receive and one to predict are needed")
    return len(delayed) - 1


def _score(predicted: Array, delayed: Array, estimates: Array) -> Score:
    return Score(
        frames=np.arange(1, len(delayed)),
        predicted=predicted,
        vs_code=mse(predicted, estimates[1:]),
        vs_frame=mse(predicted, delayed[1:]),
    )
