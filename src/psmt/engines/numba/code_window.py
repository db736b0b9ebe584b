"""Sliding window of codes on the CPU. It stores only the non-zero entries of codes, and sums only over these."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from psmt.engines.window import CodeWindow, Sums, second_difference
from psmt.types import Array, Ints, Mask
from psmt.utils.jit import njit

_ROWS = 1 << 14  # codes whose products are summed at a time
_DENSE = 1 << 12  # codes that are made dense at a time
_ENTRY = 15  # a sparse code's entry takes as long in a product as this many entries of a dense matrix


@njit(cache=True, nogil=True, fastmath={"contract"})
def _times(
    bounds: Ints, atoms: NDArray[np.int32], values: Array, bends: Mask, half: bool, vectors: Array, images: Array
) -> None:
    """For each vector x, add ``A A' x`` to ``images[0]``, and ``A D D' A' x`` to ``images[1]`` if this exists.

    The vectors and each image are (n_features, k). The columns of A are the codes, given as the arrays `bounds`,
    `atoms` and `values` of a CSR matrix. The columns of A D are the second differences of codes that the mask `bends`
    (n_codes - 2,) selects and, if `half`, the `half_stencil` at both ends.
    """
    n, k = bounds.size - 1, vectors.shape[1]
    rows = np.zeros((n, k))
    for t in range(n):
        row = rows[t]
        for i in range(bounds[t], bounds[t + 1]):
            vector, value = vectors[atoms[i]], values[i]
            for c in range(k):
                row[c] += value * vector[c]
    _add_transposed(bounds, atoms, values, rows, images[0])
    if images.shape[0] < 2:
        return
    rough = np.zeros((n, k))
    for t in range(1, n - 1):
        if bends[t - 1]:
            before, row, after = rows[t - 1], rows[t], rows[t + 1]
            left, middle, right = rough[t - 1], rough[t], rough[t + 1]
            for c in range(k):
                bend = row[c] - 0.5 * (before[c] + after[c])
                left[c] -= 0.5 * bend
                middle[c] += bend
                right[c] -= 0.5 * bend
    if half:
        for c in range(k):
            first, last = rows[0, c] - 0.5 * rows[1, c], rows[n - 1, c] - 0.5 * rows[n - 2, c]
            rough[0, c] += first
            rough[1, c] -= 0.5 * first
            rough[n - 1, c] += last
            rough[n - 2, c] -= 0.5 * last
    _add_transposed(bounds, atoms, values, rough, images[1])


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_transposed(bounds: Ints, atoms: NDArray[np.int32], values: Array, rows: Array, out: Array) -> None:
    """Add ``A rows`` to `out` (n_features, k), where the columns of A are the codes, as in `_times`."""
    for t in range(bounds.size - 1):
        row = rows[t]
        for i in range(bounds[t], bounds[t + 1]):
            total, value = out[atoms[i]], values[i]
            for c in range(row.size):
                total[c] += value * row[c]


@njit(cache=True, nogil=True)
def _add_outer(matrix: Array, active: Ints, values: Array, sign: float) -> None:
    """Add `sign` times ``v v'`` to the matrix, for a sparse vector v with `values` at the indices `active`."""
    for i in range(active.size):
        row, value = matrix[active[i]], sign * values[i]
        for k in range(active.size):
            row[active[k]] += value * values[k]


