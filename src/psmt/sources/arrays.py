"""Frames in memory, in ``.npy`` and in ``.npz`` files."""

from __future__ import annotations

import hashlib
import tokenize
import zipfile
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from psmt.errors import FrameSourceError
from psmt.sources.contract import (
    Frame,
    FrameSource,
    file_checksum,
    grey,
    rgb,
    scaled,
    white,
)

__all__ = ["ArrayFrames", "NpzFrames", "open_array", "open_npy", "open_npz"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayFrames(FrameSource):
    """The frames of an array, in memory or in a mapped ``.npy`` file. Made by `open_array` and `open_npy`."""

    array: NDArray[Any] = field(repr=False)
    path: Path | None = None

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes, or of the array's dtype, shape and bytes."""
        if self.path is not None:
            return file_checksum(self.path)
        digest = hashlib.sha256(f"{self.array.dtype.str} {self.array.shape}".encode())
        for frame in self.array:
            digest.update(np.ascontiguousarray(frame).data)
        return digest.hexdigest()

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        for index, pixels in enumerate(self.array):
            values = scaled(pixels, where=f"{self.name}: frame {index}")
            yield rgb(values) if colour else grey(values)


@dataclass(frozen=True, kw_only=True)
class NpzFrames(FrameSource):
    """The frames of one array in a ``.npz`` file, unpacked one at a time. Made by `open_npz`."""

    path: Path
    member: str

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes."""
        return file_checksum(self.path)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
            shape, dtype = _header(file)
            n_bytes = int(np.prod(shape[1:])) * dtype.itemsize
            for index in range(shape[0]):
                try:
                    block = file.read(n_bytes)
                except (zipfile.BadZipFile, EOFError) as error:
                    raise FrameSourceError(f"{self.path}: frame {index} cannot be unpacked ({error})") from error
                if len(block) < n_bytes:
                    raise FrameSourceError(f"{self.path}: the array ends in frame {index} of {shape[0]}")
                pixels = np.frombuffer(block, dtype=dtype).reshape(shape[1:])
                values = scaled(pixels, where=f"{self.path}: frame {index}")
                yield rgb(values) if colour else grey(values)


def open_array(array: NDArray[Any], *, stop: int | None = None) -> ArrayFrames:
    """Return the frames of a ``(time, height, width)`` or ``(time, height, width, 3)`` array, not copied.

    >>> source = open_array(np.zeros((5, 4, 6), dtype=np.uint8))
    >>> source.n_frames, source.shape
    (5, (4, 6))
    """
    _check(array.shape, array.dtype, where="the array")
    height, width = array.shape[1:3]
    source = ArrayFrames(array=array, name="array", shape=(height, width), n_frames=array.shape[0])
    return source.head(stop)


def open_npy(path: Path, *, stop: int | None = None) -> ArrayFrames:
    """Return the frames of a ``.npy`` file, mapped into memory rather than read."""
    try:
        # Not np.load, which also opens archives and pickles: this maps plain numbers and nothing else.
        array = npy.open_memmap(path, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise FrameSourceError(f"{path} cannot be read as an array of numbers: {error}") from error
    _check(array.shape, array.dtype, where=str(path))
    return replace(open_array(array, stop=stop), path=path, name=path.name)


def open_npz(path: Path, *, stop: int | None = None) -> NpzFrames:
    """Return the frames of the array called ``frames`` in a ``.npz`` file, or of its only array."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            member = names[0] if len(names) == 1 else "frames.npy"
            if member not in names:
                found = ", ".join(name.removesuffix(".npy") for name in names) or "none"
                raise FrameSourceError(
                    f"{path} has {len(names)} arrays ({found}) and none is called 'frames'; "
                    "save the film alone or as np.savez(path, frames=...)"
                )
            with archive.open(member) as file:
                shape, dtype = _header(file)
    except (zipfile.BadZipFile, ValueError, SyntaxError, tokenize.TokenError, EOFError) as error:
        if isinstance(error, FrameSourceError):
            raise
        raise FrameSourceError(f"{path} cannot be read as an archive of arrays: {error}") from error
    _check(shape, dtype, where=str(path))
    source = NpzFrames(path=path, member=member, name=path.name, shape=(shape[1], shape[2]), n_frames=shape[0])
    return source.head(stop)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of the array in a ``.npy`` stream, and leave the stream at its first byte."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran_order, dtype = read(file)
    if fortran_order:
        raise FrameSourceError(
            "the array is stored in Fortran order, so no frame lies in one piece; "
            "save it again with np.ascontiguousarray(frames)"
        )
    return shape, dtype


def _check(shape: tuple[int, ...], dtype: np.dtype[Any], *, where: str) -> None:
    if not (len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)):
        raise FrameSourceError(
            f"{where} has shape {shape}; frames are (time, height, width) or (time, height, width, 3)"
        )
    if 0 in shape:
        raise FrameSourceError(f"{where} has shape {shape}: there is not one pixel in it")
    if not (white(dtype) or dtype.kind == "f"):
        raise FrameSourceError(
            f"{where} has dtype {dtype}, which has no agreed white; "
            "give bool, uint8, uint16, or floating point with white at 1"
        )
