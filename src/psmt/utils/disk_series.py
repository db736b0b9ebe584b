"""Series that are larger than memory, as memory-mapped files."""

import mmap
import os
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from psmt.types import Array

IN_MEMORY = 1 << 25
"""Series up to this number of bytes (16,384 patches of 16 x 16) are kept in memory."""

_BLOCK = 1 << 23  # number of bytes that `blocks` reads at a time


class DiskSeries(np.memmap[Any, np.dtype[np.float64]]):
    """A series (time, n_features) of finite float64 numbers in a file, as a read-only `numpy.memmap`.

    A `DiskSeries` differs from a `memmap` in two ways. Indexing first releases the memory of earlier reads, so peak
    memory does not grow with the file. A pickle holds the name of the file instead of the numbers, so other processes
    on this machine map the same file. A slice without a step is a `DiskSeries`. Other results are plain arrays.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     series = DiskSeries.write(Path(folder) / "rows", [np.arange(6.0).reshape(3, 2)])
    ...     series.shape, series[1:][[1, 0]].tolist(), series[-1].tolist()
    ((3, 2), [[4.0, 5.0], [2.0, 3.0]], [4.0, 5.0])
    """

    @classmethod
    def write(cls, path: str | os.PathLike[str], parts: Iterable[Array]) -> "DiskSeries":
        """Write arrays (n, n_features) to a file, and return it as a series. The file is deleted after its last use."""
        n_features = 0
        try:
            with open(path, "wb") as file:
                for part in parts:
                    n_features = part.shape[1]
                    file.write(np.ascontiguousarray(part, dtype=np.float64).data)
            series = cls.open(path, n_features)
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise
        # Every slice keeps the mapping alive. The finalizer also runs when the interpreter exits.
        weakref.finalize(_mapping(series), Path(path).unlink, missing_ok=True)
        return series

    @classmethod
    def open(cls, path: str | os.PathLike[str], n_features: int, rows: slice = slice(None)) -> "DiskSeries":
        """Return the given rows of a file that another process created, and will delete."""
        return cast(DiskSeries, cls(path, dtype=np.float64, mode="r").reshape(-1, n_features)[rows])

    def __getitem__(self, key: Any) -> Any:
        """Return a slice as a view of the file, and anything else as an array in memory."""
        release_pages(self)
        if isinstance(key, slice | tuple) or np.ndim(key) > 1 or self.filename is None:
            part = super().__getitem__(key)
            return part if isinstance(key, slice) and key.step in (None, 1) else np.asarray(part)
        # Single rows are read instead of mapped, because for each one the system may map megabytes around it.
        rows = np.arange(len(self))[key]
        values = np.empty((*rows.shape, self.shape[1]))
        with open(self.filename, "rb", buffering=0) as file:
            for row, place in zip((self._first_row + rows).flat, values.reshape(-1, self.shape[1]), strict=True):
                if os.preadv(file.fileno(), [place.data], int(row) * place.nbytes) < place.nbytes:
                    raise OSError(f"{self.filename} ends before its row {row + 1}")
        return values

    @property
    def _first_row(self) -> int:
        """Return the index of the first row of this series within the file."""
        return int(self.ctypes.data - np.frombuffer(_mapping(self), np.uint8).ctypes.data) // self.strides[0]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return the result of a NumPy function as a plain array."""
        return np.asarray(array)[()] if return_scalar else np.asarray(array)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self.filename is None:  # a copy in memory
            return super().__reduce__()
        rows = slice(self._first_row, self._first_row + len(self))
        return DiskSeries.open, (self.filename, self.shape[1], rows)


def _mapping(array: Any) -> Any:
    """Return the `mmap` object that an array views, or None if the array is in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def release_pages(series: Array) -> None:
    """Release the memory that this process uses for a mapped file. The data stay in the system's file cache."""
    mapping = _mapping(series)
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # Windows does not have it
        mapping.madvise(mmap.MADV_DONTNEED)


def blocks(values: Array) -> Iterator[Array]:
    """Yield all rows in order, as blocks (n, n_features). Blocks of a `DiskSeries` have 8 MiB, others all rows."""
    if not isinstance(values, DiskSeries):
        yield values
        return
    rows = max(_BLOCK // values.strides[0], 1)
    for start in range(0, len(values), rows):
        yield np.asarray(values[start : start + rows])


def mean_of(values: Array) -> Array:
    """Return the mean row (n_features,), computed block by block."""
    return cast(Array, sum(block.sum(axis=0) for block in blocks(values)) / len(values))
