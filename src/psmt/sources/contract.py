"""The contract of everything that frames come from."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psmt.errors import FrameSourceError

__all__ = ["Frame", "FrameSource"]

Frame: TypeAlias = NDArray[np.float32]

REC601 = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class FrameSource(ABC):
    """Frames in order, read anew on each iteration and held one at a time.

    Iterating yields grey frames, float32 ``(height, width)``.

    Attributes
    ----------
    name : str
        A short name for people.
    shape : tuple of int
        Height and width of every frame.
    n_frames : int or None
        How many frames the source says it has; None when it does not know before it was read.
    fps : float or None
        Frames per second; None where time has no unit.
    stop : int or None
        Frames from this index on are not read.
    """

    name: str
    shape: tuple[int, int]
    n_frames: int | None
    fps: float | None = None
    stop: int | None = None

    @abstractmethod
    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        """Yield all frames, ``(height, width)`` or with ``colour`` ``(height, width, 3)``."""

    @abstractmethod
    def checksum(self) -> str:
        """Return the sha256 of what the frames are made from, as 64 hex digits, whatever ``stop`` is."""

    def head(self, stop: int | None) -> Self:
        """Return the same source without the frames from ``stop`` on; None changes nothing."""
        check_stop(stop)
        return replace(self, stop=_smaller(self.stop, stop), n_frames=_smaller(self.n_frames, stop))

    def __iter__(self) -> Iterator[Frame]:
        """Yield grey frames, float32 ``(height, width)``."""
        return self._limited(colour=False)

    def iter_colour(self) -> Iterator[Frame]:
        """Yield float32 ``(height, width, 3)``: red, green, blue. Grey sources repeat their one channel."""
        return self._limited(colour=True)

    def _limited(self, *, colour: bool) -> Iterator[Frame]:
        # closing() releases files at once when a reader walks away, not when the garbage is collected.
        with closing(self._read(colour=colour)) as frames:
            yield from islice(frames, self.stop)


def check_stop(stop: int | None) -> None:
    """Raise ValueError unless ``stop`` is None or a positive integer."""
    if stop is None:
        return
    if isinstance(stop, bool) or not isinstance(stop, int | np.integer) or stop < 1:
        raise ValueError(f"stop={stop!r} is not a number of frames; use an integer of at least 1, or None for all")


def _smaller(first: int | None, second: int | None) -> int | None:
    """Return the smaller of two numbers, where None is no bound."""
    known = [int(value) for value in (first, second) if value is not None]
    return min(known, default=None)


def white(dtype: np.dtype[Any]) -> float | None:
    """Return the value that means white in an integer dtype; None for all kinds that have no agreed one."""
    return {"b1": 1.0, "u1": 255.0, "u2": 65535.0}.get(f"{dtype.kind}{dtype.itemsize}")


def scaled(pixels: NDArray[Any], *, where: str) -> Frame:
    """Return pixels as float32: integers with white at 1, floating point as it is.

    >>> scaled(np.array([0, 51, 255], dtype=np.uint8), where="a doctest")
    array([0. , 0.2, 1. ], dtype=float32)
    """
    if top := white(pixels.dtype):
        return pixels.astype(np.float32) / np.float32(top)
    with np.errstate(over="ignore"):
        values = pixels.astype(np.float32)
    if not np.isfinite(values).all():
        raise FrameSourceError(
            f"{where} holds NaN or infinite values; frames must be finite in float32: mend or drop that frame"
        )
    return values


def grey(pixels: Frame) -> Frame:
    """Return ``(height, width)`` Rec. 601 luma of ``(height, width, 3)`` pixels; grey passes through."""
    return pixels if pixels.ndim == 2 else pixels @ REC601


def rgb(pixels: Frame) -> Frame:
    """Return ``(height, width, 3)`` pixels, a grey frame three times over."""
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels


def file_checksum(*paths: Path, names: bool = False) -> str:
    """Return the sha256 over the bytes of files in the given order, with ``names`` over their names too."""
    digest = hashlib.sha256()
    for path in paths:
        if names:
            # The length keeps one file's end and the next one's name apart.
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
