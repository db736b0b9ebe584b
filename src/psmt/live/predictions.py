"""Predict whole frames of a film that never waits, and score the predictions when their frames arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from psmt.evaluation import mse
from psmt.evaluation.metrics import error_ratio
from psmt.types import Levels
from psmt.utils.threads import one_thread
from psmt.video.events import EventDetector, Kind
from psmt.video.model import FRAME_EXTRAPOLATIONS, FramePSMT

N_FIRST = 8
"""Frames that a new model is fitted to: a third of a second."""

MAX_HORIZON = 10
EXTRAPOLATIONS = tuple(FRAME_EXTRAPOLATIONS)


class FramePrediction(NamedTuple):
    """A predicted frame, the newest frame it was predicted from, and the step at which the true one arrives."""

    frame: Levels
    made_from: Levels
    of_step: int


class PredictionScore(NamedTuple):
    """Absolute error (size, size) of a prediction, and its squared error beside that of copying."""

    error: Levels
    mse: float
    copy_mse: float
    across_cut: bool = False
    """Whether a new scene began in between. Such an error is unavoidable, and larger than all others together."""


class _PendingRollout(NamedTuple):
    made_from: Levels
    of_step: int
    future: Future[Levels]


class FramePredictor:
    """Predicts the frame that is `horizon` (1 to 10) frames ahead, and learns from every frame.

    The next frame is predicted as a part of learning. Every frame beyond it costs as much time as learning does.
    Rollouts therefore run in another thread, each from the newest frame at its start, while the model keeps learning.

    A fitted `model` continues with its own extrapolation and device.
    """

    def __init__(self, *, horizon: int = 1, device: str = "cpu", model: FramePSMT | None = None) -> None:
        self.horizon = horizon
        self.device = device if model is None else model.device
        self.extrapolation = "phase" if model is None else model.extrapolation
        self.model = model
        self._switch_rollouts()
        self.step = 0  # number of frames received
        self.prediction: FramePrediction | None = None
        self._first: list[Levels] = []
        self._pending: dict[int, FramePrediction] = {}
        self._rollout: _PendingRollout | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="psmt-live-rollout")

    @property
    def n_awaited(self) -> int:
        """Number of frames that are needed before the first prediction."""
        return 0 if self.model is not None else N_FIRST - len(self._first)

    def reset(self) -> None:
        """Forget everything that was learned."""
        self.model, self._first = None, []
        self._drop_predictions()

    def set_extrapolation(self, extrapolation: str) -> None:
        """Start again with another extrapolation."""
        self.extrapolation = extrapolation
        self.reset()

    def set_horizon(self, horizon: int) -> None:
        """Predict this many frames ahead from now on."""
        self.horizon = horizon
        self._switch_rollouts()
        self._drop_predictions()
        if self.model is not None and self._first:
            self._predict_from(self._first[-1])

    def receive(self, frame: Levels) -> PredictionScore | None:
        """Learn from a frame and predict ahead. Return the score of the prediction of this frame, if there was one."""
        self.collect()
        self.step += 1
        score = self._score(frame)
        if self.model is None:
            self._first.append(frame)
            if len(self._first) == N_FIRST:
                # On a CPU, the correction network would take the time that the film does not leave.
                model = FramePSMT(extrapolation=self.extrapolation, correction=self.device != "cpu", device=self.device)
                self.model = model.fit(np.stack(self._first))
                self._switch_rollouts()
        else:
            self.model.update(frame)
            self._first = [frame]
            if self.model.cut_:
                self._drop_predictions()
                score = None if score is None else score._replace(across_cut=True)
        if self.model is not None:
            self._predict_from(frame)
        return score

    def collect(self) -> bool:
        """Return whether a rollout has finished since the last call; if so, it becomes `prediction`."""
        if self._rollout is None or not self._rollout.future.done():
            return False
        made_from, of_step, future = self._rollout
        self._rollout = None
        self._show(FramePrediction(future.result(), made_from, of_step))
        if of_step != self.step + self.horizon:
            # Frames arrived meanwhile. While the film is paused, no frame would start the next rollout.
            self._predict_from(self._first[-1])
        return True

    def close(self) -> None:
        """Stop the thread of rollouts."""
        self._pool.shutdown(cancel_futures=True)

    def _score(self, frame: Levels) -> PredictionScore | None:
        predicted = self._pending.pop(self.step, None)
        if predicted is None:
            return None
        own, copied = (float(mse(guess, frame, axes=2)) for guess in (predicted.frame, predicted.made_from))
        return PredictionScore(np.abs(frame - predicted.frame), own, copied)

    def _predict_from(self, frame: Levels) -> None:
        assert self.model is not None
        if self.horizon == 1:
            self._show(FramePrediction(self.model.predict(), frame, self.step + 1))
        elif self._rollout is None:
            future = self._pool.submit(_roll_out, self.model.predict_later(self.horizon))
            self._rollout = _PendingRollout(frame, self.step + self.horizon, future)

    def _show(self, prediction: FramePrediction) -> None:
        self.prediction = prediction
        # A rollout that finishes after its frame has arrived is shown but not scored.
        if prediction.of_step > self.step:
            self._pending[prediction.of_step] = prediction

    def _switch_rollouts(self) -> None:
        if self.model is not None:
            self.model.rollouts = self.horizon > 1

    def _drop_predictions(self) -> None:
        self.prediction, self._rollout = None, None
        self._pending.clear()


def _roll_out(predict: Callable[[], Levels]) -> Levels:
    """Return the last of the predicted frames, using one thread: the other cores are for the model that learns."""
    with one_thread():
        last: Levels = predict()[-1]
    return last


class CurvePoint(NamedTuple):
    """One frame in the curves. `ratio` is None without errors to compare, `surprise` NaN without a prediction."""

    step: int
    ratio: float | None
    surprise: float
    mark: Kind | None


@dataclass(frozen=True)
class LiveEvent:
    """A cut, flash or surprise: when it happened (`seconds` since the start), and the strip shown at that time."""

    number: int
    step: int
    kind: Kind
    surprise: float
    seconds: float
    strip: bytes


@dataclass
class Scores:
    """Recent squared errors (of predictions and of copying), the curves, and the events."""

    points: deque[CurvePoint] = field(default_factory=lambda: deque(maxlen=600))
    events: deque[LiveEvent] = field(default_factory=lambda: deque(maxlen=40))
    recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=50))
    _detector: EventDetector = field(default_factory=EventDetector)

    @property
    def ratio(self) -> float | None:
        """MSE / MSE of copying over the recent predictions; None if copying made no error."""
        own, copied = (sum(errors) for errors in zip(*self.recent, strict=True)) if self.recent else (0.0, 0.0)
        return error_ratio(own, copied) if copied > 0 else None

    @property
    def n_events(self) -> int:
        """Number of events so far, including those no longer stored."""
        return self.events[-1].number + 1 if self.events else 0

    def add_frame(self, step: int, last: Levels, frame: Levels, surprise: float, cut: bool) -> Kind | None:
        """Add a point to the curves. Return the kind of event that this frame starts, if any.

        If the picture returns to what it was before a cut, that cut becomes a flash, in the curves and the events.
        """
        kind = self._detector.observe(last, frame, surprise, cut)
        self.points.append(CurvePoint(step, self.ratio, surprise, None if kind == "flash" else kind))
        if kind != "flash":
            return kind
        self.events[-1] = flash = replace(self.events[-1], kind="flash")
        for back, point in enumerate(reversed(self.points), 1):
            if point.step == flash.step:
                self.points[-back] = point._replace(mark="flash")
                break
        return None

    def add_event(self, step: int, kind: Kind, surprise: float, seconds: float, strip: bytes) -> None:
        """Store an event."""
        self.events.append(LiveEvent(self.n_events, step, kind, surprise, seconds, strip))
