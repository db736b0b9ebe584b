"""Shift-invert operators on the CPU: Woodbury changes are collected and added to the matrices in one product."""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from psmt.engines.contract import LowRankChange
from psmt.engines.numba.fan_out import in_background
from psmt.numerics.arrays import FEWEST, inverse_symmetric
from psmt.types import Array, Mask
from psmt.utils.jit import njit

FEW = 8  # vectors up to which `few_rows_times` is faster than BLAS

_WAITING = 24  # vectors of changes that are collected before they are added to the matrices

_AHEAD = 4
"""Changes after which a new operator is put in place. By then its matrix is inverted. The number is fixed, so that
results do not depend on how long the inverse takes."""


class _Renewal(NamedTuple):
    """An operator that is being computed afresh in another thread."""

    which: int
    shift: complex
    inverse: Future[Array]
    changes: list[LowRankChange]  # of the window meanwhile
    process: int  # a fork has no other threads and would wait forever


class LazyShiftInvert:
    """See `psmt.engines.contract.ShiftInvert`. The operators are symmetric, so rows and columns are the same."""

    def __init__(self, shifted: Array, shifts: Array) -> None:
        self.shifts = shifts
        self._matrices = np.stack([inverse_symmetric(matrix) for matrix in shifted])
        # Changes that are not in the matrices yet: minus left' right.
        self._left = np.empty((len(shifts), _WAITING, self._matrices.shape[-1]), dtype=self._matrices.dtype)
        self._right = np.empty_like(self._left)
        self._waiting = 0
        self._renewal: _Renewal | None = None

    def __getstate__(self) -> dict[str, Any]:
        self._take_over()  # the work of another thread can be neither copied nor pickled
        return self.__dict__

    def dense(self) -> Array:
        self._flush()
        return self._matrices

    def times(self, which: int, vectors: Array) -> Array:
        left, right = self._left[which, : self._waiting], self._right[which, : self._waiting]
        images: Array = _times_rows(vectors.T, self._matrices[which]).T - left.T @ (right @ vectors)
        return images

    def times_each(self, vectors: Array) -> Array:
        own = np.broadcast_to(vectors, (len(self.shifts), *vectors.shape[1:]))
        return np.stack([self.times(i, own[i]) for i in range(len(own))])

    def refactorise(self, which: Mask, shifts: Array, shifted: Array, /, *, later: bool = False) -> None:
        wanted = np.flatnonzero(which).tolist()
        # Inverting a matrix takes longer than a whole slide, so `later` one operator is inverted in another thread.
        if later:
            if self._renewal is None:
                # NumPy's inverse releases the GIL; those of SciPy do not.
                inverse = in_background(lambda: np.linalg.inv(shifted[0]))
                self._renewal = _Renewal(wanted[0], shifts[wanted[0]], inverse, [], os.getpid())
            return
        for i, matrix in zip(wanted, shifted, strict=True):
            self._set(i, shifts[i], inverse_symmetric(matrix))

    def _set(self, which: int, shift: complex, inverse: Array) -> None:
        self.shifts = np.where(np.arange(len(self.shifts)) == which, shift, self.shifts)
        self._matrices[which] = inverse
        self._left[which] = self._right[which] = 0.0
        if self._renewal is not None and self._renewal.which == which:
            self._renewal = None

    def _take_over(self) -> None:
        """Put the operator of another thread in place, if there is one, with the changes since."""
        if self._renewal is None:
            return
        which, shift, coming, changes, process = self._renewal
        self._renewal = None
        if process != os.getpid():
            return
        try:
            inverse: Array = coming.result()
        except np.linalg.LinAlgError:
            return
        for change in changes:
            images = _times_rows(change.vectors, inverse)
            inverse -= images.T @ (_core(images, change, shift) @ images)
        self._set(which, shift, inverse)

    def images(self, vectors: Array) -> Array:
        left, right = self._left[:, : self._waiting], self._right[:, : self._waiting]
        images = _times_rows(vectors, self._matrices)
        images -= (vectors @ right.mT) @ left
        return images

    def subtract(self, left: Array, right: Array) -> None:
        n = left.shape[1]
        if self._waiting + n > _WAITING:
            self._flush()
        self._left[:, self._waiting : self._waiting + n] = left
        self._right[:, self._waiting : self._waiting + n] = right
        self._waiting += n

    def update(self, change: LowRankChange) -> Array:
        images = self.images(change.vectors)
        self.subtract(images, _core(images, change, self.shifts[:, None]) @ images)
        if self._renewal is not None:
            self._renewal.changes.append(change)
            if len(self._renewal.changes) == _AHEAD:
                self._take_over()
        return images

    def _flush(self) -> None:
        (gemm,) = scipy.linalg.get_blas_funcs(("gemm",), (self._matrices,))
        for matrix, left, right in zip(self._matrices, self._left, self._right, strict=True):
            waiting = slice(self._waiting)
            gemm(-1.0, right[waiting].T, left[waiting].T, beta=1.0, c=matrix.T, trans_b=True, overwrite_c=True)
        self._waiting = 0


def _core(images: Array, change: LowRankChange, shifts: Array | complex) -> Array:
    """Inner matrix (.., n, n) of Woodbury's formula, given the images (.., n, n_features) of a change's vectors."""
    weights = change.curvature - shifts * change.covariance
    inner = np.eye(len(change.vectors)) + weights[..., None] * (images @ change.vectors.T).mT
    core = np.linalg.solve(inner, weights[..., None] * np.eye(len(change.vectors)))
    # Symmetrise: an antisymmetric part would grow from slide to slide.
    symmetric: Array = 0.5 * (core + core.mT)
    return symmetric


def _times_rows(vectors: Array, matrices: Array) -> Array:
    """Real vectors (n, n_features) times matrices (.., n_features, n_features), real or complex."""
    # Real and imaginary parts side by side: one real product takes half the time of a complex one.
    dense = matrices.view(np.float64)
    if not np.iscomplexobj(matrices):
        # The resolvent: BLAS is more accurate by a digit, which the refinement needs.
        images = vectors @ dense if len(vectors) > FEWEST else np.stack([one @ dense for one in vectors], axis=-2)
    elif len(vectors) > FEW:
        images = vectors @ dense
    elif dense.ndim == 2:
        images = few_rows_times(vectors, dense)
    else:
        images = np.stack([few_rows_times(vectors, one) for one in dense])
    return images.view(matrices.dtype)


def few_rows_times(vectors: Array, matrix: Array) -> Array:
    """Vectors (k, n) times a matrix (n, m) with contiguous rows, in one pass over the matrix.

    BLAS is made for many vectors: for two to four it takes two to three times as long, because it copies the matrix.
    """
    images = np.zeros((len(vectors), matrix.shape[1]))
    # Always a copy: for a read-only array the kernel would be compiled once more.
    _add_products(np.array(vectors, order="C"), matrix, images)
    return images


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_products(vectors: Array, matrix: Array, images: Array) -> None:
    """Add the products to the images. Four rows of the matrix times three vectors at a time fill the registers."""
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
