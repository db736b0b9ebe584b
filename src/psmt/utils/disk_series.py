"""Series that are larger than memory should hold: rows in a file, read as they are asked for.

Not a memory map: its pages would count as the process's own while they are there, and nobody could tell a film that is
read from one that is held.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from psmt.types import Array

__all__ = ["IN_MEMORY", "StoredSeries", "blocks", "mean_of", "spread_of"]

IN_MEMORY = 1 << 25
"""Bytes of a series up to which it is an array like any other: 16,384 patches of 16 x 16."""

_BLOCK = 1 << 23
"""Bytes that are read at a time."""

_WIDTH = 8
"""Bytes of a number."""


class StoredSeries:
    """Rows (time, n_features) of float64 in a file; they are finite, as who writes them has checked.

    A slice is a view, as an array's is, and costs nothing. `numpy.asarray` reads what it covers; so does an index or a
    list of them. It travels to other processes of this machine as the name of its file.

    Parameters
    ----------
    path : path
        Holds the numbers, row by row.
    n_features : int
    start, stop : int
        Rows of the file that it covers.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     stored = StoredSeries.write(Path(folder) / "rows", [np.arange(6.0).reshape(3, 2)])
    ...     stored.shape, stored[1:][[1, 0]].tolist(), np.asarray(stored[-1:]).tolist()
    ((3, 2), [[4.0, 5.0], [2.0, 3.0]], [[4.0, 5.0]])
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, path: str | os.PathLike[str], n_features: int, start: int, stop: int) -> None:
        self.path = Path(path)
        self.shape = (stop - start, n_features)
        self._start = start
        self._owner: object = None
        """What the file lives as long as; None where somebody else sees to that."""

    @classmethod
    def write(cls, path: str | os.PathLike[str], parts: Iterable[Array]) -> StoredSeries:
        """Write the rows of all parts (n, n_features), one after the other; the file goes when nobody holds it here."""
        n_rows = n_features = 0
        try:
            with open(path, "wb") as file:
                for part in parts:
                    n_rows, n_features = n_rows + len(part), part.shape[1]
                    file.write(np.ascontiguousarray(part, dtype=np.float64).data)
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise
        made = cls(path, n_features, 0, n_rows)
        made._owner = _Owner()
        # At the end of the interpreter too.
        weakref.finalize(made._owner, Path(path).unlink, missing_ok=True)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return StoredSeries, (self.path, self.shape[1], self._start, self._start + len(self))

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all that it covers."""
        return self.shape[0] * self.shape[1] * _WIDTH

    def __getitem__(self, key: Any) -> Any:
        """Return a slice as a view; the row (n_features,) of an index, or those of a list of them, as an array."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                raise ValueError(f"a stored series has no slices of step {step}; give the list of its indices")
            part = StoredSeries(self.path, self.shape[1], self._start + start, self._start + max(start, stop))
            part._owner = self._owner
            return part
        rows = np.asarray(key)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        rows = np.where(rows < 0, rows + len(self), rows)
        if rows.size and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"an index of {key!r} lies outside of a series of {len(self)} rows")
        return self._gather(rows.ravel()).reshape(*rows.shape, self.shape[1])

    def __iter__(self) -> Iterator[Array]:
        for block in blocks(self):
            yield from block

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All of it, in memory."""
        if copy is False:
            raise ValueError("a stored series cannot be an array without being read; leave out copy=False")
        return self._read(0, len(self)).astype(dtype or self.dtype, copy=False)

    def _read(self, start: int, stop: int) -> Array:
        values = np.empty((stop - start, self.shape[1]))
        with open(self.path, "rb", buffering=0) as file:
            self._fill(file, start, values)
        return values

    def _gather(self, rows: NDArray[Any]) -> Array:
        values = np.empty((len(rows), self.shape[1]))
        with open(self.path, "rb", buffering=0) as file:
            # In the order of the file: disks and their caches like that.
            for place in np.argsort(rows, kind="stable"):
                self._fill(file, int(rows[place]), values[place : place + 1])
        return values

    def _fill(self, file: Any, start: int, values: Array) -> None:
        """Read rows (n, n_features) from the row `start` on."""
        file.seek((self._start + start) * self.shape[1] * _WIDTH)
        left = values.reshape(-1).view(np.uint8).data
        while left:
            done = file.readinto(left)
            if not done:
                raise OSError(f"{self.path} ends before its row {self._start + start + len(values)}")
            left = left[done:]


class _Owner:
    """Lives as long as a file is wanted."""


def blocks(values: Array | StoredSeries) -> Iterator[Array]:
    """Yield all rows (n, n_features), in order: an array as it is, a stored series a few megabytes at a time."""
    if not isinstance(values, StoredSeries):
        yield values
        return
    rows = max(_BLOCK // (values.shape[1] * _WIDTH), 1)
    for start in range(0, len(values), rows):
        yield np.asarray(values[start : start + rows])


def in_memory(values: ArrayLike | StoredSeries) -> Any:
    """Return the values as they are, but what is stored and fits into memory as an array."""
    if isinstance(values, StoredSeries) and values.nbytes <= IN_MEMORY:
        return np.asarray(values)
    return values


def mean_of(values: Array | StoredSeries) -> Array:
    """Mean row (n_features,)."""
    total = sum(block.sum(axis=0) for block in blocks(values))
    return cast(Array, total / len(values))


def spread_of(values: Array | StoredSeries) -> float:
    """Standard deviation of all values."""
    size = values.shape[0] * values.shape[1]
    mean = sum(block.sum() for block in blocks(values)) / size
    return float(np.sqrt(sum(np.square(block - mean).sum() for block in blocks(values)) / size))
