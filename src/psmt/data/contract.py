"""Base classes of frame sources, the names of built-in sources, and the conversion of pixels to grey levels.

``psmt predict-video`` and ``psmt live`` take any `FrameSource`. The other commands read their data again when they
resume after an interruption, so they need a `Film` or a `psmt.data.SeriesSource`.
"""

from __future__ import annotations

import hashlib
import os
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
from psmt.utils.constraints import check_count
from psmt.utils.files import reading, shown
from psmt.utils.validation import check_finite

Frame: TypeAlias = Levels
"""One frame: float32 ``(height, width)``, or ``(height, width, 3)`` in colour, with white at 1."""

_BLOCK = 1 << 20

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class FrameSource(ABC):
    """Source of frames in order of time, one at a time: a `Film` or a `FrameStream`.

    Iterating yields grey frames, float32 ``(height, width)``.

    Attributes
    ----------
    name : str
        Name in messages and reports.
    shape : tuple of int
        Height and width of every frame.
    n_frames : int or None
        Number of frames that the source declares. None if it declares none.
    fps : float or None
        Frames per second, if known.
    stop : int or None
        Largest number of frames that are read. None reads all.
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
        """Yield all frames: ``(height, width, 3)`` if ``colour`` is True, otherwise ``(height, width)``."""

    def head(self, stop: int | None) -> Self:
        """Return a source with only the first ``stop`` frames of this one. None keeps all frames."""
        check_stop(stop)
        return replace(self, stop=smaller(self.stop, stop), n_frames=smaller(self.n_frames, stop))

    def __iter__(self) -> Iterator[Frame]:
        """Yield grey frames, float32 ``(height, width)``."""
        return self._limited(colour=False)

    def iter_colour(self) -> Iterator[Frame]:
        """Yield colour frames, float32 ``(height, width, 3)``. A grey source yields three equal channels."""
        return self._limited(colour=True)

    def _limited(self, *, colour: bool) -> Iterator[Frame]:
        # closing() releases files as soon as a reader stops, not when garbage is collected.
        with closing(self._read(colour=colour)) as frames:
            yield from islice(frames, self.stop)


@dataclass(frozen=True, kw_only=True)
class Film(FrameSource):
    """Frames that can be read any number of times, each time from the first one. A checksum identifies the film."""

    repeatable: ClassVar[bool] = True

    @abstractmethod
    def checksum(self) -> str:
        """Return the sha256 of the whole source as 64 hex digits. It depends on ``stop`` only for a built-in film."""

    def __bool__(self) -> bool:
        # Not every film knows its length.
        return True

    def __len__(self) -> int:
        declared = "" if self.n_frames is None else f" (its file declares {self.n_frames:,})"
        raise TypeError(f"the length of {self.name} is known only after reading{declared}; count frames as you iterate")

    def __getitem__(self, key: int) -> Frame:
        raise FrameSourceError(
            f"{self.name} can be read only in order; iterate over it, take its first frames by head(stop), or save it "
            "as a folder of images or a .npy file"
        )


@dataclass(frozen=True, kw_only=True)
class IndexedFilm(Film):
    """Film with random access: ``film[7]`` and ``film[-1]`` are grey frames, float32 ``(height, width)``.

    >>> from psmt.data import open_frames
    >>> film = open_frames("builtin:glide?frames=50")
    >>> len(film), film[-1].shape
    (50, (200, 200))
    """

    n_frames: int

    @abstractmethod
    def _frame(self, index: int, *, colour: bool) -> Frame:
        """Return the frame at ``index`` >= 0, in colour ``(height, width, 3)`` or in grey ``(height, width)``."""

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        for index in range(self.n_frames):
            yield self._frame(index, colour=colour)

    def __len__(self) -> int:
        return self.n_frames

    def __getitem__(self, key: int) -> Frame:
        """Return the grey frame ``(height, width)`` at an index. Negative indices count from the end."""
        if isinstance(key, bool) or not isinstance(key, int | np.integer):
            raise TypeError(f"{self.name}[{key!r}]: index with an integer; for more frames, use head(stop) or a loop")
        n = self.n_frames
        if not -n <= key < n:
            raise IndexError(f"frame {key} is outside {self.name}; use {-n} to {n - 1}, below 0 from the end")
        return self._frame(int(key) % n, colour=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class FrameStream(FrameSource):
    """Frames that can be read only once, such as those of a camera. A second iteration raises `FrameSourceError`."""

    repeatable: ClassVar[bool] = False
    begun: Event = field(default_factory=Event, repr=False)  # set when reading begins; shared with results of `head`

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
    """Film whose frames are computed on demand. They are square, and the field `size` is their side length."""

    shape: tuple[int, int] = field(init=False)
    fps: float = field(default=25.0, init=False)
    stop: None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        size: int = getattr(self, "size")  # noqa: B009  a field of the subclass
        object.__setattr__(self, "shape", (size, size))

    def head(self, stop: int | None) -> Self:
        """Return a film with only the first ``stop`` frames of this one. None keeps all frames."""
        check_stop(stop)
        return self if stop is None else replace(self, n_frames=min(self.n_frames or stop, stop))


class BuiltinName(Generic[Made]):
    """Parser of built-in sources: ``builtin:glide?frames=50`` becomes an object of class `kind` with `n_frames` 50."""

    def __init__(self, name: str, kind: Callable[..., Made]) -> None:
        self.name, self._kind = name, kind
        fields_given = [field for field in fields(cast(Any, kind)) if field.init]
        self._options = {field.name.removeprefix("n_"): field for field in fields_given}

    def matches(self, spec: object) -> bool:
        """Return whether `spec` is a string ``builtin:NAME`` with this name, with or without options."""
        return isinstance(spec, str) and spec.partition("?")[0] == f"builtin:{self.name}"

    def parse(self, source: str) -> Made:
        """Return the object of class `kind` for a string such as ``builtin:NAME?option=value``."""
        given: dict[str, Any] = {}
        label = shown(source)
        for key, text in parse_qsl(source.partition("?")[2], keep_blank_values=True):
            if key not in self._options:
                raise FrameSourceError(f"{label}: unknown option {shown(key)!r}; use {', '.join(self._options)}")
            kind = str(self._options[key].type)
            convert: Any = float if "float" in kind else str if kind == "str" else int
            try:
                given[self._options[key].name] = convert(text)
            except ValueError:
                article = "a number" if "float" in kind else "an integer"
                raise FrameSourceError(f"{label}: {key}={shown(text, 40)!r} is not {article}") from None
        try:
            return self._kind(**given)
        except (TypeError, ValueError) as error:
            raise FrameSourceError(f"{label}: {shown(error)}") from None


def check_integers(source: object, **bounds: tuple[int, ...]) -> None:
    """Raise an error unless fields of `source` are integers in the given bounds, ``(low,)`` or ``(low, high)``."""
    for key, (low, *high) in bounds.items():
        check_count(key, getattr(source, key), minimum=low, maximum=high[0] if high else np.inf)


def require_film(source: FrameSource, *, wanted_by: str) -> Film:
    """Return `source` if it is a `Film`. For a stream, raise an error that names the caller `wanted_by`."""
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
    """Return the smaller of two upper bounds. None means that there is no bound."""
    return min((int(value) for value in (first, second) if value is not None), default=None)


def file_checksum(*paths: Path, names: bool = False) -> str:
    """Return the sha256 of the bytes of all files, in order. If ``names`` is True, the hash includes the file names."""
    digest = hashlib.sha256()
    for path in paths:
        with reading(path) as file:
            if names:
                # The length separates the end of one file from the name of the next.
                size = os.fstat(file.fileno()).st_size
                digest.update(f"{path.name}\0{size}\0".encode(errors="surrogateescape"))
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

_WHITE = {"bool": 1.0, "uint8": 255.0, "uint16": 65535.0}  # value of white, by the name of a dtype


def check_kind(dtype: np.dtype[Any], *, where: str) -> None:
    """Raise an error unless a dtype is bool, uint8, uint16 or float. `where` names the data in the error message."""
    if not (dtype.name in _WHITE or dtype.kind == "f"):
        raise FrameSourceError(
            f"{where} has dtype {dtype}, which has no conventional value for white; "
            "give bool, uint8, uint16, or floating point with white at 1"
        )


def scaled(pixels: NDArray[Any], *, where: str) -> Frame:
    """Return pixels as float32 with white at 1. Floats are not scaled. The error for NaN names the data by `where`.

    >>> scaled(np.array([0, 51, 255], dtype=np.uint8), where="a doctest")
    array([0. , 0.2, 1. ], dtype=float32)
    """
    if top := _WHITE.get(pixels.dtype.name):
        return pixels.astype(np.float32) / np.float32(top)
    with np.errstate(over="ignore"):
        values = pixels.astype(np.float32)
    check_finite(values, name=where, error=FrameSourceError)
    return values


def grey(pixels: Frame) -> Frame:
    """Return the Rec. 601 luma ``(height, width)`` of colour pixels. Grey pixels are returned unchanged."""
    return pixels if pixels.ndim == 2 else pixels @ REC601


def channels(pixels: Frame, *, colour: bool) -> Frame:
    """Return pixels as colour ``(height, width, 3)`` if ``colour`` is True, otherwise as grey ``(height, width)``."""
    if not colour:
        return grey(pixels)
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels


def check_shape(found: tuple[int, ...], wanted: tuple[int, int], index: int, *, where: str) -> None:
    """Raise an error if the frame at `index` has the wrong shape. The parameter `where` names the frame."""
    if found[:2] != wanted:
        raise FrameSourceError(
            f"{where} is {found[0]} x {found[1]} pixels, but the first is {wanted[0]} x {wanted[1]}; give frames of "
            f"one size, or use stop={index} (--frames {index}) to end there"
        )
