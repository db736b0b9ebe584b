"""Live frames of a film at its own rate, of a stream, or of the browser's camera. Only the newest frame is kept."""

from __future__ import annotations

from threading import Condition, Event, Thread
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from psmt.data import FrameSource
from psmt.data.patches import PatchCutter
from psmt.errors import PSMTError
from psmt.types import Levels
from psmt.video import FrameReader

DEFAULT_SIZE = 200
DEFAULT_RATE = 25.0

_MAX_DELAY = 1.0  # seconds; a film that is later than this continues from where it is
_POLL = 0.1  # seconds between two checks whether to stop

T = TypeVar("T")


class Latest(Generic[T]):
    """A slot that passes the newest item from one thread to another; an older item is replaced, never queued.

    >>> slot = Latest()
    >>> slot.put("old"), slot.put("new"), slot.take(0.0), slot.take(0.0)
    (False, True, 'new', None)
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._item: T | None = None

    def put(self, item: T) -> bool:
        """Store an item. Return whether it replaced one that was never taken."""
        with self._changed:
            replaced = self._item is not None
            self._item = item
            self._changed.notify_all()
            return replaced

    def take(self, timeout: float) -> T | None:
        """Remove and return the item. Wait at most `timeout` seconds for one; return None if none came."""
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None, timeout)
            item, self._item = self._item, None
            self._changed.notify_all()
            return item

    def wait_empty(self, timeout: float) -> bool:
        """Return whether the item was taken within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._item is None, timeout)


class Arrival(NamedTuple):
    """A frame (size, size), white at 1, and the time of its arrival (`time.monotonic`)."""

    frame: Levels
    time: float


class Feed:
    """Frames as they arrive. `rate` is in frames per second, None if unknown."""

    def __init__(self, name: str, size: int, rate: float | None) -> None:
        self.name = name
        self.size = size
        self.rate = rate
        self.frames: Latest[Arrival] = Latest()
        self.n_dropped = 0
        self.paused = False
        self.ended = False
        self.error: str | None = None
        self._stopped = Event()
        self._gate = Condition()
        self._n_steps = 0

    def pause(self) -> None:
        """Hold frames back."""
        with self._gate:
            self.paused = True

    def play(self) -> None:
        """Let frames pass again."""
        with self._gate:
            self.paused, self._n_steps = False, 0
            self._gate.notify_all()

    def step(self) -> None:
        """Pause, and let one frame pass."""
        with self._gate:
            self.paused = True
            self._n_steps = min(self._n_steps + 1, 10)
            self._gate.notify_all()

    def start(self) -> None:
        """Start reading, if this feed reads frames by itself."""

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()
        with self._gate:
            self._gate.notify_all()

    def _may_pass(self) -> bool:
        """Return whether a frame may pass now. While paused, this uses up one step."""
        with self._gate:
            if self.paused and self._n_steps:
                self._n_steps -= 1
                return True
            return not self.paused

    def _publish(self, frame: Levels) -> None:
        self.n_dropped += self.frames.put(Arrival(frame, monotonic()))


class BrowserCamera(Feed):
    """Frames that a page sends from its user's camera."""

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        FrameReader(size)  # checks the size
        super().__init__("camera of the browser", size, None)

    def offer(self, pixels: bytes) -> None:
        """Receive a frame as grey levels, one byte per pixel, row by row."""
        if self._may_pass():
            grey = np.frombuffer(pixels, np.uint8).reshape(self.size, self.size)
            self._publish(grey.astype(np.float32) / np.float32(255))


class SourceFeed(Feed):
    """Frames of a `FrameSource`, read in a thread. `size` defaults to 200, or less if the frames are smaller.

    A source of known length is a film: it plays at its own rate and waits while paused. Any other source is a stream.
    It is read without waiting, and frames that arrive while paused are dropped: a camera that is read late would lag.
    """

    def __init__(self, source: FrameSource, *, size: int | None = None, loop: bool = True) -> None:
        side, _ = FrameReader(min(DEFAULT_SIZE, *source.shape) if size is None else size).shape(source)
        self._is_film = source.repeatable or source.n_frames is not None
        super().__init__(source.name, side, source.fps or (DEFAULT_RATE if self._is_film else None))
        self._source = source
        self._loop = loop and source.repeatable
        self._cutter = PatchCutter(frame_size=side, patch_size=1)
        self._thread = Thread(target=self._read, name="psmt-live-source", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading. A stream may still be waiting for its next frame, so give up after two seconds."""
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
        due, period = monotonic(), 1.0 / (self.rate or DEFAULT_RATE)
        for pixels in self._source:
            if self._is_film:
                due = self._wait_until(due)
            if self._stopped.is_set():
                return
            if self._is_film:
                delay = monotonic() - due
                due += period
                # The next frame is already due, so this one is skipped before it is shrunk.
                if not self.paused and period < delay < _MAX_DELAY:
                    self.n_dropped += 1
                    continue
                if delay >= _MAX_DELAY:
                    due = monotonic()
            elif not self._may_pass():
                continue
            self._publish(self._cutter.reduce(pixels).astype(np.float32))
            if self.paused:
                # Every step is shown: the next one waits until this one was taken.
                while not (self.frames.wait_empty(_POLL) or self._stopped.is_set()):
                    pass

    def _wait_until(self, due: float) -> float:
        """Wait until a frame is due or, while paused, for a step. Return the time at which it was due."""
        while not self._stopped.is_set():
            with self._gate:
                if self.paused:
                    due = monotonic()
                left = due - monotonic()
                if left <= 0 and self._may_pass():
                    return due
                self._gate.wait(min(left, _POLL) if left > 0 else _POLL)
        return due
