"""Few vectors times a matrix, in one pass over it.

BLAS is made for many: it takes two to four vectors in two to three times the time, because it first copies the matrix
into the order that it likes.
"""

from __future__ import annotations

import numpy as np

from psmt.types import Array
from psmt.utils.jit import njit

FEW = 8
"""Vectors up to which this is faster."""


def few_rows_times(vectors: Array, matrix: Array) -> Array:
    """Vectors (k, n) times a matrix (n, m) with its rows in one piece."""
    images = np.zeros((len(vectors), matrix.shape[1]))
    # A copy in any case: for one that may not be written to the kernel would be compiled once more.
    _add_products(np.array(vectors, order="C"), matrix, images)
    return images


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_products(vectors: Array, matrix: Array, images: Array) -> None:
    """Add the products to the images; four rows of the matrix for three vectors at a time fill the registers."""
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
