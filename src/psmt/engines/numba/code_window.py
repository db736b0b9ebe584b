"""The window of codes on the CPU: codes are kept by their non-zero entries, and sums change where these are."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psmt.engines.numba.sparse_codes import SparseCodes
from psmt.engines.window import CodeWindow, Sums, half_stencil, second_difference
from psmt.types import Array, Mask

_ENTRY = 15
"""What an entry of a sparse code costs in a product, in entries of a dense matrix."""


@dataclass(frozen=True)
class SparseSums(Sums):
    """Sums that are multiplied by way of the codes: for where that costs less than the dense sums do."""

    codes: SparseCodes
    kept: Mask
    """Which interior second differences (n - 2,) lie within one series."""

    def products_times(self, vectors: Array) -> Array:
        """`products` times the columns of `vectors` (n_features, k), as a fresh array."""
        return self.codes.transposed_times(self.codes.times(vectors))

    def second_differences_times(self, vectors: Array) -> Array:
        """S, half stencils included, times the columns of `vectors` (n_features, k), as a fresh array."""
        bends = _second_differences(self.codes.times(vectors), half_stencils=len(self.ends) > 0)
        bends[1:-1][~self.kept] = 0.0
        # D is symmetric, so that its transpose has the half stencils in any case.
        return self.codes.transposed_times(_second_differences(bends, half_stencils=True))


def _second_differences(rows: Array, *, half_stencils: bool) -> Array:
    """Second differences (n, ..) of rows (n, ..); those of the first and the last are zero, or half stencils."""
    bends = np.zeros_like(rows)
    bends[1:-1] = second_difference(rows[:-2], rows[1:-1], rows[2:])
    if half_stencils:
        bends[0], bends[-1] = half_stencil(rows[0], rows[1]), half_stencil(rows[-1], rows[-2])
    return bends


class SparseWindow(CodeWindow):
    """See `psmt.engines.window.CodeWindow`."""

    def __init__(self, codes: Array, begins: Mask | None = None) -> None:
        codes = np.array(codes, dtype=np.float64)
        self.begins = deque(np.zeros(len(codes), bool).tolist() if begins is None else begins.tolist())
        self.n_features = codes.shape[1]
        self._codes = SparseCodes.of(codes)
        self._activity = deque(codes.sum(axis=1).tolist())
        self.peak = np.zeros(2)
        self.refresh()

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def codes(self) -> Array:
        """All codes (n, n_features), oldest first."""
        return np.asarray(self._codes.matrix.toarray())

    def latest(self, count: int) -> Array:
        """The youngest codes (count, n_features), oldest first."""
        return np.array([self._codes[i] for i in range(-count, 0)])

    def oldest(self, count: int) -> Array:
        """The oldest codes (up to count, n_features), in arrays that stay as they are now."""
        return np.array([self._codes[i] for i in range(min(count, len(self)))])

    @property
    def activities(self) -> Array:
        """Sum (n,) of each code, oldest first."""
        return np.array(self._activity)

    def sums(self, *, half_stencils: bool) -> Sums:
        """The sums as they are now, for products with V and S."""
        ends = self.ends() if half_stencils else np.empty((0, self.n_features))
        dense = self.products, self.curvature, self.total, ends, len(self)
        if len(self) >= 3 and _ENTRY * self._codes.n_entries < self.n_features**2:
            return SparseSums(*dense, self._codes, self.bends_kept())
        return Sums(*dense)

    def _store(self, code: Array) -> None:
        self._codes.append(code)
        self._activity.append(float(code.sum()))

    def _discard(self) -> None:
        self._codes.popleft()
        self._activity.popleft()
        self.reverted += 1

    def _add(self, code: Array) -> None:
        self._count(code, 1)
        if len(self) >= 3 and self.bends_at(-3):
            self._curve(-3, 1.0)

    def _subtract(self) -> None:
        if len(self) >= 3 and self.bends_at(0):
            self._curve(0, -1.0)
        self._count(self._codes[0], -1)

    def _recompute(self) -> None:
        # Sparse products: a code uses few atoms, and entries of unused ones stay exactly zero.
        codes = self._codes.matrix
        self.total = np.asarray(codes.sum(axis=0))
        self.uses = np.bincount(codes.indices, minlength=self.n_features)
        self.products = (codes.T @ codes).toarray()
        bends = codes[1:-1] - 0.5 * (codes[:-2] + codes[2:]) if len(self) >= 3 else codes[:0]
        if self.seams and len(self) >= 3:
            bends = bends[np.flatnonzero(self.bends_kept())]
        self.curvature = (bends.T @ bends).toarray()

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