class SparseCodes:
    """First-in, first-out queue of codes (n_features,) that stores only their non-zero entries."""

    def __init__(self, codes: Array | csr_array) -> None:
        given, self.n_features = csr_array(codes), codes.shape[1]
        # The entries of all codes lie one after the other; `_bounds` says where each code begins and ends.
        self._atoms, self._values = given.indices.astype(np.int32), given.data
        self._bounds: Ints = given.indptr.astype(np.int64)
        self._first, self._last = 0, int(codes.shape[0])

    def __len__(self) -> int:
        return self._last - self._first

    def __getitem__(self, index: int) -> Array:
        """Return one code (n_features,). Index 0 is the oldest code and index -1 the youngest."""
        at = index + (self._first if index >= 0 else self._last)
        code, entries = np.zeros(self.n_features), slice(self._bounds[at], self._bounds[at + 1])
        code[self._atoms[entries]] = self._values[entries]
        return code

    @property
    def _held(self) -> Ints:
        """Row pointers (n + 1,) of the codes as in a CSR matrix: where each code begins, and where the last ends."""
        return self._bounds[self._first : self._last + 1]

    @property
    def matrix(self) -> csr_array:
        """All codes as a sparse matrix (n, n_features), oldest first."""
        bounds = self._held
        entries = slice(bounds[0], bounds[-1])
        shape = (len(self), self.n_features)
        return csr_array((self._values[entries], self._atoms[entries], bounds - bounds[0]), shape=shape)

    @property
    def n_entries(self) -> int:
        """Number of non-zero entries."""
        return int(self._bounds[self._last] - self._bounds[self._first])

    def times(self, vectors: Array, bends: Mask | None = None, *, half_stencils: bool = False) -> Array:
        """Return ``sum a a' x`` over the codes a, for each column x of `vectors` (n_features, k).

        The shape is (1, n_features, k). With a mask `bends` (n - 2,), it is (2, n_features, k). The second part is
        ``sum d d' x`` over the second differences d in the mask and, if `half_stencils`, the two half stencils.
        """
        images = np.zeros((1 if bends is None else 2, *vectors.shape))
        chosen = np.zeros(0, dtype=bool) if bends is None else bends
        vectors = np.ascontiguousarray(vectors)
        _times(self._held, self._atoms, self._values, chosen, half_stencils, vectors, images)
        return images

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
        """Move the codes to new arrays, twice as large as these codes and `coming` more entries need."""
        held = self.matrix
        n, room = held.nnz, 2 * (held.nnz + coming)
        self._atoms, self._values = np.empty(room, dtype=np.int32), np.empty(room)
        self._atoms[:n], self._values[:n] = held.indices, held.data
        self._bounds = np.zeros(2 * (len(self) + 1) + 1, dtype=np.int64)
        self._first, self._last = 0, len(self)
        self._bounds[: self._last + 1] = held.indptr


@dataclass(frozen=True)
class SparseSums(Sums):
    """`Sums` that multiply vectors by sparse codes. They are used where this is faster than dense matrices."""

    codes: SparseCodes
    kept: Mask  # whether each interior second difference (n - 2,) lies within one series

    def covariance_times(self, vectors: Array, *, centred: bool) -> Array:
        return self._averaged(self.codes.times(vectors)[0], vectors, centred=centred)

    def times(self, vectors: Array, *, centred: bool) -> tuple[Array, Array]:
        images, rough = self.codes.times(vectors, self.kept, half_stencils=len(self.ends) > 0)
        return self._averaged(images, vectors, centred=centred), rough


class SparseWindow(CodeWindow):
    """Sliding window of codes (a `CodeWindow`) that stores only their non-zero entries."""

    def __init__(self, codes: Array | csr_array, begins: Mask | None = None) -> None:
        if not issparse(codes):
            codes = np.array(codes, dtype=np.float64)
        self.begins = deque(np.zeros(codes.shape[0], bool).tolist() if begins is None else begins.tolist())
        self.n_features = codes.shape[1]
        self._codes = SparseCodes(codes)
        matrix = self._codes.matrix
        # The sums are taken over dense codes, in parts, because sums of sparse codes would round differently.
        parts = (matrix[first : first + _DENSE].toarray().sum(axis=1) for first in range(0, len(self), _DENSE))
        self._activity = deque(value for part in parts for value in part.tolist())
        self.peak = np.zeros(2)
        self.refresh()

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def codes(self) -> Array:
        return np.asarray(self._codes.matrix.toarray())

    def keep(self) -> Callable[[], csr_array]:
        codes = copy(self._codes)  # codes that arrive or leave do not change the entries of those in between
        return lambda: codes.matrix

    def latest(self, count: int) -> Array:
        return np.array([self._codes[i] for i in range(-count, 0)])

    def oldest(self, count: int) -> Array:
        return np.array([self._codes[i] for i in range(min(count, len(self)))])

    @property
    def activities(self) -> Array:
        return np.fromiter(self._activity, np.float64, len(self._activity))

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
        # In parts, because second differences have three times as many entries as codes, and a window may be a whole
        # film.
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
        _add_outer(self.products, active, values, float(sign))
        self.uses[active] += sign
        gone: NDArray[np.intp] = active[self.uses[active] == 0]
        if len(gone):
            self.total[gone] = 0.0
            for matrix in (self.products, self.curvature):
                matrix[gone] = 0.0
                matrix[:, gone] = 0.0

    def _curve(self, at: int, sign: float) -> None:
        bend = second_difference(*(self._codes[at + i] for i in range(3)))
        active = np.flatnonzero(bend)
        _add_outer(self.curvature, active, bend[active], sign)
