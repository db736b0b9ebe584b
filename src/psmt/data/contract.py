"""The contract of frame sources, the names of built-in ones, and what grey levels mean.

A `FrameSource` yields frames in order. A `Film` can be read again and has a checksum; a `FrameStream`, such as a
camera, can be read only once and has no checksum. ``psmt predict-video`` and ``psmt live`` take any `FrameSource`. The
other commands resume after an interruption, so they need a `Film` or a `psmt.data.SeriesSource`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from psmt.errors import FrameSourceError
from psmt.types import Levels
from psmt.utils.validation import check_finite

Frame: TypeAlias = Levels
"""One frame, ``(height, width)`` or in colour ``(height, width, 3)``, float32 with white at 1."""

_BLOCK = 1 << 20

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class FrameSource(ABC):
    """Frames in order, one at a time: a `Film` or a `FrameStream`.

    Iterating yields grey frames, float32 ``(height, width)``.

    Attributes
    ----------
    name : str
        Name in messages and reports.
    shape : tuple of int
        Height and width of every frame.
    n_frames : int or None
        Number of frames that the source declares; None if it is unknown before reading.
    fps : float or None
        Frames per second, if known.
    stop : int or None
        Index of the first frame that is not read.
    repeatable : bool
        Whether the frames can be read again: True for a `Film`, False for a `FrameStream`.
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
        """Return the first ``stop`` frames of this source; None returns all of it."""
        check_stop(stop)
        return replace(self, stop=smaller(self.stop, stop), n_frames=smaller(self.n_frames, stop))

    def __iter__(self) -> Iterator[Frame]:
        """Yield grey frames, float32 ``(height, width)``."""
        return self._limited(colour=False)

    def iter_colour(self) -> Iterator[Frame]:
        """Yield float32 ``(height, width, 3)``: red, green, blue. Grey sources repeat their one channel."""
        return self._limited(colour=True)

    def _limited(self, *, colour: bool) -> Iterator[Frame]:
        # closing() releases files as soon as a reader stops, not when garbage is collected.
        with closing(self._read(colour=colour)) as frames:
            yield from islice(frames, self.stop)


@dataclass(frozen=True, kw_only=True)
class Film(FrameSource):
    """Frames that can be read again. Each iteration starts at the first frame; a checksum identifies the content."""

    repeatable: ClassVar[bool] = True

    @abstractmethod
    def checksum(self) -> str:
        """Return the sha256 of the whole source as 64 hex digits; it does not depend on ``stop``."""

    def __bool__(self) -> bool:
        # Not every film knows its length.
        return True

    def __len__(self) -> int:
        declared = "" if self.n_frames is None else f" (its file declares {self.n_frames:,})"
        raise TypeError(
            f"the number of frames of {self.name} is known only after reading{declared}; count them as you iterate"
        )

    def __getitem__(self, key: int | slice) -> Any:
        raise FrameSourceError(
            f"{self.name} can be read only in order; iterate over it, take its first frames by head(stop), or save it "
            "as a folder of images or a .npy file"
        )


@dataclass(frozen=True, kw_only=True)
class IndexedFilm(Film):
    """A film with random access: it has a length, and can be indexed and sliced.

    ``film[7]`` and ``film[-1]`` are grey frames, float32 ``(height, width)``. ``film[100:200:2]`` is a film again, and
    is read lazily.

    >>> from psmt.data import open_frames
    >>> film = open_frames("builtin:glide?frames=50")
    >>> len(film), film[-1].shape, len(film[10::2])
    (50, (200, 200), 20)
    """

    n_frames: int

    @abstractmethod
    def _frame(self, index: int, *, colour: bool) -> Frame:
        """Return one frame, ``(height, width)`` or with ``colour`` ``(height, width, 3)``; ``index`` is not below 0."""

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
                raise IndexError(f"{self.name} has {self.n_frames} frames, none of them in {key}")
            return FilmSlice(film=self, frames=frames, name=self.name, shape=self.shape, n_frames=len(frames))
        if isinstance(key, bool) or not isinstance(key, int | np.integer):
            raise TypeError(f"{self.name}[{key!r}]: index with an integer or a slice")
        if not -self.n_frames <= key < self.n_frames:
            raise IndexError(
                f"frame {key} is outside {self.name}; use {-self.n_frames} to {self.n_frames - 1}, below 0 from the end"
            )
        return self._frame(int(key) % self.n_frames, colour=False)


@dataclass(frozen=True, kw_only=True)
class FilmSlice(IndexedFilm):
    """A slice of a film, made by indexing."""

    film: IndexedFilm
    frames: range

    def checksum(self) -> str:
        """Return the sha256 of the film's checksum and the indices of the frames."""
        return hashlib.sha256(f"{self.film.checksum()} {self.frames}".encode()).hexdigest()

    def _frame(self, index: int, *, colour: bool) -> Frame:
        return self.film._frame(self.frames[index], colour=colour)  # noqa: SLF001  the same class hierarchy


