"""Progressive evaluation, as in the paper: a method predicts a frame, receives the true frame, and learns from it.

`teacher_forced` and `free_running` score predictions of a series. `score_stream` scores predictions of whole frames.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.data.contract import grey
from psmt.errors import NotEnoughFramesError
from psmt.evaluation.metrics import error_ratio, mse, score_frames
from psmt.types import Array, Levels, Predictor

T = TypeVar("T")

METHODS = {
    "psmt": "PSMT",
    "psmt_gain": "PSMT, learned gain",
    "baseline1": "Baseline 1",
    "baseline2": "Baseline 2",
    "code_line": "line through codes",
    "code_gain": "codes, learned gain",
    "copy": "copy last patch",
    "copy_code": "copy last code",
    "mean": "mean patch",
    "mean_code": "mean code",
    "linear": "linear in pixels",
    "pixel_gain": "pixels, learned gain",
    "ridge": "ridge regression",
    "pca_var": "PCA and VAR",
    "sfa": "slow features",
    "motion": "motion in the patch",
    "whole_frame": "whole-frame predictor",
}
"""Labels of the methods that predict patches, by their name in files.

`motion` needs pictures, and `whole_frame` needs a film that can be read again. Otherwise results omit them."""


@dataclass(frozen=True)
class Score:
    """Predictions of one method and their errors. Arrays have one row per predicted frame."""

    predicted: Array
    """(n_steps, n_features): predictions of all delayed frames but the first."""
    vs_code: Array
    """MSE (n_steps,) against the frame's reconstruction from its sparse code: the best that layer 1 can do."""
    vs_frame: Array
    """Mean squared error (n_steps,) against the frame itself."""


def teacher_forced(
    method: Predictor, delayed: Array, estimates: Array, *, received: NDArray[Any] | None = None
) -> Score:
    """Score one-step predictions, each from all true frames before it ("with delayed inputs" in the paper).

    The fitted `method` receives delayed[0] and predicts delayed[1], receives delayed[1] and predicts delayed[2], ..

    Parameters
    ----------
    method : Predictor
        Fitted to the frames before `delayed`.
    delayed : (n_steps + 1, n_features) array
        The frames that follow those that the method was fitted to.
    estimates : (n_steps + 1, n_features) array
        Reconstructions of the frames `delayed` by layer 1: the codes times the dictionary.
    received : (n_steps + 1, ...) array, optional
        What the method receives instead of the frames `delayed`, such as larger pictures around them.
    """
    predicted = [method.update(frame).predict() for frame in _given(delayed, received)]
    return _score(np.array(predicted), delayed, estimates)


def free_running(method: Predictor, delayed: Array, estimates: Array, *, received: NDArray[Any] | None = None) -> Score:
    """Score a rollout: after the first frame, the method predicts from its own predictions.

    The parameters are those of `teacher_forced`.
    """
    given = _given(delayed, received)
    return _score(method.update(given[0]).predict(len(given)), delayed, estimates)


def _given(delayed: Array, received: NDArray[Any] | None) -> NDArray[Any]:
    """Return what a method receives, frame by frame: all but the last of the frames."""
    if len(delayed) < 2:
        raise NotEnoughFramesError(f"{len(delayed)} delayed frames; one to receive and one to predict are needed")
    return (delayed if received is None else received)[: len(delayed) - 1]


def _score(predicted: Array, delayed: Array, estimates: Array) -> Score:
    return Score(predicted, vs_code=mse(predicted, estimates[1:]), vs_frame=mse(predicted, delayed[1:]))


class FrameRow(NamedTuple):
    """A row of scores.csv: the scores of one method on one frame."""

    frame: int
    method: str
    mse: float
    psnr: float
    ssim: float
    copy_mse: float
    """Error of copying the last frame."""
    ratio: float
    """``mse / copy_mse``. A value below 1 is better than copying. It is NaN if nothing moves."""
    surprise: float
    """The method's surprise at the frame, or NaN if the method reports none."""
    cut: int
    """1 if the method detects that the frame begins another scene, else 0."""
    colour_mse: float = np.nan
    """Mean squared error over red, green and blue, or NaN if the method predicts no colour."""
    colour_copy_mse: float = np.nan
    """Mean squared error of copying the last frame over red, green and blue, or NaN like `colour_mse`."""


