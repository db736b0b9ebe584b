"""Whole frames as they come: every method predicts, the true frame arrives, every method learns from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation.frames import FrameScore, score_frames
from psmt.video.baselines import FramePredictor

Frame = NDArray[np.float32]
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
    frame: Frame
    predicted: dict[str, NDArray[np.floating]]
    """(steps, height, width) by method."""


@dataclass(frozen=True)
class Step:
    """A frame that came, and what had been expected of it."""

    index: int
    frame: Frame
    """(height, width)"""
    last: Frame
    """(height, width): the frame before."""
    predicted: dict[str, NDArray[np.floating]]
    """(height, width) by method."""
    rows: dict[str, FrameRow]
    rollouts: list[RolloutRow]
    """Of the rollouts under way, what they had said of this frame."""
    seconds: dict[str, float]
    """What each method took to predict this frame and to learn from the one before."""
    under_way: Sequence[Rollout] = ()
    """The rollouts that are scored; with the methods, all that goes on from here, see `follow`."""


class _Answer(NamedTuple):
    """What a method makes of a frame that came."""

    surprise: float
    cut: int
    predicted: NDArray[np.floating]
    """(height, width): the frame that it expects next."""
    seconds: float


def follow(
    methods: Mapping[str, FramePredictor],
    frames: Iterable[Frame],
    *,
    start: int,
    rollout: int = 10,
    every: int = 20,
    clock: Callable[[], float] = perf_counter,
    workers: int = 1,
    first: int | None = None,
    under_way: Sequence[Rollout] = (),
) -> Iterator[Step]:
    """Yield a step for each frame but the first, which is only received.

    With the `index` and the rollouts of a step that it gave before, as `first` and `under_way`, it goes on after that
    step as if nothing had come between.

    Parameters
    ----------
    methods : mapping of str to FramePredictor
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
    last: Frame | None = None
    answers: dict[str, _Answer] = {}
    with ThreadPoolExecutor(workers) as pool:

        def each(work: Callable[[FramePredictor], T]) -> dict[str, T]:
            return dict(zip(methods, pool.map(work, methods.values()), strict=True))

        for index, frame in enumerate(frames, start if first is None else first):
            news = None if index == first else frame
            expected, answers = answers, each(partial(_receive, frame=news, clock=clock))
            if last is not None:
                copied = _mse(last, frame)
                predicted = {name: answer.predicted for name, answer in expected.items()}
                rows = {
                    name: FrameRow(index, name, *score, copied, ratio(score.mse, copied), now.surprise, now.cut)
                    for (name, score), now in zip(_scores(predicted, frame).items(), answers.values(), strict=True)
                }
                rolled = [line for going in under_way for line in _rollout_rows(going, index, frame)]
                took = {name: answer.seconds for name, answer in expected.items()}
                yield Step(index, frame, last, predicted, rows, rolled, took, under_way)
            under_way = [going for going in under_way if index - going.start < rollout]
            if rollout and (index - start) % every == 0:
                alone = each(partial(_roll_out, steps=rollout))
                under_way.append(Rollout(index, frame, alone))
            last = frame


def _receive(method: FramePredictor, *, frame: Frame | None, clock: Callable[[], float]) -> _Answer:
    began = clock()
    if frame is not None:
        method.update(frame)
    predicted = method.predict()
    seconds = clock() - began
    return _Answer(float(getattr(method, "surprise_", np.nan)), int(getattr(method, "cut_", 0)), predicted, seconds)


def _roll_out(method: FramePredictor, *, steps: int) -> NDArray[np.floating]:
    return method.predict(horizon=steps)


def ratio(mse: float, copy_mse: float) -> float:
    """How an error compares with that of copying; NaN where nothing moved."""
    return mse / copy_mse if copy_mse > 0 else float("nan")


def _mse(predicted: Frame, truth: Frame) -> float:
    return float(np.mean((predicted - truth) ** 2, dtype=np.float64))


def _scores(predicted: Mapping[str, NDArray[np.floating]], frame: Frame) -> dict[str, FrameScore]:
    return dict(zip(predicted, score_frames(np.stack(list(predicted.values())), frame), strict=True))


def _rollout_rows(going: Rollout, index: int, frame: Frame) -> Iterator[RolloutRow]:
    step = index - going.start
    copied = _mse(going.frame, frame)
    said = {name: frames[step - 1] for name, frames in going.predicted.items()}
    for name, score in _scores(said, frame).items():
        yield RolloutRow(going.start, name, step, index, *score, copied, ratio(score.mse, copied))
