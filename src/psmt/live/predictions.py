"""Prediction of whole frames in real time, and scores of the predictions when the true frames arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from psmt.data.contract import grey
from psmt.evaluation import mse
from psmt.evaluation.metrics import error_ratio
from psmt.surprise import N_FIRST, N_RECORD
from psmt.types import Levels
from psmt.utils.threads import one_thread
from psmt.video.events import EventDetector, Kind
from psmt.video.frames import has_colour
from psmt.video.model import FramePredictor

MAX_HORIZON = 10


class FramePrediction(NamedTuple):
    """Predicted frame, the frame from which it was predicted, and its step (number of the predicted frame)."""

    frame: Levels
    made_from: Levels
    of_step: int


class PredictionScore(NamedTuple):
    """Absolute error (height, width) and MSE of a predicted luma, and the MSE of copying the last known frame."""

    error: Levels
    mse: float
    copy_mse: float
    across_cut: bool = False  # whether a new scene began between prediction and frame, which no model can predict


class _PendingRollout(NamedTuple):
    made_from: Levels
    of_step: int
    future: Future[Levels]


class LivePredictor:
    """Predicts the frame that is `horizon` (1 to 10) frames ahead, and learns from every frame.

    The prediction of the next frame is a part of learning. Each frame beyond it costs as much time as learning. These
    frames are therefore predicted in another thread, from the newest frame, while the model keeps learning.

    Frames (height, width, 3) are predicted in colour if one of the first frames has colour, otherwise in grey. A fitted
    `model` keeps its parameters, and predicts in colour if it was fitted in colour.
    """

    def __init__(self, *, horizon: int = 1, device: str = "cpu", model: FramePredictor | None = None) -> None:
        self.horizon = horizon
        self.device = device if model is None else model.device
        self.model = model
        self._switch_rollouts()
        self.step = 0  # number of frames received
        self.prediction: FramePrediction | None = None
        self.expected: Levels | None = None  # the newest frame, as it was predicted from the frame before
        self._first: list[Levels] = []
        self._pending: dict[int, FramePrediction] = {}
        self._rollout: _PendingRollout | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="psmt-live-rollout")

    @property
    def n_awaited(self) -> int:
        """Number of frames until the first prediction."""
        return 0 if self.model is not None else N_FIRST - len(self._first)

    def reset(self) -> None:
        """Forget everything that was learned."""
        self.model, self._first, self.expected = None, [], None
        self._drop_predictions()

    def set_horizon(self, horizon: int) -> None:
        """Predict this number of frames ahead from now on."""
        self.horizon = horizon
        self._switch_rollouts()
        self._drop_predictions()
        if self.model is not None and self._first:
            self._predict_from(self._first[-1])

    def as_seen(self, frame: Levels) -> Levels:
        """Return the frame in the form that the model receives: grey if the model predicts in grey."""
        return grey(frame) if self.model is not None and len(self.model.shape_) == 2 else frame

    def receive(self, frame: Levels) -> PredictionScore | None:
        """Learn from a frame and predict ahead. Return the score of the earlier prediction of this frame, if any."""
        self.collect()
        self.step += 1
        frame = self.as_seen(frame)
        score = self._score(frame)
        if self.model is None:
            self._first.append(frame)
            if len(self._first) == N_FIRST:
                first = np.stack(self._first)
                # On a CPU, the correction network is too slow for the frame rate of most films.
                model = FramePredictor(correction=self.device != "cpu", device=self.device)
                self.model = model.fit(first if first.ndim == 3 or has_colour(first) else grey(first))
                frame = self.as_seen(frame)
                self._first = [frame]
                self._switch_rollouts()
        else:
            self.expected = self.model.predict()
            self.model.update(frame)
            self._first = [frame]
            if self.model.cut_:
                self._drop_predictions()
                score = None if score is None else score._replace(across_cut=True)
        if self.model is not None:
            self._predict_from(frame)
        return score

    def collect(self) -> bool:
        """Return whether a rollout has finished since the last call. If so, its last frame is the new `prediction`."""
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
        """Stop the thread that computes rollouts."""
        self._pool.shutdown(cancel_futures=True)

    def _score(self, frame: Levels) -> PredictionScore | None:
        predicted = self._pending.pop(self.step, None)
        if predicted is None:
            return None
        truth, guess, copy = (grey(levels) for levels in (frame, predicted.frame, predicted.made_from))
        return PredictionScore(np.abs(truth - guess), float(mse(guess, truth, axes=2)), float(mse(copy, truth, axes=2)))

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
    """Return the last frame of ``predict()``, computed in one thread to leave other cores to the learning model."""
    with one_thread():
        return cast(Levels, predict()[-1])


class CurvePoint(NamedTuple):
    """Point of the page's curves: `Scores.ratio`, the surprise (NaN without a prediction), and the kind of event."""

    step: int
    ratio: float | None
    surprise: float
    mark: Kind | None


