"""Progressive evaluation of a stream of whole frames: every method predicts, the frame comes, every method learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation.metrics import FrameScore, error_ratio, mse, score_frames
from psmt.types import Levels, Predictor

T = TypeVar("T")


class FrameRow(NamedTuple):
    """One predicted frame of one method: a line of scores.csv."""

    frame: int
    method: str
    mse: float
    psnr: float
    ssim: float
    copy_mse: float
    """What copying the last frame has."""
    ratio: float
    """mse / copy_mse: below 1 is better than copying; NaN where the film stands still."""
    surprise: float
    """What the method says of the frame once it has seen it; NaN where it says nothing."""
    cut: int
    """1 where the method takes the frame for the first of another scene."""


class RolloutRow(NamedTuple):
    """One frame of a rollout, `step` frames after the last that the method received: a line of rollout.csv."""

    start: int
    method: str
    step: int
    frame: int
    mse: float
    psnr: float
    ssim: float
    copy_mse: float
    """What copying the frame `start` has, however long ago that is."""
    ratio: float


@dataclass(frozen=True)
class Rollout:
    """What each method said, when the frame `start` had come, of the frames after it."""

    start: int
    frame: Levels
    predicted: dict[str, NDArray[Any]]
    """(steps, height, width) by method."""


@dataclass(frozen=True)
class Step:
    """A frame that came, and what had been expected of it."""

    index: int
    frame: Levels
    """(height, width)"""
    last: Levels
    """(height, width): the frame before."""
    predicted: dict[str, NDArray[Any]]
    """(height, width) by method."""
    rows: dict[str, FrameRow]
    rollouts: list[RolloutRow]
    """Of the rollouts under way, what they had said of this frame."""
    seconds: dict[str, float]
    """What each method took to predict this frame and to learn from the one before."""
    under_way: Sequence[Rollout] = ()
    """The rollouts that are scored; with the methods, all that goes on from here, see `score_stream`."""


class _Answer(NamedTuple):
    """What a method makes of a frame that came."""

    surprise: float
    cut: int
    predicted: NDArray[Any]
    """(height, width): the frame that it expects next."""
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

    With the `index` and the rollouts of a step that it gave before, as `first` and `under_way`, it goes on after that
    step as if nothing had come between.

    Parameters
    ----------
    methods : mapping of str to Predictor
        Fitted to the frames before `start`.
    frames : iterable of (height, width) arrays
        The frames from `start` on; one is held at a time.
    start : int
        Index of the first of them in the film.
    rollout : int
        Frames that each method predicts by itself now and then; 0 for none.
    every : int
        Frames from the beginning of one rollout to that of the next.
    clock : callable
        Tells the seconds by which methods are timed.
    workers : int
        Threads: so many methods work at the same time.
    first : int, optional
        Index of the first frame, where it is not `start`; the methods have received it already.
    under_way : sequence of Rollout
        Those that had begun before it.
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
                copied = float(mse(last, frame, axes=2))
                predicted = {name: answer.predicted for name, answer in expected.items()}
                rows = {
                    name: FrameRow(index, name, *score, copied, error_ratio(score.mse, copied), now.surprise, now.cut)
                    for (name, score), now in zip(_scores(predicted, frame).items(), answers.values(), strict=True)
                }
                rolled = [line for going in under_way for line in _rollout_rows(going, index, frame)]
                took = {name: answer.seconds for name, answer in expected.items()}
                yield Step(index, frame, last, predicted, rows, rolled, took, under_way)
            under_way = [going for going in under_way if index - going.start < rollout]
            if rollout and (index - start) % every == 0:
                under_way.append(Rollout(index, frame, each(lambda method: method.predict(rollout))))
            last = frame


def _receive(method: Predictor, *, frame: Levels | None, clock: Callable[[], float]) -> _Answer:
    """Let a method learn from a frame, if there is one, and predict the next. Not every method tells cuts."""
    began = clock()
    if frame is not None:
        method.update(frame)
    predicted = method.predict()
    seconds = clock() - began
    return _Answer(float(getattr(method, "surprise_", np.nan)), int(getattr(method, "cut_", 0)), predicted, seconds)


def _scores(predicted: Mapping[str, NDArray[Any]], frame: Levels) -> dict[str, FrameScore]:
    """Scores by method of what was predicted of a frame."""
    return dict(zip(predicted, score_frames(np.stack(list(predicted.values())), frame), strict=True))


def _rollout_rows(going: Rollout, index: int, frame: Levels) -> Iterator[RolloutRow]:
    """Yield the scores of what a rollout had said of a frame."""
    step = index - going.start
    copied = float(mse(going.frame, frame, axes=2))
    said = {name: frames[step - 1] for name, frames in going.predicted.items()}
    for name, score in _scores(said, frame).items():
        yield RolloutRow(going.start, name, step, index, *score, copied, error_ratio(score.mse, copied))
