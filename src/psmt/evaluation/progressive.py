"""Progressive evaluation, the paper's loop: predict, then receive the truth, then learn from it.

`teacher_forced` and `free_running` score predictions of a series, `score_stream` those of a stream of whole frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.errors import NotEnoughFramesError
from psmt.evaluation.metrics import error_ratio, mse, score_frames
from psmt.types import Array, Levels, Predictor

T = TypeVar("T")

METHODS = {
    "psmt": "PSMT",
    "psmt_gain": "PSMT, learned gain",
    "baseline1": "Baseline 1",
    "baseline2": "Baseline 2",
    "copy": "copy last patch",
    "copy_code": "copy last code",
    "mean": "mean patch",
    "mean_code": "mean code",
    "linear": "linear in pixels",
    "ridge": "ridge regression",
}
"""Labels of the methods that predict patches, by their name in files."""


@dataclass(frozen=True)
class Score:
    """Predictions of one method and their errors, one row per predicted frame."""

    frames: NDArray[np.intp]
    """Index (n_steps,) of each predicted frame in the delayed frames."""
    predicted: Array
    """(n_steps, n_features)"""
    vs_code: Array
    """MSE (n_steps,) against the reconstruction of the frame from its code, the best that layer 1 can do."""
    vs_frame: Array
    """MSE (n_steps,) against the frame itself."""


def teacher_forced(
    method: Predictor, delayed: Array, estimates: Array, *, progress: Callable[[int, int], None] | None = None
) -> Score:
    """Score one-step predictions with delayed inputs, which the paper calls predicting K frames.

    The fitted `method` receives delayed[0] and predicts delayed[1], receives delayed[1] and predicts delayed[2], ..

    Parameters
    ----------
    method : Predictor
        Fitted to the frames before these.
    delayed : (n_steps + 1, n_features) array
        The frames that follow those that the method was fitted to.
    estimates : (n_steps + 1, n_features) array
        Reconstructions of these frames by layer 1, ``Phi a``.
    progress : callable or None
        Called with (done, total) after each step.
    """
    steps = _n_steps(delayed)
    predicted = []
    for step in range(steps):
        predicted.append(method.update(delayed[step]).predict())
        if progress is not None:
            progress(step + 1, steps)
    return _score(np.array(predicted), delayed, estimates)


def free_running(method: Predictor, delayed: Array, estimates: Array) -> Score:
    """Score a rollout: the method receives delayed[0] only and predicts all later frames from its own predictions."""
    steps = _n_steps(delayed)
    return _score(method.update(delayed[0]).predict(steps), delayed, estimates)


def _n_steps(delayed: Array) -> int:
    if len(delayed) < 2:
        raise NotEnoughFramesError(f"{len(delayed)} delayed frames; one to receive and one to predict are needed")
    return len(delayed) - 1


def _score(predicted: Array, delayed: Array, estimates: Array) -> Score:
    frames = np.arange(1, len(delayed))
    return Score(frames, predicted, vs_code=mse(predicted, estimates[1:]), vs_frame=mse(predicted, delayed[1:]))


class FrameRow(NamedTuple):
    """One predicted frame of one method: a row of scores.csv."""

    frame: int
    method: str
    mse: float
    psnr: float
    ssim: float
    copy_mse: float
    """Error of copying the last frame."""
    ratio: float
    """mse / copy_mse: below 1 is better than copying; NaN if nothing moves."""
    surprise: float
    """The method's surprise at the frame; NaN if it reports none."""
    cut: int
    """1 if the method takes the frame for the first of another scene."""


class RolloutRow(NamedTuple):
    """One frame of a rollout, `step` frames after the last that the method received: a row of rollout.csv."""

    start: int
    method: str
    step: int
    frame: int
    mse: float
    psnr: float
    ssim: float
    copy_mse: float
    """Error of copying the frame `start`."""
    ratio: float


@dataclass(frozen=True)
class Rollout:
    """Predictions of the frames after `start`, made when the frame `start` was received."""

    start: int
    frame: Levels
    predicted: dict[str, NDArray[Any]]
    """(steps, height, width) by method."""