class RolloutRow(NamedTuple):
    """A row of rollout.csv: the scores of one frame, predicted `step` frames ahead."""

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
    """Predictions of several frames after the frame `start`, made when this frame had been received."""

    start: int
    frame: Levels
    predicted: dict[str, NDArray[Any]]
    """Predicted frames (steps, height, width), by method."""


@dataclass(frozen=True)
class Step:
    """A received frame, with the predictions that were made of it and their scores."""

    index: int
    frame: Levels
    """The received frame (height, width), or in colour (height, width, 3)."""
    last: Levels
    """The frame before this frame."""
    predicted: dict[str, NDArray[Any]]
    """Predictions by method. Some methods predict only the luma (height, width) of colour frames."""
    rows: dict[str, FrameRow]
    rollouts: list[RolloutRow]
    """Scores of this frame in all rollouts that include it."""
    seconds: dict[str, float]
    """Seconds that each method took to learn from the frame before and to predict this frame."""
    under_way: Sequence[Rollout] = ()
    """The unfinished rollouts. Together with the methods, they are the whole state of `score_stream`."""


_Answer = tuple[NDArray[Any], float, tuple[float, int]]
"""A method's prediction of the next frame, the seconds that it took, and its surprise and cut at the received frame."""


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
    """Predict a stream of frames with all methods, and yield a `Step` with scores for each frame except the first.

    Scores are those of the luma (grey levels). For colour frames, the error over the three channels is added.

    To resume after a step, pass its `index` as the parameter `first`, and its rollouts as `under_way`.

    Parameters
    ----------
    methods : mapping of str to Predictor
        Fitted to the frames before `start`.
    frames : iterable of (height, width) or (height, width, 3) arrays
        The frames from `start` on. Only one frame is held in memory at a time.
    start : int
        Index in the film of the first of the `frames`.
    rollout : int
        Number of frames that each method predicts from its own predictions; 0 for no rollouts.
    every : int
        Number of frames between the starts of two successive rollouts.
    clock : callable
        Returns the time in seconds, to measure how long the methods take.
    workers : int
        Number of threads, each of which runs one method at a time.
    first : int, optional
        Index of the first frame if it is not `start`. The methods must have received this frame.
    under_way : sequence of Rollout
        Rollouts that started before the frame `first`.
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
                predicted = {name: ahead for name, (ahead, _, _) in expected.items()}
                rows = {
                    name: FrameRow(index, name, *own, *answers[name][2], *_colour_errors(predicted[name], frame, last))
                    for name, own in _scores(predicted, frame, last).items()
                }
                rolled = []
                for going in under_way:
                    step = index - going.start
                    ahead = {name: own[step - 1] for name, own in going.predicted.items()}
                    for name, scores in _scores(ahead, frame, going.frame).items():
                        rolled.append(RolloutRow(going.start, name, step, index, *scores))
                took = {name: seconds for name, (_, seconds, _) in expected.items()}
                yield Step(index, frame, last, predicted, rows, rolled, took, under_way)
            under_way = [going for going in under_way if index - going.start < rollout]
            if rollout and (index - start) % every == 0:
                under_way.append(Rollout(index, frame, each(lambda method: method.predict(rollout))))
            last = frame


def _receive(method: Predictor, *, frame: Levels | None, clock: Callable[[], float]) -> _Answer:
    """Let a method learn from a frame, unless it is None, and predict. Return prediction, time, surprise and cut."""
    began = clock()
    if frame is not None:
        method.update(frame)
    predicted = method.predict()
    seconds = clock() - began
    return predicted, seconds, (float(getattr(method, "surprise_", np.nan)), int(getattr(method, "cut_", 0)))


def _scores(
    predicted: Mapping[str, NDArray[Any]], frame: Levels, copied: Levels
) -> dict[str, tuple[float, float, float, float, float]]:
    """Return for each method: MSE, PSNR, SSIM, the MSE of copying, and MSE / (MSE of copying)."""
    copy_mse = float(mse(grey(copied), grey(frame), axes=2))
    scores = score_frames(np.stack([grey(own) for own in predicted.values()]), grey(frame))
    return {name: (*own, copy_mse, error_ratio(own.mse, copy_mse)) for name, own in zip(predicted, scores, strict=True)}


def _colour_errors(predicted: NDArray[Any], frame: Levels, copied: Levels) -> tuple[float, float]:
    """Return two MSEs over red, green and blue: of a prediction, and of copying. They are NaN for grey frames."""
    if predicted.ndim < 3:
        return np.nan, np.nan
    return float(mse(predicted, frame, axes=3)), float(mse(copied, frame, axes=3))
