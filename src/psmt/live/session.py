"""The thread that receives frames, predicts and learns, and publishes snapshots for the pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from time import monotonic
from typing import Any

import numpy as np

from psmt.errors import PSMTError
from psmt.live.feed import Arrival, Feed
from psmt.live.messages import Control
from psmt.live.patch import PatchModel, PatchView, PatchWorker
from psmt.live.pictures import Recording, draw_strip
from psmt.live.predictions import EXTRAPOLATIONS, MAX_HORIZON, CurvePoint, FramePredictor, LiveEvent, Scores
from psmt.model import PSMT
from psmt.types import Levels
from psmt.utils.constraints import check_count
from psmt.utils.threads import one_blas_thread
from psmt.video import FramePSMT


@dataclass(frozen=True)
class LiveSnapshot:
    """What the pages show at one time. Threads share it, so nothing in it changes."""

    number: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    strip: bytes = b""
    points: tuple[CurvePoint, ...] = ()
    events: tuple[LiveEvent, ...] = ()
    patch: PatchView = field(default_factory=PatchView)


class Session:
    """The models of a feed, and the thread in which they run.

    `horizon` is 1 to 10 frames. A fitted `model` is of whole frames or of the centre patch. `save_to` is the only file
    that pages can save the model to. `listeners` are called after each new snapshot, and must return at once.
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
        self.recording = Recording()
        self.snapshot = LiveSnapshot()
        self.listeners: set[Callable[[], None]] = set()
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
        self._started = monotonic()
        self._epoch = 0
        self._notice: dict[str, Any] | None = None
        self._latency = 0.0
        self._times: deque[float] = deque(maxlen=30)
        self._strip = b""
        self._error: Levels = np.zeros((feed.size, feed.size), np.float32)
        self._last_frame = self._error
        self._arrived = 0.0

    def start(self) -> None:
        """Start to read and to learn."""
        self.feed.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop both threads."""
        self._stopped.set()
        self.feed.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=10.0)

    def submit(self, control: Control) -> None:
        """Execute a control before the next frame. If too many are waiting, it is ignored."""
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
        frame = arrival.frame
        # While stepping, the page shows the effect of each single frame.
        self._patch.receive(frame, self._frames.horizon, wait=self.feed.paused)
        score = self._frames.receive(frame)
        if score is not None:
            self._error = score.error
            if not score.across_cut:
                self._scores.recent.append((score.mse, score.copy_mse))
        model = self._frames.model
        surprise, cut = (np.nan, False) if model is None else (model.surprise_, model.cut_)
        kind = self._scores.add_frame(self._frames.step, self._last_frame, frame, surprise, cut)
        self._draw(frame)
        if kind is not None:
            self._scores.add_event(self._frames.step, kind, surprise, arrival.time - self._started, self._strip)
        now = monotonic()
        self.recording.add(self._strip, now)
        self._times.append(now)
        self._arrived, self._latency = arrival.time, now - arrival.time

    def _draw(self, frame: Levels) -> None:
        self._last_frame = frame
        prediction = self._frames.prediction
        self._strip = draw_strip(frame, None if prediction is None else prediction.frame, self._error)

    def _execute_controls(self) -> bool:
        """Execute the waiting controls; return whether there were any."""
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
                        self._frames.set_horizon(value)
                        self._scores.recent.clear()
                    case "extrapolation":
                        self._frames.set_extrapolation(value)
                        self._patch.set_extrapolation(value)
                        self._scores.recent.clear()
                    case "save":
                        self._save()
        return found

    def _reset(self) -> None:
        """Forget everything that was learned and counted."""
        self._frames.reset()
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
            self._notify("There is no file to save to: start psmt live with --save FILE.", bad=True)
        elif self._frames.model is None:
            self._notify("There is nothing to save yet: the model has not seen enough frames.", bad=True)
        else:
            try:
                self._frames.model.save(self._save_to)
                self._notify(f"The model was saved to {self._save_to.name}.")
            except OSError as error:
                self._notify(f"The model could not be saved to {self._save_to.name}: {error.strerror}.", bad=True)

    def _notify(self, text: str, *, bad: bool = False) -> None:
        number = 1 if self._notice is None else self._notice["number"] + 1
        self._notice = {"number": number, "text": text, "bad": bad}

    def _feed_state(self) -> dict[str, Any]:
        return {"paused": self.feed.paused, "ended": self.feed.ended, "problem": self.feed.error}

    def _publish(self) -> None:
        frames, scores, prediction, pace = self._frames, self._scores, self._frames.prediction, None
        if len(self._times) > 1 and not self.feed.paused:
            pace = (len(self._times) - 1) / max(self._times[-1] - self._times[0], 1e-6)
        state = {
            "epoch": self._epoch,
            "step": frames.step,
            "source": self.feed.name,
            "size": self.feed.size,
            "rate": self.feed.rate,
            "pace": pace,
            **self._feed_state(),
            "dropped": self.feed.n_dropped,
            "latency": 1000.0 * self._latency,
            "came": self._arrived,
            "horizon": frames.horizon,
            "of_step": None if prediction is None else prediction.of_step,
            "extrapolation": frames.extrapolation,
            "extrapolations": EXTRAPOLATIONS,
            "ratio": scores.ratio,
            "n_recent": len(scores.recent),
            "n_events": scores.n_events,
            "awaits_frames": frames.n_awaited,
            "awaits_patches": self._patch.model.n_awaited,
            "patch_side": self._patch.model.cutter.patch_size,
            "saves": self._save_to is not None,
            "recorded": self.recording.seconds,
            "notice": self._notice,
        }
        self.snapshot = LiveSnapshot(
            self.snapshot.number + 1, state, self._strip, tuple(scores.points), tuple(scores.events), self._patch.shown
        )
        for listener in tuple(self.listeners):
            listener()
