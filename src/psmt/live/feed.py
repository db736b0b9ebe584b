"""Feeds of live frames: a film, a stream, or the browser's camera. Only the newest frame is kept."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from threading import Condition, Event, Thread
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from psmt.data import FrameSource
from psmt.errors import PSMTError
from psmt.types import Levels
from psmt.video import FrameReader
from psmt.video.frames import SMALLEST, resized

N_PIXELS = 200 * 200  # in a frame, unless a size is given; two cores can predict this many 25 times per second
DEFAULT_RATE = 25.0
CAMERA = (480, 640)  # height and width of the picture that the page asks the browser for

_MAX_DELAY = 1.0  # seconds; a film that is further behind its schedule starts a new schedule
_POLL = 0.1  # seconds between two checks whether to stop

T = TypeVar("T")


class Latest(Generic[T]):
    """Slot that passes the newest item from one thread to another. A new item replaces an item that was not taken.

    >>> slot = Latest()
    >>> slot.put("old"), slot.put("new"), slot.take(0.0), slot.take(0.0)
    (False, True, 'new', None)
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._item: T | None = None

    def put(self, item: T) -> bool:
        """Store an item. Return whether it replaced an item that was never taken."""
        with self._changed:
            replaced = self._item is not None
            self._item = item
            self._changed.notify_all()
            return replaced

    def take(self, timeout: float) -> T | None:
        """Remove and return the item. Wait for it at most `timeout` seconds, then return None."""
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None, timeout)
            item, self._item = self._item, None
            self._changed.notify_all()
            return item

    def wait_empty(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the item to be taken. Return whether it was."""
        with self._changed:
            return self._changed.wait_for(lambda: self._item is None, timeout)


def default_size(shape: tuple[int, int], n_pixels: int = N_PIXELS) -> int:
    """Return the height at which a picture of this (height, width) has at most `n_pixels`, at the same aspect ratio.

    A picture that is small enough keeps its height. The height is never reduced below `SMALLEST`.

    >>> default_size((360, 640)), default_size((144, 176))
    (150, 144)
    """
    height, width = shape
    return min(height, max(int(sqrt(n_pixels * height / width)), SMALLEST))


class Arrival(NamedTuple):
    """Frame (height, width, 3) with the time of its arrival (`time.monotonic`) and its time in the film, in seconds."""

    frame: Levels
    time: float
    position: float


@dataclass(eq=False)
class Feed:
    """Source of frames that passes them on as they arrive.

    `shape` is the height and width of the frames, and `original` their height and width before resizing. Frames are not
    cropped. `rate` (frames per second) and `duration` (in seconds) are None if they are unknown. `speed` is relative to
    `rate` and has an effect on films only. `seek` works for films of known duration only.
    """

    name: str
    shape: tuple[int, int]
    original: tuple[int, int]
    rate: float | None = None
    duration: float | None = None

    def __post_init__(self) -> None:
        self.speed = 1.0
        self.stride = 1
        self.frames: Latest[Arrival] = Latest()
        self.n_dropped = 0
        self.paused = False
        self.ended = False
        self.error: str | None = None
        self._stopped = Event()
        self._gate = Condition()
        self._n_steps = 0

    def pause(self) -> None:
        """Stop passing frames on, until `play` or `step` is called."""
        with self._gate:
            self.paused = True

    def play(self) -> None:
        """Pass frames on again, after `pause`."""
        with self._gate:
            self.paused, self._n_steps = False, 0
            self._gate.notify_all()

    def step(self) -> None:
        """Pass one more frame on, then pause."""
        with self._gate:
            self.paused = True
            self._n_steps = min(self._n_steps + 1, 10)
            self._gate.notify_all()

    def seek(self, seconds: float) -> None:
        """Continue to play the film at this time, in seconds."""

    def keep_up(self, seconds: float) -> None:
        """Pass on only every n-th frame, so that a model that needs `seconds` per frame gets evenly spaced frames."""
        if self.duration is not None and self.rate is not None:
            needed = seconds * self.rate * self.speed
            # A margin keeps the stride steady. With a wide one, the rate would stay halved after a short load.
            if not 0.9 * (self.stride - 1) < needed <= self.stride:
                self.stride = min(ceil(needed), 50)

    def start(self) -> None:
        """Start to read frames, if this feed reads them by itself."""

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()
        with self._gate:
            self._gate.notify_all()

    def _may_pass(self) -> bool:
        """Return whether a frame may be passed on now. While paused, each call of `step` allows one frame."""
        with self._gate:
            if self.paused and self._n_steps:
                self._n_steps -= 1
                return True
            return not self.paused

    def _publish(self, frame: Levels, position: float | None = None) -> None:
        now = monotonic()
        self.n_dropped += self.frames.put(Arrival(frame, now, now if position is None else position))


class BrowserCamera(Feed):
    """Frames of the user's camera, which the page in the browser sends."""

    def __init__(self, size: int | None = None, *, n_pixels: int = N_PIXELS) -> None:
        height = FrameReader(default_size(CAMERA, n_pixels) if size is None else size).size  # checks the size
        super().__init__("camera of the browser", (int(height), round(int(height) * CAMERA[1] / CAMERA[0])), CAMERA)

    @property
    def n_bytes(self) -> int:
        """Number of bytes of a frame that `offer` accepts."""
        return 3 * self.shape[0] * self.shape[1]

    def offer(self, pixels: bytes) -> None:
        """Receive a frame (height, width, 3) as bytes, one for each level, row by row."""
        if self._may_pass():
            levels = np.frombuffer(pixels, np.uint8).reshape(*self.shape, 3)
            self._publish(levels.astype(np.float32) / np.float32(255))


class SourceFeed(Feed):
    """Frames of a `FrameSource`, read in a thread and resized to the height `size`, by default `default_size`.

    A source that can be read again, or whose length is known, is a film. It plays at its own rate and waits while
    paused. Any other source is a stream. It is read without waiting, because frames that are read late would lag behind
    the camera. Frames that arrive while paused are dropped.
    """

    def __init__(
        self, source: FrameSource, *, size: int | None = None, n_pixels: int = N_PIXELS, loop: bool = True
    ) -> None:
        shape = FrameReader(default_size(source.shape, n_pixels) if size is None else size).shape(source)
        self._is_film = source.repeatable or source.n_frames is not None
        rate = source.fps or (DEFAULT_RATE if self._is_film else None)
        duration = source.n_frames / rate if source.repeatable and source.n_frames and rate else None
        super().__init__(source.name, shape, source.shape, rate, duration)
        self._source = source
        self._loop = loop and source.repeatable
        self._next = 0  # index of the next frame that is passed on
        self._sought = Event()
        self._thread = Thread(target=self._read, name="psmt-live-source", daemon=True)

    def start(self) -> None:
        """Start the thread that reads frames."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading. Wait at most two seconds for the thread, because it may wait for the next frame of a stream."""
        super().stop()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)

    def seek(self, seconds: float) -> None:
        """Continue to play the film at this time, in seconds. If it is paused, the frame at this time is passed on."""
        if self.duration is not None and self.rate is not None:
            with self._gate:
                self._next = int(min(max(seconds, 0.0), self.duration) * self.rate)
                self._n_steps = int(self.paused)
                self._sought.set()
                self._gate.notify_all()

    def _read(self) -> None:
        try:
            while not self._stopped.is_set():
                self._sought.clear()
                self._play()
                if self._loop and not self._sought.is_set():
                    self._next = 0
                elif self.duration is None:
                    break
                # A film that has ended waits, because a page may go back to an earlier time.
                self.ended = not self._loop
                while not (self._loop or self._stopped.is_set() or self._sought.wait(_POLL)):
                    pass
                self.ended = False
        except (PSMTError, ValueError, OSError) as error:
            self.error = " ".join(str(error).split())
        self.ended = True

    def _play(self) -> None:
        """Pass frames on from index `_next`, until the source ends or `seek` goes back."""
        due = monotonic()
        for index, pixels in enumerate(self._source.iter_colour()):
            if self._stopped.is_set() or self._next < index:
                return
            if index < self._next:
                due = monotonic() if self._sought.is_set() else due
                continue
            self._sought.clear()
            if self._is_film:
                due = self._wait_until(due)
                if self._stopped.is_set() or self._sought.is_set():
                    continue
                stride = 1 if self.paused else self.stride
                period = stride / ((self.rate or DEFAULT_RATE) * self.speed)
                delay = monotonic() - due
                due += period
                # The next frame is already due, so this one is skipped before it is shrunk.
                late = not self.paused and period < delay < _MAX_DELAY
                self.n_dropped += stride - 1 + late
                self._advance(index, stride)
                if late:
                    continue
                if delay >= _MAX_DELAY:
                    due = monotonic()
            else:
                self._advance(index, 1)
                if not self._may_pass():
                    continue
            position = index / self.rate if self._is_film and self.rate else None
            self._publish(resized(pixels, self.shape), position)
            if self.paused:
                # The next step waits until this frame was taken, so that every step is shown.
                while not (self.frames.wait_empty(_POLL) or self._stopped.is_set()):
                    pass

    def _advance(self, index: int, stride: int) -> None:
        with self._gate:
            # `seek` may have been called meanwhile.
            if self._next == index:
                self._next = index + stride

    def _wait_until(self, due: float) -> float:
        """Wait until the time `due` or, if paused, until `step` is called. Return the time when the frame was due."""
        while not (self._stopped.is_set() or self._sought.is_set()):
            with self._gate:
                if self.paused:
                    due = monotonic()
                left = due - monotonic()
                if left <= 0 and self._may_pass():
                    return due
                self._gate.wait(min(left, _POLL) if left > 0 else _POLL)
        return due
