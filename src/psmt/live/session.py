"""One worker that receives frames, predicts and learns, and publishes what the page shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from time import monotonic
from typing import Any

import numpy as np

from psmt.errors import PSMTError
from psmt.live.feed import Arrival, Feed
from psmt.live.frame_predictor import EXTRAPOLATIONS, MAX_HORIZON, FramePredictor
from psmt.live.messages import Control
from psmt.live.patch_model import PatchModel
from psmt.live.patch_worker import NOTHING_SHOWN, PatchWorker, Shown
from psmt.live.recording import Recording
from psmt.live.scores import Moment, Point, Scores
from psmt.live.strip import ERROR_SCALE, draw_strip
from psmt.model import PSMT
from psmt.types import Levels
from psmt.utils.threads import one_blas_thread
from psmt.utils.validation import check_count
from psmt.video import FramePSMT

_PATIENCE = 0.05
"""Seconds between two looks at what was asked while no frame comes."""


@dataclass(frozen=True)
class Snapshot:
    """What the page shows at one time. Threads share it, so nothing in it changes."""

    number: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    strip: bytes = b""
    """Frame, expectation and error beside each other, as JPEG."""
    points: tuple[Point, ...] = ()
    moments: tuple[Moment, ...] = ()
    patch: Shown = NOTHING_SHOWN


class Session:
    """The models, and the thread that they live in.

    Parameters
    ----------
    feed : Feed
        Where frames come from.
    horizon : int
        Frames ahead, 1 to 10.
    device : str
        Where the models compute.
    model : FramePSMT or PSMT, optional
        One that has learned already: of whole frames, or of the centre patch.
    save_to : Path, optional
        The only file that anyone can have a model saved to.
    """

    def __init__(
        self,
        feed: Feed,
        *,
        horizon: int = 1,
        device: str = "cpu",
        model: FramePSMT | PSMT | None = None,
        save_to: Path | None = None,
    ) -> None:
        if check_count("horizon", horizon) > MAX_HORIZON:
            raise PSMTError(f"horizon={horizon} is more than {MAX_HORIZON} frames ahead; use 1 to {MAX_HORIZON}")
        self.feed = feed
        self.recording = Recording(feed.rate)
        self.snapshot = Snapshot()
        self.listeners: set[Callable[[], None]] = set()
        """Called from the worker when there is a new snapshot; they must not wait."""
        self._save_to = save_to
        self._device = device
        self._frames = FramePredictor(
            horizon=horizon, device=device, model=model if isinstance(model, FramePSMT) else None
        )
        self._patch = self._new_patch(model if isinstance(model, PSMT) else None)
        self._scores = Scores()
        self._controls: Queue[Control] = Queue(maxsize=64)
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="psmt-live-model", daemon=True)
        self._began = monotonic()
        self._epoch = 0
        self._notices = 0
        self._notice: dict[str, Any] | None = None
        self._latency = 0.0
        self._times: deque[float] = deque(maxlen=30)
        self._strip = b""
        self._error: Levels = np.zeros((feed.size, feed.size), np.float32)
        self._last_frame = self._error
        self._came = 0.0

    def start(self) -> None:
        """Begin to read and to learn."""
        self.feed.start()
        self._thread.start()

    def stop(self) -> None:
        """End both threads."""
        self._stopped.set()
        self.feed.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=10.0)

    def submit(self, control: Control) -> None:
        """Have something done between two frames; too much at once is not done at all."""
        try:
            self._controls.put_nowait(control)
        except Full:
            return

    # The worker

    def _run(self) -> None:
        # Small matrices at a high rate: a second BLAS thread would only take the server's core.
        with one_blas_thread():
            while not self._stopped.is_set():
                try:
                    self._turn()
                except Exception as error:  # the page must say it, whatever it was
                    self._tell(f"The model failed ({error}) and begins anew.", bad=True)
                    self._reset()
                    self._publish()
            self._frames.close()
            self._patch.close()

    def _turn(self) -> None:
        news = self._obey()
        arrival = self.feed.frames.take(_PATIENCE)
        news |= self._patch.collect()
        if arrival is not None:
            self._work(arrival)
        elif self._frames.collect():
            self._draw(self._last_frame)
        elif not news and self._state_of_feed() == self._published_feed:
            return
        self._publish()

    def _work(self, arrival: Arrival) -> None:
        frame = arrival.frame
        # Somebody who steps wants to see what each frame does.
        self._patch.receive(frame, self._frames.horizon, wait=self.feed.paused)
        outcome = self._frames.receive(frame)
        if outcome is not None:
            self._error = outcome.error
            if not outcome.across_cut:
                self._scores.judge(outcome.mse, outcome.copy_mse)
        model = self._frames.model
        surprise, cut = (np.nan, False) if model is None else (model.surprise_, model.cut_)
        kind = self._scores.add(self._frames.step, self._last_frame, frame, surprise, cut)
        self._draw(frame)
        if kind is not None:
            self._scores.keep(self._frames.step, kind, surprise, arrival.time - self._began, self._strip)
        now = monotonic()
        self.recording.add(self._strip, now)
        self._times.append(now)
        self._came, self._latency = arrival.time, now - arrival.time

    def _draw(self, frame: Levels) -> None:
        self._last_frame = frame
        expected = self._frames.expectation
        self._strip = draw_strip(frame, None if expected is None else expected.frame, self._error)

    def _obey(self) -> bool:
        """Do what was asked; return whether there was anything."""
        done = False
        while True:
            try:
                name, value = self._controls.get_nowait()
            except Empty:
                return done
            done = True
            match name:
                case "pause":
                    self.feed.pause()
                case "play":
                    self.feed.play()
                case "step":
                    self.feed.step()
                case "reset":
                    self._reset()
                case "horizon":
                    self._frames.look(value)
                    self._scores.forget_errors()
                case "extrapolation":
                    self._frames.choose(value)
                    self._patch.choose(value)
                    self._scores.forget_errors()
                case "save":
                    self._save()

    def _reset(self) -> None:
        """Forget all that was learned and counted."""
        self._frames.forget()
        self._patch.close()
        self._patch = self._new_patch(None)
        self._scores = Scores()
        self._error = np.zeros_like(self._error)
        self.feed.n_dropped = 0
        self._epoch += 1

    def _new_patch(self, model: PSMT | None) -> PatchWorker:
        return PatchWorker(PatchModel(self.feed.size, device=self._device, model=model))

    def _save(self) -> None:
        if self._save_to is None:
            self._tell("Nobody said where to: start with --save FILE.", bad=True)
        elif self._frames.model is None:
            self._tell("There is nothing to save yet: the model has not seen enough frames.", bad=True)
        else:
            try:
                self._frames.model.save(self._save_to)
                self._tell(f"The model was saved to {self._save_to.name}.")
            except OSError as error:
                self._tell(f"The model could not be saved to {self._save_to.name}: {error.strerror}.", bad=True)

    def _tell(self, text: str, *, bad: bool = False) -> None:
        self._notices += 1
        self._notice = {"number": self._notices, "text": text, "bad": bad}

    # What is published

    def _state_of_feed(self) -> tuple[Any, ...]:
        return self.feed.paused, self.feed.ended, self.feed.error

    _published_feed: tuple[Any, ...] = ()

    @property
    def _pace(self) -> float | None:
        """Frames a second that were worked on lately."""
        if len(self._times) < 2 or self.feed.paused:
            return None
        return (len(self._times) - 1) / max(self._times[-1] - self._times[0], 1e-6)

    def _publish(self) -> None:
        self._published_feed = self._state_of_feed()
        frames, scores, expected = self._frames, self._scores, self._frames.expectation
        state = {
            "epoch": self._epoch,
            "step": frames.step,
            "source": self.feed.name,
            "size": self.feed.size,
            "rate": self.feed.rate,
            "pace": self._pace,
            "paused": self.feed.paused,
            "ended": self.feed.ended,
            "problem": self.feed.error,
            "dropped": self.feed.n_dropped,
            "latency": 1000.0 * self._latency,
            "came": self._came,
            "horizon": frames.horizon,
            "of_step": None if expected is None else expected.of_step,
            "extrapolation": frames.extrapolation,
            "extrapolations": EXTRAPOLATIONS,
            "ratio": scores.ratio,
            "n_recent": scores.n_recent,
            "n_events": scores.n_events,
            "awaits_frames": frames.n_awaited,
            "awaits_patches": self._patch.model.n_awaited,
            "patch_side": self._patch.model.cutter.patch_size,
            "saves": self._save_to is not None,
            "recorded": self.recording.seconds,
            "error_scale": ERROR_SCALE,
            "notice": self._notice,
        }
        self.snapshot = Snapshot(
            self.snapshot.number + 1,
            state,
            self._strip,
            tuple(scores.points),
            tuple(scores.moments),
            self._patch.shown,
        )
        for listener in tuple(self.listeners):
            listener()
