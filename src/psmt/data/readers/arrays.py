"""Readers of arrays in memory and in ``.npy`` and ``.npz`` files. Arrays of two axes are series, others are frames."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.data.contract import Frame, IndexedFilm, array_checksum, channels, check_kind, file_checksum, scaled
from psmt.data.readers.tables import SeriesSource
from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import Archive, ArchiveError, read_layout, trouble_named
from psmt.utils.files import reading, shown, shown_names

_NAMES = ("frames", "series")  # names by which the array to read is found in a file with several arrays


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayFrames(IndexedFilm):
    """Frames of an array in memory or in a memory-mapped ``.npy`` file."""

    array: NDArray[Any] = field(repr=False)
    path: Path | None = None

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes or, without a file, of the array's dtype, shape and bytes."""
        return array_checksum(self.array) if self.path is None else file_checksum(self.path)

    def _frame(self, index: int, *, colour: bool) -> Frame:
        return channels(scaled(self.array[index], where=f"{self.name}: frame {index}"), colour=colour)


def open_array(
    array: NDArray[Any], stop: int | None = None, *, name: str = "array", path: Path | None = None
) -> ArrayFrames | SeriesSource:
    """Return an array as a source, without copying it.

    An array ``(time, height, width)`` or ``(time, height, width, 3)`` is a film. An array ``(time, features)`` is a
    series.

    >>> source = open_array(np.zeros((5, 4, 6), dtype=np.uint8))
    >>> source.n_frames, source.shape
    (5, (4, 6))
    >>> open_array(np.zeros((5, 4))).n_features
    4
    """
    if array.ndim == 2:
        return SeriesSource(array=array, name=name, path=path, stop=stop)
    _check_frames(array.shape, array.dtype, where="the array" if path is None else shown(path))
    height, width = array.shape[1:3]
    return ArrayFrames(array=array, name=name, shape=(height, width), n_frames=array.shape[0], path=path).head(stop)


def open_npy(path: Path, stop: int | None = None) -> ArrayFrames | SeriesSource:
    """Memory-map a ``.npy`` file, and open the frames or the series in it."""
    # np.load would also open archives and pickles. This maps plain numbers only.
    what = f"{shown(path)} cannot be read as an array of numbers; save it again"
    with trouble_named(what, FrameSourceError), reading(path) as file:
        layout, start = read_layout(file), file.tell()
        held = os.fstat(file.fileno()).st_size - start
        if layout.n_bytes > held:
            declared = f"{layout.dtype} {layout.shape}, which is {layout.n_bytes:,} bytes"
            raise ArchiveError(f"the header declares {declared}, but the file has {held:,}")
        order: Any = "F" if layout.fortran_order else "C"
        # An empty array cannot be mapped; `open_array` refuses it and names its shape.
        array: NDArray[Any] = (
            np.memmap(file, dtype=layout.dtype, mode="r", offset=start, shape=layout.shape, order=order)
            if layout.n_bytes
            else np.empty(layout.shape, dtype=layout.dtype)
        )
    return open_array(array, stop, name=shown(path.name), path=path)


def open_npz(path: Path, stop: int | None = None) -> ArrayFrames | SeriesSource:
    """Open the frames or series in a ``.npz`` file: its only array, or the one called ``frames`` or ``series``."""
    what = f"{shown(path)} cannot be read as an archive of arrays; save it again"
    with trouble_named(what, FrameSourceError), Archive.open(path) as archive:
        names = archive.names
        called = names if len(names) == 1 else [name for name in names if name in _NAMES]
        if len(called) != 1:
            raise FrameSourceError(
                f"{shown(path)} has {len(names)} arrays ({shown_names(names)}) and "
                f"{'more than one' if called else 'none'} is called 'frames' or 'series'; save the one to read "
                "alone, or as np.savez(path, frames=...) or np.savez(path, series=...)"
            )
        layout = archive.layout(called[0])
        if len(layout.shape) != 2:  # refused before it is read
            _check_frames(layout.shape, layout.dtype, where=shown(path))
        array = archive.read(called[0])
    return open_array(array, stop, name=shown(path.name), path=path)


def _check_frames(shape: tuple[int, ...], dtype: np.dtype[Any], *, where: str) -> None:
    if not (len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)):
        raise FrameSourceError(
            f"{where} has shape {shape}; frames are (time, height, width) or (time, height, width, 3), "
            "a series is (time, features)"
        )
    if 0 in shape:
        raise FrameSourceError(f"{where} has shape {shape}, which holds no pixels")
    check_kind(dtype, where=where)
