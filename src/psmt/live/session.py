"""The thread that receives frames, predicts, learns, and publishes snapshots for the pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from time import monotonic
from typing import Any

import numpy as np
from PIL import Image

from psmt.errors import PSMTError
from psmt.live.feed import DEFAULT_RATE, Arrival, Feed
from psmt.live.messages import Control, pack
from psmt.live.patch import PatchModel, PatchView, PatchWorker
from psmt.live.predictions import MAX_HORIZON, CurvePoint, LiveEvent, LivePredictor, ScoreRow, Scores
from psmt.surprise import N_RECORD, StepClock
from psmt.types import Levels
from psmt.utils.constraints import check_count
from psmt.utils.threads import one_blas_thread
from psmt.video import FramePredictor

_BRIGHTEST = 0.4  # absolute error that is drawn brightest


@dataclass(frozen=True)
class LiveSnapshot:
    """What the pages show at one time. It is immutable, because several threads share it."""

    number: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    strip: bytes = b""
    points: tuple[CurvePoint, ...] = ()
    events: tuple[LiveEvent, ...] = ()
    patch: PatchView = field(default_factory=PatchView)
    timeline: bytes = b""


class Session:
    """The models that learn from a feed, and the thread in which they run.

    `horizon` is the number of frames of the source to predict ahead, 1 to 10. If frames are dropped, the model makes
    fewer, longer steps to the same time ahead. `model` is a fitted model to start from. `save_to` is the only file to
    which pages can save the model. `choices` are the sources from which pages can choose. Each has a name and a
    function that opens its feed. `listeners` are called after each new snapshot and must not block.
    """

    def __init__(
        self,
        feed: Feed,
        *,
        horizon: int = 1,
        device: str = "cpu",
        model: FramePredictor | None = None,
        save_to: Path | None = None,
        choices: Mapping[str, Callable[[], Feed]] | None = None,
    ) -> None:
        if check_count("horizon", horizon) > MAX_HORIZON:
            raise PSMTError(f"horizon={horizon} is more than {MAX_HORIZON} frames ahead; use 1 to {MAX_HORIZON}")
        self.feed = feed
        self.snapshot = LiveSnapshot()
        self.listeners: set[Callable[[], None]] = set()
        self._save_to = save_to
        self._device = device
        self._frames = LivePredictor(horizon=horizon, device=device, model=model)
        self._horizon = horizon
        self._choices = dict(choices or {})
        self._chosen = 0
        self._centre = (0.5, 0.5)
        self._patch = PatchWorker(PatchModel(feed.shape, device=device))
        self._clock = StepClock()
        self._busy: deque[float] = deque(maxlen=30)
        self._timeline, self._bin = b"", 0
        self.scores = Scores()
        self._controls: Queue[Control] = Queue(maxsize=64)
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="psmt-live-model", daemon=True)
        self._started = monotonic()
        self._epoch = 0
        self._notice: dict[str, Any] | None = None
        self._latency = 0.0
        self._times: deque[float] = deque(maxlen=30)
        self._strip = b""
        self._error: Levels = np.zeros(feed.shape, np.float32)
        self._last_frame = self._error
        self._arrived = self._position = 0.0

    def start(self) -> None:
        """Start the feed and the thread of the models."""
        self.feed.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the feed and the thread of the models. Wait at most ten seconds for the thread."""
        self._stopped.set()
        self.feed.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=10.0)

    def submit(self, control: Control) -> None:
        """Queue a command of a page, to be executed before the next frame. It is ignored if the queue is full."""
        with suppress(Full):
            self._controls.put_nowait(control)

    def _run(self) -> None:
        # The matrices are small: a second BLAS thread would only take the server's core.
        with one_blas_thread():
            while not self._stopped.is_set():
                try:
                    self._turn()
                except Exception as error:  # whatever it was, the page must show it
                    self._notify(f"The model failed ({error}) and starts again.", bad=True)
                    self._reset()
                    self._publish()
            self._frames.close()
            self._patch.close()

    def _turn(self) -> None:
        changed = self._execute_controls()
        arrival = self.feed.frames.take(0.05)
        changed |= self._patch.collect()
        if arrival is not None:
            self._process(arrival)
        elif self._frames.collect():
            self._draw(self._last_frame)
        elif not changed and self._feed_state().items() <= self.snapshot.state.items():
            return
        self._publish()

    def _process(self, arrival: Arrival) -> None:
        frame = self._frames.as_seen(arrival.frame)
        # While stepping, the page shows the effect of each single frame.
        self._patch.receive(frame, self._frames.horizon, wait=self.feed.paused)
        even, began = self._clock.is_even(arrival.position), monotonic()
        self._keep_horizon()
        score = self._frames.receive(frame)
        if score is not None:
            self._error = score.error
            if not score.across_cut:
                self.scores.add_score(score)
        model, last = self._frames.model, self._last_frame
        surprise, cut = (np.nan, False) if model is None else (model.surprise_, model.cut_)
        kind = self.scores.add_frame(self._frames.step, last, frame, surprise, cut, even=even)
        self._draw(frame)
        self._position = arrival.position if self.feed.duration else arrival.time - self._started
        when = (self._frames.step, arrival.time - self._started, self._position)
        if kind is not None:
            strip = draw_row(last, self._frames.expected, frame)
            self.scores.add_event(LiveEvent(self.scores.n_events, *when, kind, surprise, strip))
        errors = (np.nan, np.nan) if score is None else (score.mse, score.copy_mse)
        self.scores.rows.append(ScoreRow(*when, *errors, surprise))
        self._mark_timeline(surprise if even else np.nan)
        now = monotonic()
        self._times.append(now)
        self._arrived, self._latency = arrival.time, now - arrival.time
        if not self.feed.paused:
            self._busy.append(now - began)
            if len(self._busy) >= 10:
                self.feed.keep_up(float(np.quantile(self._busy, 0.8)))

    def _keep_horizon(self) -> None:
        """Set the number of steps to predict. They span `_horizon` frames of the source, including dropped ones."""
        rate, seconds = self.feed.rate or DEFAULT_RATE, self._clock.seconds
        steps = self._horizon if seconds is None else self._horizon / (rate * seconds)
        # A margin keeps the number from changing back and forth.
        wanted = min(max(round(steps), 1), MAX_HORIZON)
        if abs(steps - self._frames.horizon) > 0.7 and wanted != self._frames.horizon:
            self._frames.set_horizon(wanted)

    def _mark_timeline(self, surprise: float) -> None:
        """Add a surprise to the timeline, which holds the largest surprise in each of the last 600 time bins."""
        bins, width = self.scores.timeline, max((self.feed.duration or 400.0) / 400, 0.25)
        bin_ = int(self._position / width)
        if bin_ != self._bin or not self._timeline:
            self._bin = bin_
            shown = [[at, round(most, 2)] for at, most in bins.items()]
            self._timeline = pack({"kind": "timeline", "width": width, "bins": shown})
        bins[bin_] = max(bins.get(bin_, 0.0), surprise if np.isfinite(surprise) else 0.0)
        if len(bins) > 600:
            del bins[next(iter(bins))]

    def _draw(self, frame: Levels) -> None:
        self._last_frame = frame
        prediction = self._frames.prediction
        self._strip = draw_strip(frame, None if prediction is None else prediction.frame, self._error)

    def _execute_controls(self) -> bool:
        """Execute the queued commands of the pages. Return whether there were any."""
        found = False
        with suppress(Empty):
            while True:
                name, value = self._controls.get_nowait()
                found = True
                match name:
                    case "pause" | "play" | "step":
                        getattr(self.feed, name)()
                    case "reset":
                        self._reset()
                    case "horizon":
                        self._horizon = value
                        self._keep_horizon()
                        self.scores.recent.clear()
                    case "seek":
                        self.feed.seek(value)
                    case "speed":
                        self.feed.speed = value
                    case "alarms":
                        self.scores.set_alarms(value)
                    case "patch":
                        self._move_patch(tuple(value))
                    case "source":
                        self._choose(value)
                    case "save":
                        self._save()
        return found

    def _reset(self) -> None:
        """Forget everything that was learned and counted."""
        self._frames.reset()
        self._move_patch(self._centre)
        self.scores = Scores(self.scores.alarms_per_hour)
        self._clock, self._timeline = StepClock(), b""
        self._error = np.zeros(self.feed.shape, np.float32)
        self.feed.n_dropped = 0
        self._epoch += 1

    def _move_patch(self, centre: tuple[float, float]) -> None:
        """Start a new model for the patch at `centre`."""
        self._patch.close()
        self._centre, version = centre, self._patch.model.version
        self._patch = PatchWorker(PatchModel(self.feed.shape, device=self._device, centre=centre, version=version))

    def _choose(self, number: int) -> None:
        """Change to the source with this number. What was learned from the present source is forgotten."""
        names = list(self._choices)
        if number >= len(names) or number == self._chosen:
            return
        try:
            feed = self._choices[names[number]]()
        except (PSMTError, ValueError, OSError) as error:
            self._notify(f"{names[number]} could not be opened: {str(error)[:200]}", bad=True)
            return
        self.feed.stop()
        self.feed, self._chosen, self._frames.step = feed, number, 0
        self._last_frame = np.zeros(feed.shape, np.float32)
        self._busy.clear()
        self._reset()
        self._strip = b""
        feed.start()

    def _save(self) -> None:
        if self._save_to is None:
            self._notify("There is no file to save to: start psmt live with --save FILE.", bad=True)
        elif self._frames.model is None:
            self._notify("There is nothing to save yet: the model has not seen enough frames.", bad=True)
        else:
            try:
                self._frames.model.save(self._save_to)
                self._notify(f"The model was saved to {self._save_to.name}.")
            except Exception as error:  # the model must survive whatever saving raises
                cause = (isinstance(error, OSError) and error.strerror) or str(error)
                self._notify(f"The model could not be saved to {self._save_to.name}: {cause[:200]}", bad=True)

    def _notify(self, text: str, *, bad: bool = False) -> None:
        number = 1 if self._notice is None else self._notice["number"] + 1
        self._notice = {"number": number, "text": text, "bad": bad}

    def _feed_state(self) -> dict[str, Any]:
        return {"paused": self.feed.paused, "ended": self.feed.ended, "problem": self.feed.error}

    def _publish(self) -> None:
        frames, scores, prediction, pace = self._frames, self.scores, self._frames.prediction, None
        if len(self._times) > 1 and not self.feed.paused:
            pace = (len(self._times) - 1) / max(self._times[-1] - self._times[0], 1e-6)
        state = {
            "epoch": self._epoch,
            "step": frames.step,
            "source": self.feed.name,
            "shape": self.feed.shape,
            "original": self.feed.original,
            "rate": self.feed.rate,
            "duration": self.feed.duration,
            "speed": self.feed.speed,
            "position": self._position,
            "sources": list(self._choices),
            "chosen": self._chosen,
            "pace": pace,
            **self._feed_state(),
            "dropped": self.feed.n_dropped,
            "latency": 1000.0 * self._latency,
            "came": self._arrived,
            "horizon": self._horizon,
            "steps": frames.horizon,
            "step_seconds": self._clock.seconds,
            "alarms": scores.alarms_per_hour,
            "record": N_RECORD,
            "of_step": None if prediction is None else prediction.of_step,
            "ratio": scores.ratio,
            "n_recent": len(scores.recent),
            "n_events": scores.n_events,
            "awaits_frames": frames.n_awaited,
            "awaits_patches": self._patch.model.n_awaited,
            "patch_side": self._patch.model.side,
            "patch_corner": (self._patch.model.row, self._patch.model.column),
            "saves": self._save_to is not None,
            "notice": self._notice,
        }
        self.snapshot = LiveSnapshot(
            self.snapshot.number + 1,
            state,
            self._strip,
            tuple(scores.points),
            tuple(scores.events),
            self._patch.shown,
            self._timeline,
        )
        for listener in tuple(self.listeners):
            listener()


def draw_strip(frame: Levels, predicted: Levels | None, error: Levels) -> bytes:
    """Return a JPEG file of three pictures side by side: frame, prediction, and the root of the absolute error."""
    return draw_row(frame, predicted, np.sqrt(error / np.float32(_BRIGHTEST)))


def draw_row(*parts: Levels | None) -> bytes:
    """Return a JPEG file of pictures (height, width) or (height, width, 3), side by side. None becomes plain grey."""
    known = [part for part in parts if part is not None]
    shape = max((part.shape for part in known), key=len)
    levels = np.full((len(parts), *shape), 0.5, np.float32)
    for place, part in zip(levels, parts, strict=True):
        if part is not None:
            place[:] = part if part.shape == shape else part[:, :, None]
    levels = np.concatenate(list(np.clip(levels, 0, 1)), axis=1)
    file = BytesIO()
    Image.fromarray((levels * np.float32(255) + np.float32(0.5)).astype(np.uint8)).save(file, "JPEG", quality=85)
    return file.getvalue()
