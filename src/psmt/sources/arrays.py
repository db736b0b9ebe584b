"""Arrays in memory, in ``.npy`` and in ``.npz`` files: frames, or with two axes a series."""

from __future__ import annotations

import tokenize
import zipfile
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from psmt.errors import FrameSourceError
from psmt.sources.contract import Film, Opener, array_checksum, file_checksum, has_suffix
from psmt.sources.pixels import Frame, channels, check_kind, scaled
from psmt.sources.series import SeriesSource

__all__ = ["ARRAY", "NPY", "NPZ", "ArrayFrames", "NpzFrames", "open_array", "open_npy", "open_npz"]

_MEMBERS = ("frames.npy", "series.npy")
"""What the array to read is called in an archive of several."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayFrames(Film):
    """The frames of an array, in memory or in a mapped ``.npy`` file. Made by `open_array` and `open_npy`."""

    array: NDArray[Any] = field(repr=False)
    path: Path | None = None

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes, or of the array's dtype, shape and bytes."""
        return array_checksum(self.array) if self.path is None else file_checksum(self.path)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        for index, pixels in enumerate(self.array):
            yield channels(scaled(pixels, where=f"{self.name}: frame {index}"), colour=colour)


@dataclass(frozen=True, kw_only=True)
class NpzFrames(Film):
    """The frames of one array in a ``.npz`` file, unpacked one at a time. Made by `open_npz`."""

    path: Path
    member: str

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes."""
        return file_checksum(self.path)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
            shape, _, dtype = _header(file)
            n_bytes = int(np.prod(shape[1:])) * dtype.itemsize
            for index in range(shape[0]):
                try:
                    block = file.read(n_bytes)
                except (zipfile.BadZipFile, EOFError) as error:
                    raise FrameSourceError(f"{self.path}: frame {index} cannot be unpacked ({error})") from error
                if len(block) < n_bytes:
                    raise FrameSourceError(f"{self.path}: the array ends in frame {index} of {shape[0]}")
                pixels = np.frombuffer(block, dtype=dtype).reshape(shape[1:])
                yield channels(scaled(pixels, where=f"{self.path}: frame {index}"), colour=colour)


def open_array(
    array: NDArray[Any], stop: int | None = None, *, name: str = "array", path: Path | None = None
) -> ArrayFrames | SeriesSource:
    """Return the frames of a ``(time, height, width)`` or ``(time, height, width, 3)`` array, not copied.

    An array ``(time, features)`` is a series.

    >>> source = open_array(np.zeros((5, 4, 6), dtype=np.uint8))
    >>> source.n_frames, source.shape
    (5, (4, 6))
    >>> open_array(np.zeros((5, 4))).n_features
    4
    """
    if array.ndim == 2:
        return SeriesSource(array=array, name=name, path=path, stop=stop)
    _check_frames(array.shape, array.dtype, where="the array" if path is None else str(path))
    height, width = array.shape[1:3]
    return ArrayFrames(array=array, name=name, shape=(height, width), n_frames=array.shape[0], path=path).head(stop)


def open_npy(path: Path, stop: int | None = None) -> ArrayFrames | SeriesSource:
    """Return the frames or the series of a ``.npy`` file, mapped into memory rather than read."""
    try:
        # Not np.load, which also opens archives and pickles: this maps plain numbers and nothing else.
        array = npy.open_memmap(path, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise FrameSourceError(f"{path} cannot be read as an array of numbers: {error}") from error
    return open_array(array, stop, name=path.name, path=path)


def open_npz(path: Path, stop: int | None = None) -> NpzFrames | SeriesSource:
    """Return the frames or the series of a ``.npz`` file: its only array, or that called ``frames`` or ``series``."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = _member(archive, path)
            with archive.open(member) as file:
                shape, fortran_order, dtype = _header(file)
            if len(shape) == 2:
                with archive.open(member) as file:
                    array = npy.read_array(file, allow_pickle=False)
                return SeriesSource(array=array, name=path.name, path=path, stop=stop)
    except FrameSourceError:
        raise
    except (zipfile.BadZipFile, ValueError, SyntaxError, tokenize.TokenError, EOFError) as error:
        raise FrameSourceError(f"{path} cannot be read as an archive of arrays: {error}") from error
    _check_frames(shape, dtype, where=str(path))
    if fortran_order:
        raise FrameSourceError(
            f"{path}: the array is stored in Fortran order, so no frame lies in one piece; "
            "save it again with np.ascontiguousarray(frames)"
        )
    source = NpzFrames(path=path, member=member, name=path.name, shape=(shape[1], shape[2]), n_frames=shape[0])
    return source.head(stop)


def _member(archive: zipfile.ZipFile, path: Path) -> str:
    """Return the name of the one array in an archive that is to be read."""
    names = [name for name in archive.namelist() if name.endswith(".npy")]
    called = names if len(names) == 1 else [name for name in names if name in _MEMBERS]
    if len(called) != 1:
        found = ", ".join(name.removesuffix(".npy") for name in names) or "none"
        raise FrameSourceError(
            f"{path} has {len(names)} arrays ({found}) and {'more than one' if called else 'none'} is called 'frames' "
            "or 'series'; save the one to read alone, or as np.savez(path, frames=...) or np.savez(path, series=...)"
        )
    return called[0]


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and dtype of the array in a ``.npy`` stream, and leave it at the first number."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(file)


def _check_frames(shape: tuple[int, ...], dtype: np.dtype[Any], *, where: str) -> None:
    """Raise unless an array of this shape and dtype holds frames."""
    if not (len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)):
        raise FrameSourceError(
            f"{where} has shape {shape}; frames are (time, height, width) or (time, height, width, 3), "
            "a series is (time, features)"
        )
    if 0 in shape:
        raise FrameSourceError(f"{where} has shape {shape}: there is not one pixel in it")
    check_kind(dtype, where=where)


ARRAY: Opener[ArrayFrames | SeriesSource] = Opener(lambda spec: isinstance(spec, np.ndarray), open_array)
NPY: Opener[ArrayFrames | SeriesSource] = Opener(lambda spec: has_suffix(spec, ".npy"), open_npy)
NPZ: Opener[NpzFrames | SeriesSource] = Opener(lambda spec: has_suffix(spec, ".npz"), open_npz)
