"""Codes of a window, kept by their non-zero entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from psmt.types import Array, Ints
from psmt.utils.jit import njit

_DENSE = 1 << 12
"""Codes that are dense at one time."""


@njit(cache=True, nogil=True, fastmath={"contract"})
def _times(bounds: Ints, atoms: NDArray[np.int32], values: Array, vectors: Array, out: Array) -> None:
    """Add the codes times `vectors` (n_features, n) to `out` (n_codes, n)."""
    for t in range(bounds.size - 1):
        total = out[t]
        for i in range(bounds[t], bounds[t + 1]):
            vector, value = vectors[atoms[i]], values[i]
            for k in range(total.size):
                total[k] += value * vector[k]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _transposed_times(bounds: Ints, atoms: NDArray[np.int32], values: Array, rows: Array, out: Array) -> None:
    """Add the codes, transposed, times `rows` (n_codes, n) to `out` (n_features, n)."""
    for t in range(bounds.size - 1):
        row = rows[t]
        for i in range(bounds[t], bounds[t + 1]):
            total, value = out[atoms[i]], values[i]
            for k in range(row.size):
                total[k] += value * row[k]


class SparseCodes:
    """A queue of codes (n_features,), oldest first.

    Examples
    --------
    >>> import numpy as np
    >>> codes = SparseCodes.of(np.eye(3))
    >>> codes.append(np.array([0.0, 5.0, 0.0]))
    >>> codes.popleft()
    >>> codes.matrix.toarray()
    array([[0., 1., 0.],
           [0., 0., 1.],
           [0., 5., 0.]])
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        # Codes lie one behind the other; `_bounds` says where each begins and ends.
        self._atoms = np.empty(0, dtype=np.int32)
        self._values = np.empty(0)
        self._bounds = np.zeros(1, dtype=np.int64)
        self._first = self._last = 0

    @classmethod
    def of(cls, codes: Array | csr_array) -> Self:
        """Codes (n, n_features) at once; they may be sparse."""
        own, given = cls(codes.shape[1]), csr_array(codes)
        own._atoms, own._values = given.indices.astype(np.int32), given.data
        own._bounds, own._last = given.indptr.astype(np.int64), codes.shape[0]
        return own

    def __len__(self) -> int:
        return self._last - self._first

    def __getitem__(self, index: int) -> Array:
        """One code (n_features,), counted from the oldest, or back from the youngest where negative."""
        at = index + (self._first if index >= 0 else self._last)
        code, entries = np.zeros(self.n_features), slice(self._bounds[at], self._bounds[at + 1])
        code[self._atoms[entries]] = self._values[entries]
        return code

    @property
    def _held(self) -> Ints:
        """Bounds (n + 1,) of the codes."""
        return self._bounds[self._first : self._last + 1]

    @property
    def matrix(self) -> csr_array:
        """All codes (n, n_features)."""
        bounds = self._held
        entries = slice(bounds[0], bounds[-1])
        shape = (len(self), self.n_features)
        return csr_array((self._values[entries], self._atoms[entries], bounds - bounds[0]), shape=shape)

    def times(self, vectors: Array) -> Array:
        """All codes times the columns of `vectors` (n_features, n): rows (n_codes, n)."""
        rows = np.zeros((len(self), vectors.shape[1]))
        _times(self._held, self._atoms, self._values, np.ascontiguousarray(vectors), rows)
        return rows

    def transposed_times(self, rows: Array) -> Array:
        """Sum over all codes of each times its row of `rows` (n_codes, n): (n_features, n)."""
        vectors = np.zeros((self.n_features, rows.shape[1]))
        _transposed_times(self._held, self._atoms, self._values, np.ascontiguousarray(rows), vectors)
        return vectors

    def sums(self) -> Iterator[float]:
        """Sum of each code, oldest first, in the order in which the sum of a dense one adds."""
        codes = self.matrix
        for first in range(0, len(self), _DENSE):
            yield from codes[first : first + _DENSE].toarray().sum(axis=1).tolist()

    @property
    def n_entries(self) -> int:
        """How many are not zero."""
        return int(self._bounds[self._last] - self._bounds[self._first])

    def append(self, code: Array) -> None:
        """Take in a code (n_features,) that is younger than all others."""
        active = np.flatnonzero(code)
        end = self._bounds[self._last] + len(active)
        if self._last + 1 == len(self._bounds) or end > len(self._values):
            self._make_room(len(active))
            end = self._bounds[self._last] + len(active)
        self._atoms[end - len(active) : end] = active
        self._values[end - len(active) : end] = code[active]
        self._last += 1
        self._bounds[self._last] = end

    def popleft(self) -> None:
        """Let go of the oldest code."""
        self._first += 1

    def _make_room(self, coming: int) -> None:
        """Move what is left of the codes to the front of arrays of twice the size, for one with so many entries."""
        held = self.matrix
        n, room = held.nnz, 2 * (held.nnz + coming)
        self._atoms, self._values = np.empty(room, dtype=np.int32), np.empty(room)
        self._atoms[:n], self._values[:n] = held.indices, held.data
        self._bounds = np.zeros(2 * (len(self) + 1) + 1, dtype=np.int64)
        self._first, self._last = 0, len(self)
        self._bounds[: self._last + 1] = held.indptr