class ScoreRow(NamedTuple):
    """Line of scores.csv. `seconds` is the time since the start, and `position` the time in the film."""

    step: int
    seconds: float
    position: float
    mse: float
    copy_mse: float
    surprise: float


class LiveEvent(NamedTuple):
    """Cut, flash or surprise. `strip` shows the frame before the event, the predicted frame and the true frame."""

    number: int
    step: int
    seconds: float
    position: float
    kind: Kind
    surprise: float
    strip: bytes = b""


@dataclass
class Scores:
    """Errors, curves, timeline and events of a session. `alarms_per_hour` is the false alarm rate at 25 frames/s."""

    alarms_per_hour: float = 1.0
    points: deque[CurvePoint] = field(default_factory=lambda: deque(maxlen=600))
    events: deque[LiveEvent] = field(default_factory=lambda: deque(maxlen=40))
    recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=50))
    rows: deque[ScoreRow] = field(default_factory=lambda: deque(maxlen=90_000))
    past_events: deque[LiveEvent] = field(default_factory=lambda: deque(maxlen=10_000))
    timeline: dict[int, float] = field(default_factory=dict)
    n_scored: int = 0

    def __post_init__(self) -> None:
        self._detector = EventDetector(self.alarms_per_hour / 90_000)

    @property
    def ratio(self) -> float | None:
        """MSE of the recent predictions divided by the MSE of copying, or None if copying makes no error."""
        own, copied = (sum(errors) for errors in zip(*self.recent, strict=True)) if self.recent else (0.0, 0.0)
        return error_ratio(own, copied) if copied > 0 else None

    @property
    def n_events(self) -> int:
        """Number of events so far, including those that are no longer stored."""
        return self.events[-1].number + 1 if self.events else 0

    def set_alarms(self, per_hour: float) -> None:
        """Change the expected rate of false alarms. The surprises so far still determine the threshold."""
        self.alarms_per_hour, before = per_hour, self._detector.get_state()
        self.__post_init__()
        self._detector.set_state(before)

    def add_score(self, score: PredictionScore) -> None:
        """Add the score of a prediction to the recent ones."""
        self.n_scored += 1
        self.recent.append((score.mse, score.copy_mse))

    def add_frame(
        self, step: int, last: Levels, frame: Levels, surprise: float, cut: bool, *, even: bool = True
    ) -> Kind | None:
        """Add a point to the curves. Return the kind of event that begins with this frame, or None.

        `last` is the frame before. `cut` says whether the model found a cut. No event is reported before `N_RECORD`
        predictions are scored, or if the time since the last frame is unusual (`even` is False). If the picture from
        before a cut returns, the cut is relabelled as a flash, in the curves and the events.
        """
        counts = even and self.n_scored >= N_RECORD
        kind = self._detector.observe(last, frame, surprise if counts else np.nan, cut and counts)
        self.points.append(CurvePoint(step, self.ratio, surprise, None if kind == "flash" else kind))
        if kind != "flash":
            return kind
        self.events[-1] = flash = self.events[-1]._replace(kind="flash")
        self.past_events[-1] = flash._replace(strip=b"")
        for back, point in enumerate(reversed(self.points), 1):
            if point.step == flash.step:
                self.points[-back] = point._replace(mark="flash")
                break
        return None

    def add_event(self, event: LiveEvent) -> None:
        """Store an event. Pictures are kept for the latest events only."""
        self.events.append(event)
        self.past_events.append(event._replace(strip=b""))

    def table(self, name: str) -> str:
        """Return "scores" or "events" as the text of a CSV file."""
        rows: tuple[tuple[Any, ...], ...] = tuple(self.rows if name == "scores" else self.past_events)
        fields = ScoreRow._fields if name == "scores" else LiveEvent._fields[:-1]
        numbers = ([f"{cell:.7g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows)
        return "".join(",".join(cells[: len(fields)]) + "\n" for cells in (fields, *numbers))
