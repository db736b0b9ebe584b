"""Compiled loops over NumPy arrays."""

from __future__ import annotations

import numpy as np

from psmt.types import Array, Ints
from psmt.utils.jit import njit

_HALVINGS = 52  # bisections, after which an eigenvalue is known to the rounding of the largest one


@njit(cache=True, nogil=True, error_model="numpy")
def lowest_tridiagonal(diagonal: Array, beside: Array, count: int) -> tuple[Array, Array]:
    """Return the lowest eigenvalues (count,) and unit eigenvectors (n, count) of a symmetric tridiagonal matrix.

    Its entries are `diagonal` (n,) and `beside` (n - 1,). Eigenvalues are found by bisection with Sturm's count. For
    each eigenvector, the matrix is factorised from both ends, and the two factorisations are joined where they fit best
    (Dhillon and Parlett, 2004). Eigenvectors of very close eigenvalues are not orthogonal. Loops over eigenvalues run
    in vector registers.
    """
    n = diagonal.size
    reach = np.zeros(n + 1)
    reach[1:n] = np.abs(beside)
    low, high = np.min(diagonal - reach[:n] - reach[1:]), np.max(diagonal + reach[:n] + reach[1:])
    tiny = 1e-30 * max(abs(low), abs(high)) + 1e-280
    lower, upper, values = np.full(count, low), np.full(count, high), np.empty(count)
    pivot, below = np.empty(count), np.empty(count)
    for _ in range(_HALVINGS):
        for k in range(count):
            values[k] = 0.5 * (lower[k] + upper[k])
            pivot[k], below[k] = 1.0, 0.0
        for i in range(n):
            here, square = diagonal[i], reach[i] * reach[i]
            for k in range(count):
                now = here - values[k] - square / pivot[k]
                now = now if abs(now) > tiny else -tiny
                below[k] += 1.0 if now < 0.0 else 0.0
                pivot[k] = now
        for k in range(count):
            if below[k] > k:
                upper[k] = values[k]
            else:
                lower[k] = values[k]
    # An entry of an eigenvector, divided by the entry after it (`down`) or before it (`up`).
    down, up, vectors = np.zeros((n + 1, count)), np.zeros((n + 1, count)), np.empty((n, count))
    pivot[:] = 1.0
    for i in range(n - 1, -1, -1):
        here, near = diagonal[i], beside[i] if i < n - 1 else 0.0
        for k in range(count):
            up[i + 1, k] = -near / pivot[k]
            now = here - values[k] + near * up[i + 1, k]
            pivot[k] = now if abs(now) > tiny else -tiny
            vectors[i, k] = pivot[k]
    joint, misfit = np.zeros(count), np.full(count, np.inf)
    pivot[:] = 1.0
    for i in range(n):
        here, near = diagonal[i], beside[i - 1] if i > 0 else 0.0
        for k in range(count):
            down[i, k] = -near / pivot[k]
            now = here - values[k] + near * down[i, k]
            pivot[k] = now if abs(now) > tiny else -tiny
            left = abs(vectors[i, k] + near * down[i, k])
            joint[k] = i if left < misfit[k] else joint[k]
            misfit[k] = left if left < misfit[k] else misfit[k]
    pivot[:], below[:] = 0.0, 0.0
    for i in range(n):
        for k in range(count):
            pivot[k] = 1.0 if joint[k] == i else up[i, k] * pivot[k]
            vectors[i, k] = pivot[k]
            below[k] += pivot[k] * pivot[k]
    pivot[:] = 0.0
    for i in range(n - 1, -1, -1):
        for k in range(count):
            pivot[k] = 1.0 if joint[k] == i else down[i + 1, k] * pivot[k]
            vectors[i, k] = pivot[k] if i < joint[k] else vectors[i, k]
            below[k] += pivot[k] * pivot[k] if i < joint[k] else 0.0
    return values, vectors / np.sqrt(below)


@njit(cache=True, nogil=True)
def add_by_group(values: Array, group: Ints, sums: Array) -> None:
    """Add column j of `values` (n, m) to column ``group[j]`` of `sums`, for every j."""
    for i in range(len(values)):
        for j in range(len(group)):
            sums[i, group[j]] += values[i, j]


@njit(cache=True, nogil=True)
def gather(matrix: Array, chosen: Ints, part: Array) -> None:
    """Copy the rows and columns `chosen` (n,) of a matrix to `part` (n, n). NumPy's indexing is four times slower."""
    for i in range(len(chosen)):
        row = matrix[chosen[i]]
        for j in range(len(chosen)):
            part[i, j] = row[chosen[j]]
