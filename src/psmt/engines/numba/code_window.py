"""The window of codes on the CPU: it stores the non-zero entries of codes, and only these change the sums."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from psmt.engines.window import CodeWindow, Sums, half_stencil, second_difference
from psmt.types import Array, Ints, Mask
from psmt.utils.jit import njit

_ROWS = 1 << 14  # codes whose products are summed at a time
_DENSE = 1 << 12  # codes that are made dense at a time
_ENTRY = 15  # cost of an entry of a sparse code in a product, in entries of a dense matrix


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
    """Add the transposed codes times `rows` (n_codes, n) to `out` (n_features, n)."""
    for t in range(bounds.size - 1):
        row = rows[t]
        for i in range(bounds[t], bounds[t + 1]):
            total, value = out[atoms[i]], values[i]
            for k in range(row.size):
                total[k] += value * row[k]


class SparseCodes:
    """A queue of codes (n, n_features), oldest first, stored by their non-zero entries."""

    def __init__(self, codes: Array | csr_array) -> None:
        given, self.n_features = csr_array(codes), codes.shape[1]
        # The entries of all codes lie one after the other; `_bounds` says where each code begins and ends.
        self._atoms, self._values = given.indices.astype(np.int32), given.data
        self._bounds: Ints = given.indptr.astype(np.int64)
        self._first, self._last = 0, int(codes.shape[0])

    def __len__(self) -> int:
        return self._last - self._first

    def __getitem__(self, index: int) -> Array:
        """One code (n_features,), counted from the oldest, or from the end if negative."""
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

    @property
    def n_entries(self) -> int:
        """Number of non-zero entries."""
        return int(self._bounds[self._last] - self._bounds[self._first])

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

    def append(self, code: Array) -> None:
        """Add a code (n_features,) as the youngest."""
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
        """Remove the oldest code."""
        self._first += 1

    def _make_room(self, coming: int) -> None:
        """Move the codes to the front of arrays of twice the size, with room for `coming` entries more."""
        held = self.matrix
        n, room = held.nnz, 2 * (held.nnz + coming)
        self._atoms, self._values = np.empty(room, dtype=np.int32), np.empty(room)
        self._atoms[:n], self._values[:n] = held.indices, held.data
        self._bounds = np.zeros(2 * (len(self) + 1) + 1, dtype=np.int64)
        self._first, self._last = 0, len(self)
        self._bounds[: self._last + 1] = held.indptr


@dataclass(frozen=True)
class SparseSums(Sums):
    """Sums that multiply through the codes, for windows where that is cheaper than the dense sums."""

    codes: SparseCodes
    kept: Mask  # which interior second differences (n - 2,) lie within one series

    def products_times(self, vectors: Array) -> Array:
        return self.codes.transposed_times(self.codes.times(vectors))

    def second_differences_times(self, vectors: Array) -> Array:
        bends = _second_differences(self.codes.times(vectors), half_stencils=len(self.ends) > 0)
        bends[1:-1][~self.kept] = 0.0
        # D is symmetric, so its transpose has the half stencils in any case.
        return self.codes.transposed_times(_second_differences(bends, half_stencils=True))


def _second_differences(rows: Array, *, half_stencils: bool) -> Array:
    """Second differences (n, ..) of rows (n, ..); the first and the last are zero, or half stencils."""
    bends = np.zeros_like(rows)
    bends[1:-1] = second_difference(rows[:-2], rows[1:-1], rows[2:])
    if half_stencils:
        bends[0], bends[-1] = half_stencil(rows[0], rows[1]), half_stencil(rows[-1], rows[-2])
    return bends


class SparseWindow(CodeWindow):
    """See `psmt.engines.window.CodeWindow`."""

    def __init__(self, codes: Array | csr_array, begins: Mask | None = None) -> None:
        if not issparse(codes):
            codes = np.array(codes, dtype=np.float64)
        self.begins = deque(np.zeros(codes.shape[0], bool).tolist() if begins is None else begins.tolist())
        self.n_features = codes.shape[1]
        self._codes = SparseCodes(codes)
        matrix = self._codes.matrix
        # Sums of dense codes, in parts: sums of sparse ones would add in another order.
        parts = (matrix[first : first + _DENSE].toarray().sum(axis=1) for first in range(0, len(self), _DENSE))
        self._activity = deque(value for part in parts for value in part.tolist())
        self.peak = np.zeros(2)
        self.refresh()

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def codes(self) -> Array:
        return np.asarray(self._codes.matrix.toarray())

    def latest(self, count: int) -> Array:
        return np.array([self._codes[i] for i in range(-count, 0)])

    def oldest(self, count: int) -> Array:
        return np.array([self._codes[i] for i in range(min(count, len(self)))])

    @property
    def activities(self) -> Array:
        return np.array(self._activity)

    def sums(self, *, half_stencils: bool) -> Sums:
        ends = self.ends() if half_stencils else np.empty((0, self.n_features))
        dense = self.products, self.curvature, self.total, ends, len(self)
        if len(self) >= 3 and _ENTRY * self._codes.n_entries < self.n_features**2:
            return SparseSums(*dense, self._codes, self.bends_kept())
        return Sums(*dense)

    def _enter(self, code: Array) -> None:
        self._codes.append(code)
        self._activity.append(float(code.sum()))
        self._count(code, 1)
        if len(self) >= 3 and self.bends_at(-3):
            self._curve(-3, 1.0)

    def _leave(self) -> None:
        if len(self) >= 3 and self.bends_at(0):
            self._curve(0, -1.0)
        self._count(self._codes[0], -1)
        self._codes.popleft()
        self._activity.popleft()
        self.reverted += 1

    def _recompute(self) -> None:
        # Sparse products: a code uses few atoms, and the entries of unused atoms stay exactly zero.
        codes = self._codes.matrix
        self.total = np.asarray(codes.sum(axis=0))
        self.uses = np.bincount(codes.indices, minlength=self.n_features)
        self.products = np.zeros((self.n_features, self.n_features))
        self.curvature = np.zeros_like(self.products)
        kept = self.bends_kept() if self.seams and len(self) >= 3 else None
        # In parts, because second differences have three times the entries of codes, and a window may be a whole film.
        for first in range(0, max(len(self), 1), _ROWS):
            part = codes[first : first + _ROWS]
            self.products += (part.T @ part).toarray()
            part = codes[first : first + _ROWS + 2]
            if part.shape[0] >= 3:
                bends = part[1:-1] - 0.5 * (part[:-2] + part[2:])
                if kept is not None:
                    bends = bends[np.flatnonzero(kept[first : first + _ROWS])]
                self.curvature += (bends.T @ bends).toarray()

    def _count(self, code: Array, sign: int) -> None:
        active = np.flatnonzero(code)
        values = code[active]
        self.total[active] += sign * values
        self.products[active[:, None], active] += sign * np.outer(values, values)
        self.uses[active] += sign
        gone: NDArray[np.intp] = active[self.uses[active] == 0]
        self.total[gone] = 0.0
        for matrix in (self.products, self.curvature):
            matrix[gone] = 0.0
            matrix[:, gone] = 0.0

    def _curve(self, at: int, sign: float) -> None:
        bend = second_difference(*(self._codes[at + i] for i in range(3)))
        active = np.flatnonzero(bend)
        self.curvature[active[:, None], active] += sign * np.outer(bend[active], bend[active])
