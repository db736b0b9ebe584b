"""The contract of everything that frames come from.

A `FrameSource` yields frames in order. A `Film` can be read again and has a checksum; a `FrameStream`, such as a
camera, can be read only once and has none. What a command does decides what it needs:

- ``psmt predict-video`` reads its frames once, in order: it takes any `FrameSource`, and with a `Film` it goes on
  after an interruption;
- ``psmt sweep``, ``topology``, ``reconstruct``, ``predict``, ``reproduce`` and ``demo`` go on after an interruption, so
  that what they read must be there again: they take a `Film`, or a `psmt.data.SeriesSource`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.errors import FrameSourceError
from psmt.types import Levels
from psmt.utils.validation import check_finite

Frame: TypeAlias = Levels
"""One frame, ``(height, width)`` or in colour ``(height, width, 3)``, float32 with white at 1."""

_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class FrameSource(ABC):
    """Frames in order, held one at a time: a `Film` or a `FrameStream`.

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
    repeatable : bool
        Whether the frames can be read again. True for a `Film` and False for a `FrameStream`.
    """

    name: str
    shape: tuple[int, int]
    n_frames: int | None
    fps: float | None = None
    stop: int | None = None
    repeatable: ClassVar[bool]

    @abstractmethod
    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        """Yield all frames, ``(height, width)`` or with ``colour`` ``(height, width, 3)``."""

    def head(self, stop: int | None) -> Self:
        """Return the same source without the frames from ``stop`` on; None changes nothing."""
        check_stop(stop)
        return replace(self, stop=smaller(self.stop, stop), n_frames=smaller(self.n_frames, stop))

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


@dataclass(frozen=True, kw_only=True)
class Film(FrameSource):
    """Frames that can be read again: each iteration starts anew, and a checksum names what is read."""

    repeatable: ClassVar[bool] = True

    @abstractmethod
    def checksum(self) -> str:
        """Return the sha256 of what the frames are made from, as 64 hex digits, whatever ``stop`` is."""

    def __bool__(self) -> bool:
        # Not by its length, which not every film knows.
        return True

    def __len__(self) -> int:
        told = "" if self.n_frames is None else f" (its file speaks of {self.n_frames:,})"
        raise TypeError(f"how many frames {self.name} has is known when it was read{told}; count them as you iterate")

    def __getitem__(self, key: int | slice) -> Any:
        raise FrameSourceError(
            f"{self.name} is read in order, not by index; iterate over it, take its first frames by head(stop), or "
            "save it as a folder of images or a .npy file"
        )


@dataclass(frozen=True, kw_only=True)
class IndexedFilm(Film):
    """A film each frame of which can be read without those before it: it has a length, and can be indexed and sliced.

    ``film[7]`` and ``film[-1]`` are grey frames, float32 ``(height, width)``; ``film[100:200:2]`` is a film again, of
    which nothing is read yet.

    >>> from psmt.data import open_frames
    >>> film = open_frames("builtin:glide?frames=50")
    >>> len(film), film[-1].shape, len(film[10::2])
    (50, (200, 200), 20)
    """

    n_frames: int

    @abstractmethod
    def _frame(self, index: int, *, colour: bool) -> Frame:
        """Return the frame at an index from 0 on, ``(height, width)`` or with ``colour`` ``(height, width, 3)``."""

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        for index in range(self.n_frames):
            yield self._frame(index, colour=colour)

    def __len__(self) -> int:
        return self.n_frames

    def __getitem__(self, key: int | slice) -> Any:
        """Return one grey frame, or the film of a slice."""
        if isinstance(key, slice):
            frames = range(self.n_frames)[key]
            if not frames:
                raise IndexError(f"{self.name} has {self.n_frames} frames, and none of them is in {key}")
            return FilmSlice(film=self, frames=frames, name=self.name, shape=self.shape, n_frames=len(frames))
        if isinstance(key, bool) or not isinstance(key, int | np.integer):
            raise TypeError(f"{self.name}[{key!r}]: a frame has a whole number; or take a slice")
        if not -self.n_frames <= key < self.n_frames:
            raise IndexError(
                f"frame {key} is outside {self.name}; it has the frames 0 to {self.n_frames - 1}, or from -1 back to "
                f"{-self.n_frames}"
            )
        return self._frame(int(key) % self.n_frames, colour=False)


@dataclass(frozen=True, kw_only=True)
class FilmSlice(IndexedFilm):
    """Some frames of a film, in the order of a slice. Made by indexing."""

    film: IndexedFilm
    frames: range

    def checksum(self) -> str:
        """Return the sha256 of the film's checksum and of the frames' numbers."""
        return hashlib.sha256(f"{self.film.checksum()} {self.frames}".encode()).hexdigest()

    def _frame(self, index: int, *, colour: bool) -> Frame:
        return self.film._frame(self.frames[index], colour=colour)  # noqa: SLF001  it is a film too


@dataclass(frozen=True, kw_only=True, eq=False)
class FrameStream(FrameSource):
    """Frames that come by only once, as those of a camera do: the second iteration raises `FrameSourceError`.

    Attributes
    ----------
    begun : threading.Event
        Set when the first iteration begins. All heads of a stream share it, as they share the frames.
    """

    repeatable: ClassVar[bool] = False
    begun: Event = field(default_factory=Event, repr=False)

    def _limited(self, *, colour: bool) -> Iterator[Frame]:
        if self.begun.is_set():
            raise FrameSourceError(
                f"{self.name} can be read only once, and was read already; open it again for what comes next, or "
                "record it to a file first"
            )
        self.begun.set()
        return super()._limited(colour=colour)


def require_film(source: FrameSource, *, wanted_by: str) -> Film:
    """Return the source if it can be read again; raise `FrameSourceError` if not.

    Parameters
    ----------
    source : FrameSource
        Frames of any origin.
    wanted_by : str
        What must read it again, for people: ``"psmt sweep"``.
    """
    if isinstance(source, Film):
        return source
    raise FrameSourceError(
        f"{source.name} can be read only once; {wanted_by} goes on after an interruption and needs a film that can be "
        "read again: record it to a file first"
    )


Opened = TypeVar("Opened", covariant=True)


class Opener(NamedTuple, Generic[Opened]):
    """One kind of source: how it is recognised and how it is opened.

    Attributes
    ----------
    matches : callable
        Whether something is of this kind: a string, a `Path` that exists, an array or another object.
    open : callable
        Called with what matched and with ``stop``, it gives the source.
    """

    matches: Callable[[object], bool]
    open: Callable[[Any, int | None], Opened]


def has_suffix(spec: object, *suffixes: str) -> bool:
    """Return whether this is the path of a file whose name ends like that.

    >>> has_suffix(Path("a.NPY"), ".npy"), has_suffix("a.npy", ".npy")
    (True, False)
    """
    return isinstance(spec, Path) and spec.suffix.lower() in suffixes and not spec.is_dir()


def check_stop(stop: int | None) -> None:
    """Raise ValueError unless ``stop`` is None or a positive integer."""
    if stop is None:
        return
    if isinstance(stop, bool) or not isinstance(stop, int | np.integer) or stop < 1:
        raise ValueError(f"stop={stop!r} is not a number of frames; use an integer of at least 1, or None for all")


def smaller(first: int | None, second: int | None) -> int | None:
    """Return the smaller of two numbers, where None is no bound."""
    known = [int(value) for value in (first, second) if value is not None]
    return min(known, default=None)


def file_checksum(*paths: Path, names: bool = False) -> str:
    """Return the sha256 over the bytes of files in the given order, with ``names`` over their names too."""
    digest = hashlib.sha256()
    for path in paths:
        if names:
            # The length keeps one file's end and the next one's name apart.
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def array_checksum(array: NDArray[Any]) -> str:
    """Return the sha256 of an array's dtype, shape and bytes."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    for part in array:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