@dataclass(frozen=True)
class Step:
    """A received frame, its predictions and their scores."""

    index: int
    frame: Levels
    """(height, width)"""
    last: Levels
    """(height, width): the frame before."""
    predicted: dict[str, NDArray[Any]]
    """(height, width) by method."""
    rows: dict[str, FrameRow]
    rollouts: list[RolloutRow]
    """Scores of this frame in the rollouts under way."""
    seconds: dict[str, float]
    """Time of each method to predict this frame and to learn from the one before."""
    under_way: Sequence[Rollout] = ()
    """The rollouts that are scored. With the methods, they are the whole state of `score_stream`."""


class _Answer(NamedTuple):
    """Response of a method to a frame."""

    surprise: float
    cut: int
    predicted: NDArray[Any]
    """(height, width): prediction of the next frame."""
    seconds: float


def score_stream(
    methods: Mapping[str, Predictor],
    frames: Iterable[Levels],
    *,
    start: int,
    rollout: int = 10,
    every: int = 20,
    clock: Callable[[], float] = perf_counter,
    workers: int = 1,
    first: int | None = None,
    under_way: Sequence[Rollout] = (),
) -> Iterator[Step]:
    """Yield a `Step` for each frame but the first, which is only received.

    To resume after a step, give its `index` and its rollouts as `first` and `under_way`.

    Parameters
    ----------
    methods : mapping of str to Predictor
        Fitted to the frames before `start`.
    frames : iterable of (height, width) arrays
        The frames from `start` on; one is held in memory at a time.
    start : int
        Index of the first of them in the film.
    rollout : int
        Number of frames that each method predicts from its own predictions; 0 for no rollouts.
    every : int
        Frames from the start of one rollout to the start of the next.
    clock : callable
        Returns the time in seconds, to measure the methods.
    workers : int
        Number of threads, each of which runs one method at a time.
    first : int, optional
        Index of the first frame if it is not `start`; the methods have received it already.
    under_way : sequence of Rollout
        Rollouts that started before it.
    """
    last: Levels | None = None
    answers: dict[str, _Answer] = {}
    with ThreadPoolExecutor(workers) as pool:

        def each(work: Callable[[Predictor], T]) -> dict[str, T]:
            return dict(zip(methods, pool.map(work, methods.values()), strict=True))

        for index, frame in enumerate(frames, start if first is None else first):
            news = None if index == first else frame
            expected, answers = answers, each(partial(_receive, frame=news, clock=clock))
            if last is not None:
                predicted = {name: answer.predicted for name, answer in expected.items()}
                rows = {
                    name: FrameRow(index, name, *scores, answers[name].surprise, answers[name].cut)
                    for name, scores in _scores(predicted, frame, last).items()
                }
                rolled = []
                for going in under_way:
                    step = index - going.start
                    ahead = {name: own[step - 1] for name, own in going.predicted.items()}
                    for name, scores in _scores(ahead, frame, going.frame).items():
                        rolled.append(RolloutRow(going.start, name, step, index, *scores))
                took = {name: answer.seconds for name, answer in expected.items()}
                yield Step(index, frame, last, predicted, rows, rolled, took, under_way)
            under_way = [going for going in under_way if index - going.start < rollout]
            if rollout and (index - start) % every == 0:
                under_way.append(Rollout(index, frame, each(lambda method: method.predict(rollout))))
            last = frame


def _receive(method: Predictor, *, frame: Levels | None, clock: Callable[[], float]) -> _Answer:
    """Let a method learn from a frame, if there is one, and predict the next."""
    began = clock()
    if frame is not None:
        method.update(frame)
    predicted = method.predict()
    seconds = clock() - began
    return _Answer(float(getattr(method, "surprise_", np.nan)), int(getattr(method, "cut_", 0)), predicted, seconds)


def _scores(
    predicted: Mapping[str, NDArray[Any]], frame: Levels, copied: Levels
) -> dict[str, tuple[float, float, float, float, float]]:
    """MSE, PSNR, SSIM, error of copying another frame, and the ratio of the errors, by method."""
    copy_mse = float(mse(copied, frame, axes=2))
    scores = score_frames(np.stack(list(predicted.values())), frame)
    return {
        name: (*score, copy_mse, error_ratio(score.mse, copy_mse))
        for name, score in zip(predicted, scores, strict=True)
    }
