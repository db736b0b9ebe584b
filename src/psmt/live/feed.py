"""Where live frames come from: a film at its own rate, a stream, or the camera of a browser."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Condition, Event, Thread
from time import monotonic
from typing import NamedTuple

import numpy as np

from psmt.data import FrameSource
from psmt.data.patches import PatchCutter
from psmt.errors import PSMTError
from psmt.live.latest import Latest
from psmt.types import Levels
from psmt.video import FrameReader

DEFAULT_SIZE = 200
"""Side of the frame, where the source is at least as large."""

DEFAULT_RATE = 25.0
"""Frames a second of films that do not tell."""

_LATEST_START = 1.0
"""Seconds that a film may lag behind its own clock; after that it goes on from where it is."""

_PATIENCE = 0.1
"""Seconds between two looks at whether to stop."""


class Arrival(NamedTuple):
    """A frame, and when it came."""

    frame: Levels
    """(size, size), white at 1."""
    time: float
    """Seconds of `time.monotonic`."""


class Feed(ABC):
    """Frames as they come, the newest only. Pausing and stepping belong to it, since they hold the frames back."""

    def __init__(self, name: str, size: int, rate: float | None) -> None:
        self.name = name
        self.size = size
        self.rate = rate
        """Frames a second, where it is known."""
        self.frames: Latest[Arrival] = Latest()
        self.n_dropped = 0
        self.ended = False
        self.error: str | None = None
        self._stopped = Event()
        self._gate = Condition()
        self._paused = False
        self._n_steps = 0

    @property
    def paused(self) -> bool:
        """Whether frames are held back."""
        return self._paused

    def pause(self) -> None:
        """Hold frames back from now on."""
        with self._gate:
            self._paused = True

    def play(self) -> None:
        """Let frames through again."""
        with self._gate:
            self._paused, self._n_steps = False, 0
            self._gate.notify_all()

    def step(self) -> None:
        """Pause, and let one frame through."""
        with self._gate:
            self._paused = True
            self._n_steps = min(self._n_steps + 1, 10)
            self._gate.notify_all()

    @abstractmethod
    def start(self) -> None:
        """Begin to read."""

    def stop(self) -> None:
        """End reading."""
        self._stopped.set()
        with self._gate:
            self._gate.notify_all()

    def _may_pass(self) -> bool:
        """Whether a frame may pass now; if only for a step, that step is used up."""
        with self._gate:
            if self._paused and self._n_steps:
                self._n_steps -= 1
                return True
            return not self._paused

    def _pass_on(self, frame: Levels) -> None:
        self.n_dropped += self.frames.put(Arrival(frame, monotonic()))


class BrowserCamera(Feed):
    """Frames that a page sends, which has asked its user for the camera."""

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        FrameReader(size)
        super().__init__("camera of the browser", size, None)

    def start(self) -> None:
        """Nothing: pages send when they like."""

    def offer(self, pixels: bytes) -> None:
        """Take grey levels, one byte per pixel and row by row."""
        if self._may_pass():
            grey = np.frombuffer(pixels, np.uint8).reshape(self.size, self.size)
            self._pass_on(grey.astype(np.float32) / np.float32(255))


class SourceFeed(Feed):
    """Frames of a source of this machine, read in a thread of its own.

    A film plays at its own rate and waits while it is paused; so does one that comes over the network, whose length is
    known. A stream goes on meanwhile: what it shows is dropped, since a camera that is read late lags behind the world.

    Parameters
    ----------
    source : FrameSource
    size : int, optional
        Side to which the centred square is shrunk; None is 200, or the whole square of a smaller film.
    loop : bool
        Whether a film begins again at its end.
    """

    def __init__(self, source: FrameSource, *, size: int | None = None, loop: bool = True) -> None:
        reader = FrameReader(min(DEFAULT_SIZE, *source.shape) if size is None else size)
        side, _ = reader.shape(source)
        self._paced = source.repeatable or source.n_frames is not None
        rate = source.fps or (DEFAULT_RATE if self._paced else None)
        super().__init__(source.name, side, rate)
        self._source = source
        self._loop = loop and source.repeatable
        self._cutter = PatchCutter(frame_size=side, patch_size=1)
        self._thread = Thread(target=self._read, name="psmt-live-source", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End reading; a stream may wait for its next frame a little longer."""
        super().stop()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)

    def _read(self) -> None:
        try:
            self._play_once()
            while self._loop and not self._stopped.is_set():
                self._play_once()
        except (PSMTError, ValueError, OSError) as error:
            self.error = " ".join(str(error).split())
        self.ended = True

    def _play_once(self) -> None:
        due = monotonic()
        for pixels in self._source:
            if self._paced:
                due = self._wait_until(due)
                if self._stopped.is_set():
                    return
                late = monotonic() - due
                due += 1.0 / (self.rate or DEFAULT_RATE)
                # A frame whose successor is due already is not worth shrinking.
                if not self._paused and 1.0 / (self.rate or DEFAULT_RATE) < late < _LATEST_START:
                    self.n_dropped += 1
                    continue
                if late >= _LATEST_START:
                    due = monotonic()
            elif self._stopped.is_set():
                return
            elif not self._may_pass():
                continue
            self._pass_on(self._cutter.reduce(pixels).astype(np.float32))
            if self._paused:
                # Each step is seen: the next one waits until this one was taken.
                while not (self.frames.wait_empty(_PATIENCE) or self._stopped.is_set()):
                    pass

    def _wait_until(self, due: float) -> float:
        """Wait for the time, or while paused for a step; return when the frame is due."""
        while not self._stopped.is_set():
            with self._gate:
                if self._paused:
                    if self._n_steps:
                        self._n_steps -= 1
                        return monotonic()
                    self._gate.wait(_PATIENCE)
                    due = monotonic()
                    continue
                left = due - monotonic()
                if left <= 0:
                    return due
                self._gate.wait(min(left, _PATIENCE))
        return due