REC601 = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""What red, green and blue add to grey."""


def white_level(dtype: np.dtype[Any]) -> float | None:
    """Return the value that means white in an integer dtype; None for all kinds that have no agreed one."""
    return {"b1": 1.0, "u1": 255.0, "u2": 65535.0}.get(f"{dtype.kind}{dtype.itemsize}")


def check_kind(dtype: np.dtype[Any], *, where: str) -> None:
    """Raise unless numbers of this kind are grey levels."""
    if not (white_level(dtype) or dtype.kind == "f"):
        raise FrameSourceError(
            f"{where} has dtype {dtype}, which has no agreed white; "
            "give bool, uint8, uint16, or floating point with white at 1"
        )


def scaled(pixels: NDArray[Any], *, where: str) -> Frame:
    """Return pixels as float32: integers with white at 1, floating point as it is.

    >>> scaled(np.array([0, 51, 255], dtype=np.uint8), where="a doctest")
    array([0. , 0.2, 1. ], dtype=float32)
    """
    if top := white_level(pixels.dtype):
        return pixels.astype(np.float32) / np.float32(top)
    with np.errstate(over="ignore"):
        values = pixels.astype(np.float32)
    check_finite(values, name=where, error=FrameSourceError)
    return values


def grey(pixels: Frame) -> Frame:
    """Return ``(height, width)`` Rec. 601 luma of ``(height, width, 3)`` pixels; grey passes through."""
    return pixels if pixels.ndim == 2 else pixels @ REC601


def channels(pixels: Frame, *, colour: bool) -> Frame:
    """Return pixels with ``colour`` as ``(height, width, 3)``, a grey frame three times over, else as `grey`."""
    if not colour:
        return grey(pixels)
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels
