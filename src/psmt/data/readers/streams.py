"""Frames that can be read only once: cameras, network streams and Python iterators."""

import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import ArrayLike, NDArray

from psmt.data.contract import Frame, FrameStream, channels, check_kind, check_shape, scaled
from psmt.data.readers.video import Medium, decode, frames_of, upright_shape
from psmt.errors import FrameSourceError
from psmt.utils.files import shown

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveVideo(FrameStream):
    """Frames of a camera or a network stream."""

    pictures: Generator[VideoFrame, None, None] = field(repr=False)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        with closing(self.pictures) as pictures:
            yield from frames_of(pictures, self.shape, label=self.name, colour=colour)


@dataclass(frozen=True, kw_only=True, eq=False)
class IteratedFrames(FrameStream):
    """Frames of a Python iterator."""

    arrays: Iterator[ArrayLike] = field(repr=False)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        for index, array in enumerate(self.arrays):
            where = f"{self.name}: frame {index}"
            pixels = _pixels(array, where=where)
            check_shape(pixels.shape, self.shape, index, where=where)
            yield channels(scaled(pixels, where=where), colour=colour)


def open_stream(
    frames: Iterable[ArrayLike], stop: int | None = None, *, name: str = "stream", fps: float | None = None
) -> IteratedFrames:
    """Open an iterable of frames, for example a generator that reads your own camera. Read at most `stop` frames.

    Frames are arrays ``(height, width)`` or ``(height, width, 3)``, all of the same size. Their type is bool, uint8,
    uint16, or floating point with white at 1. The first frame is read here, to find the size. `name` appears in
    messages and reports. `fps` is the number of frames per second.

    >>> stream = open_stream(np.full((4, 6), t, dtype=np.uint8) for t in range(3))
    >>> stream.shape, stream.repeatable
    ((4, 6), False)
    >>> [round(float(frame[0, 0]) * 255) for frame in stream]
    [0, 1, 2]
    """
    arrays = iter(frames)
    first = next(arrays, None)
    if first is None:
        raise FrameSourceError(f"{name} ends before its first frame; give at least one")
    height, width = _pixels(first, where=f"{name}: frame 0").shape[:2]
    source = IteratedFrames(arrays=_with_first(first, arrays), name=name, shape=(height, width), n_frames=None, fps=fps)
    return source.head(stop)


def open_camera(spec: str, stop: int | None = None) -> LiveVideo:
    """Open a camera of this computer, such as ``camera:0`` for the first one."""
    number = spec.removeprefix("camera:")
    if not (number.isdecimal() and len(number) < 5):
        raise FrameSourceError(f"{shown(spec)} is not the number of a camera; the first one is camera:0")
    return _open_live(_camera(int(number), platform=sys.platform), stop)


def open_url(spec: str, stop: int | None = None) -> LiveVideo:
    """Open a network stream, given an address that libav supports: ``rtsp://``, ``http://``, ``udp://``, ..."""
    try:
        parts = urlsplit(spec)
    except ValueError as error:
        raise FrameSourceError(f"{shown(spec.partition('?')[0])} is not an address ({error})") from error
    # Passwords and keys before the host and after the question mark must not appear in reports.
    label = shown(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
    hint = "is the address right, and is the stream running?"
    return _open_live(Medium(label=label, address=spec, hint=hint), stop)


def _open_live(medium: Medium, stop: int | None) -> LiveVideo:
    pictures, n_frames, fps = decode(medium)
    first = next(pictures)
    shape, whole = upright_shape(first), _with_first(first, pictures)
    return LiveVideo(pictures=whole, name=medium.label, shape=shape, n_frames=n_frames, fps=fps).head(stop)


def _camera(number: int, *, platform: str) -> Medium:
    """Return how libav opens a camera on the given operating system: address, format and options."""
    label = f"camera:{number}"
    hint = "is it plugged in, do you have permission, and is no other program using it?"
    if platform == "linux":
        return Medium(label=label, hint=hint, address=f"/dev/video{number}", format="v4l2")
    if platform == "darwin":
        # libav asks for 29.97 frames per second by default, which cameras of Macs refuse.
        return Medium(label=label, hint=hint, address=str(number), format="avfoundation", options={"framerate": "30"})
    raise FrameSourceError(
        f"{label}: cameras are supported on Linux and macOS, not on {platform}; "
        "read frames in a generator of your own and give it to open_stream"
    )


def _pixels(array: ArrayLike, *, where: str) -> NDArray[np.generic]:
    """Return a frame as an array. Raise `FrameSourceError` if it does not have the shape or dtype of a frame."""
    pixels = np.asarray(array)
    if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)) or 0 in pixels.shape:
        raise FrameSourceError(f"{where} has shape {pixels.shape}; a frame is (height, width) or (height, width, 3)")
    check_kind(pixels.dtype, where=where)
    return pixels


def _with_first(first: T, rest: Iterator[T]) -> Generator[T, None, None]:
    yield first
    yield from rest
