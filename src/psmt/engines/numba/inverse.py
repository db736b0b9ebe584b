"""Inverse operators on the CPU. Low-rank changes are collected, then added to the matrix in one matrix product."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from psmt.numerics.arrays import inverse_symmetric
from psmt.types import Array, Ints, Mask
from psmt.utils.jit import njit

FEW = 8  # vectors up to which `few_rows_times` is faster than BLAS
_SPARE = 1 / 16  # rows for features that later get entries off the diagonal, as a fraction of all features
_WAITING = 16  # vectors that are collected before they are added to the matrix; more would make the slowest step slower


class LazyInverse:
    """Inverse of a complex symmetric matrix (an `InverseOperator`) that collects low-rank changes.

    A feature whose only entry is on the diagonal, such as an atom that no code uses, has no row in the stored matrix.
    It gets a spare row when a change gives it other entries.
    """

    def __init__(self, matrix: Array) -> None:
        self.refactorise(matrix)

    def refactorise(self, matrix: Array) -> None:
        held, n = np.flatnonzero(np.count_nonzero(matrix, axis=0) > 1), len(matrix)
        whole = len(held) + _SPARE * n > n
        held = np.arange(n) if whole else held
        self._diagonal = 1.0 / np.where(np.diagonal(matrix) == 0, 1.0, np.diagonal(matrix))  # of features without a row
        self._store(held, inverse_symmetric(matrix if whole else matrix[np.ix_(held, held)]), 0)

    def _store(self, held: Ints, matrix: Array, more: int) -> None:
        """Store the rows and columns `held` of the inverse. Unless these are all, add at least `more` spare rows."""
        self._held, self._matrix, n = held, matrix, len(held)
        if n < len(self._diagonal):
            n += more + int(_SPARE * len(self._diagonal))
            self._matrix = np.zeros((n, n), dtype=matrix.dtype)
            self._matrix[: len(held), : len(held)] = matrix
        # Pending changes: the inverse is the matrix minus left' right.
        self._left = np.zeros((_WAITING, n), dtype=matrix.dtype)
        self._right = np.zeros_like(self._left)
        self._waiting = 0

    def times(self, vectors: Array) -> Array:
        given, n = np.ascontiguousarray(vectors.T), len(self._held)
        rows, whole = given, n == len(self._diagonal)
        if not whole:
            rows = np.zeros((len(given), len(self._matrix)))
            rows[:, :n] = given[:, self._held]
        # Complex matrices are read as real and imaginary parts side by side, which takes half the time of a complex
        # product. Vectors are real.
        dense = self._matrix.view(np.float64)
        images = few_rows_times(rows, dense) if len(rows) <= FEW else rows @ dense
        images = images.view(self._matrix.dtype)
        waiting = slice(self._waiting)
        images -= (rows @ self._right[waiting].T) @ self._left[waiting]
        if whole:
            return images.T
        all_images = given * self._diagonal
        all_images[:, self._held] = images[:, :n]
        return all_images.T

    def subtract(self, left: Array, right: Array) -> None:
        k = left.shape[1]
        if len(self._held) < len(self._diagonal):
            touched: Mask = np.any(left != 0, axis=1)
            touched[self._held] = False
            self._hold(np.flatnonzero(touched))
        if self._waiting + k > _WAITING:
            self._flush()
        for stored, change in ((self._left, left), (self._right, right)):
            stored[self._waiting : self._waiting + k, : len(self._held)] = change[self._held].T
        self._waiting += k

    def _hold(self, features: Ints) -> None:
        """Add rows to the stored matrix for these features, which have none yet."""
        held = np.concatenate([self._held, features])
        if len(held) > len(self._matrix):
            self._flush()
            n = len(self._held)
            self._store(self._held, self._matrix[:n, :n], len(features))
        self._matrix[range(len(self._held), len(held)), range(len(self._held), len(held))] = self._diagonal[features]
        self._held = held

    def _flush(self) -> None:
        (gemm,) = scipy.linalg.get_blas_funcs(("gemm",), (self._matrix,))
        left, right = self._left[: self._waiting], self._right[: self._waiting]
        gemm(-1.0, right.T, left.T, beta=1.0, c=self._matrix.T, trans_b=True, overwrite_c=True)
        self._waiting = 0


def few_rows_times(vectors: Array, matrix: Array) -> Array:
    """Return the product (k, m) of a few vectors (k, n) and a matrix (n, m), in one pass over the matrix.

    For two to four vectors BLAS takes two to three times as long, because it copies the matrix.
    """
    images = np.zeros((len(vectors), matrix.shape[1]))
    # Always copy, because the kernel would be compiled a second time for a read-only array.
    _add_products(np.array(vectors, order="C"), matrix, images)
    return images


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_products(vectors: Array, matrix: Array, images: Array) -> None:
    """Add ``vectors @ matrix`` to `images`. Blocks of four matrix rows and three vectors fill the registers."""
    k, n = vectors.shape
    m = matrix.shape[1]
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for r in range(0, k - k % 3, 3):
            x, y, z = vectors[r, i : i + 4], vectors[r + 1, i : i + 4], vectors[r + 2, i : i + 4]
            u, v, w = images[r], images[r + 1], images[r + 2]
            x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
            y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
            z0, z1, z2, z3 = z[0], z[1], z[2], z[3]
            for j in range(m):
                a0, b0, c0, d0 = a[j], b[j], c[j], d[j]
                u[j] += x0 * a0 + x1 * b0 + x2 * c0 + x3 * d0
                v[j] += y0 * a0 + y1 * b0 + y2 * c0 + y3 * d0
                w[j] += z0 * a0 + z1 * b0 + z2 * c0 + z3 * d0
        for r in range(k - k % 3, k):
            u = images[r]
            x0, x1, x2, x3 = vectors[r, i], vectors[r, i + 1], vectors[r, i + 2], vectors[r, i + 3]
            for j in range(m):
                u[j] += x0 * a[j] + x1 * b[j] + x2 * c[j] + x3 * d[j]
    for i in range(whole, n):
        for r in range(k):
            for j in range(m):
                images[r, j] += vectors[r, i] * matrix[i, j]