@dataclass(frozen=True, kw_only=True, eq=False)
class FrameStream(FrameSource):
    """Frames that can be read only once, as from a camera: a second iteration raises `FrameSourceError`.

    Attributes
    ----------
    begun : threading.Event
        Set when the first iteration begins; shared by all heads of a stream.
    """

    repeatable: ClassVar[bool] = False
    begun: Event = field(default_factory=Event, repr=False)

    def _limited(self, *, colour: bool) -> Iterator[Frame]:
        if self.begun.is_set():
            raise FrameSourceError(
                f"{self.name} can be read only once, and has been read already; open it again for later frames, or "
                "record it to a file first"
            )
        self.begun.set()
        return super()._limited(colour=colour)


@dataclass(frozen=True, kw_only=True)
class BuiltinFilm(Film):
    """A film of square frames that is computed, not read. Subclasses have a field `size`."""

    shape: tuple[int, int] = field(init=False)
    fps: float = field(default=25.0, init=False)
    stop: None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        size: int = getattr(self, "size")  # noqa: B009  a field of the subclass
        object.__setattr__(self, "shape", (size, size))

    def head(self, stop: int | None) -> Self:
        """Return the film without the frames from ``stop`` on."""
        check_stop(stop)
        return self if stop is None else replace(self, n_frames=min(self.n_frames or stop, stop))


class BuiltinName(Generic[Made]):
    """Name of a built-in source. Its options are the fields of the dataclass `kind`, without the prefix ``n_``."""

    def __init__(self, name: str, kind: Callable[..., Made]) -> None:
        self.name, self._kind = name, kind
        fields_given = [field for field in fields(cast(Any, kind)) if field.init]
        self._options = {field.name.removeprefix("n_"): field for field in fields_given}

    def matches(self, spec: object) -> bool:
        """Return whether `spec` names a source of this kind."""
        return isinstance(spec, str) and spec.partition("?")[0] == f"builtin:{self.name}"

    def parse(self, source: str) -> Made:
        """Return the source that a name with its options stands for."""
        given: dict[str, Any] = {}
        for key, text in parse_qsl(source.partition("?")[2], keep_blank_values=True):
            if key not in self._options:
                raise FrameSourceError(f"{source!r}: unknown option {key!r}; use {', '.join(self._options)}")
            is_real = "float" in str(self._options[key].type)
            try:
                given[self._options[key].name] = float(text) if is_real else int(text)
            except ValueError:
                article = "a number" if is_real else "an integer"
                raise FrameSourceError(f"{source!r}: {key}={text!r} is not {article}") from None
        try:
            return self._kind(**given)
        except ValueError as error:
            raise FrameSourceError(f"{source!r}: {error}") from None

    def open(self, source: str, stop: int | None) -> Any:
        """Return the first ``stop`` frames of a built-in film."""
        return cast(Any, self.parse(source)).head(stop)


def check_integers(source: object, **bounds: tuple[int, ...]) -> None:
    """Raise unless fields of a source are integers within their bounds, ``(lowest,)`` or ``(lowest, highest)``."""
    for key, bound in bounds.items():
        value, (low, high) = getattr(source, key), (*bound, np.inf)[:2]
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
            allowed = f"of at least {low}" if high == np.inf else f"from {low} to {high}"
            raise ValueError(f"{key}={value!r} is out of range; use an integer {allowed}")


def require_film(source: FrameSource, *, wanted_by: str) -> Film:
    """Return a source that can be read again; a stream raises `FrameSourceError`, which names `wanted_by`."""
    if isinstance(source, Film):
        return source
    raise FrameSourceError(
        f"{source.name} can be read only once, but {wanted_by} must be able to read it again to resume after an "
        "interruption; record it to a file first"
    )


def check_stop(stop: int | None) -> None:
    """Raise ValueError unless ``stop`` is None or a positive integer."""
    if stop is not None and (isinstance(stop, bool) or not isinstance(stop, int | np.integer) or stop < 1):
        raise ValueError(f"stop={stop!r} is not a number of frames; use an integer of at least 1, or None for all")


def smaller(first: int | None, second: int | None) -> int | None:
    """Return the smaller of two numbers; None means no bound."""
    known = [int(value) for value in (first, second) if value is not None]
    return min(known, default=None)


def file_checksum(*paths: Path, names: bool = False) -> str:
    """Return the sha256 of the files' bytes in order, with ``names`` also of their names."""
    digest = hashlib.sha256()
    for path in paths:
        if names:
            # The length separates the end of one file from the name of the next.
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
"""Weights of red, green and blue in Rec. 601 luma."""


def white_level(dtype: np.dtype[Any]) -> float | None:
    """Return the value of white in an integer dtype; None if there is no convention."""
    return {"b1": 1.0, "u1": 255.0, "u2": 65535.0}.get(f"{dtype.kind}{dtype.itemsize}")


def check_kind(dtype: np.dtype[Any], *, where: str) -> None:
    """Raise unless this dtype can hold grey levels."""
    if not (white_level(dtype) or dtype.kind == "f"):
        raise FrameSourceError(
            f"{where} has dtype {dtype}, which has no conventional value for white; "
            "give bool, uint8, uint16, or floating point with white at 1"
        )


def scaled(pixels: NDArray[Any], *, where: str) -> Frame:
    """Return pixels as float32. Integers are divided by their white level; floating point stays as it is.

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
    """Return ``(height, width, 3)`` pixels with ``colour``, else `grey`. A grey frame is repeated for each channel."""
    if not colour:
        return grey(pixels)
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels
