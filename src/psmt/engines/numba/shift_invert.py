"""Shift-invert operators on the CPU: Woodbury changes wait until they go into the matrices in one product."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from psmt.engines.contract import Change
from psmt.numerics.linalg import FEW, inverse_symmetric
from psmt.types import Array, Mask

_WAITING = 24
"""Vectors of changes that are kept aside before they are flushed into the matrices."""

_ROWS = 8
"""BLAS takes less time for so many vectors than for six."""


class LazyShiftInvert:
    """See `psmt.engines.contract.ShiftInvert`. The operators are symmetric, so that rows serve as columns."""

    def __init__(self, shifted: Array, shifts: Array) -> None:
        self.shifts = shifts
        self._matrices = np.stack([inverse_symmetric(matrix) for matrix in shifted])
        # Changes that have not been put into the matrices yet: less left' right.
        self._left = np.empty((len(shifts), _WAITING, self._matrices.shape[-1]), dtype=self._matrices.dtype)
        self._right = np.empty_like(self._left)
        self._waiting = 0

    def dense(self) -> Array:
        """The operators as matrices (n_shifts, n_features, n_features)."""
        self._flush()
        return self._matrices

    def times(self, which: int, vectors: Array) -> Array:
        """One operator times the columns of `vectors` (n_features, n)."""
        left, right = self._left[which, : self._waiting], self._right[which, : self._waiting]
        images: Array = _times_rows(vectors.T, self._matrices[which]).T - left.T @ (right @ vectors)
        return images

    def times_each(self, vectors: Array) -> Array:
        """Each operator times its own columns (n_shifts, n_features, n), or all times one set (1, ..)."""
        own = np.broadcast_to(vectors, (len(self.shifts), *vectors.shape[1:]))
        return np.stack([self.times(i, own[i]) for i in range(len(own))])

    def refactorise(self, which: Mask, shifts: Array, shifted: Array, /) -> None:
        """Set some of the operators (n_shifts,) to the inverses of `shifted`, at new shifts."""
        self.shifts = np.where(which, shifts, self.shifts)
        for i, matrix in zip(np.flatnonzero(which), shifted, strict=True):
            self._matrices[i] = inverse_symmetric(matrix)
        self._left[which] = self._right[which] = 0.0

    def images(self, vectors: Array) -> Array:
        """Images (n_shifts, n, n_features) of vectors (n, n_features) under the operators."""
        left, right = self._left[:, : self._waiting], self._right[:, : self._waiting]
        images = _times_rows(vectors, self._matrices)
        images -= (vectors @ right.mT) @ left
        return images

    def subtract(self, left: Array, right: Array) -> None:
        """Take ``left' right`` from the operators, each (n_shifts, n, n_features)."""
        n = left.shape[1]
        if self._waiting + n > _WAITING:
            self._flush()
        self._left[:, self._waiting : self._waiting + n] = left
        self._right[:, self._waiting : self._waiting + n] = right
        self._waiting += n

    def update(self, change: Change) -> Array:
        """Images (n_shifts, n, n_features) of the vectors of a change under the operators before it."""
        images = self.images(change.vectors)
        weights: Array = change.curvature - self.shifts[:, None] * change.covariance
        inner = np.eye(len(change.vectors)) + weights[..., None] * (images @ change.vectors.T).mT
        core = np.linalg.solve(inner, weights[..., None] * np.eye(len(change.vectors)))
        # The operators stay symmetric: what is not would grow from slide to slide.
        self.subtract(images, (0.5 * (core + core.mT)) @ images)
        return images

    def _flush(self) -> None:
        (gemm,) = scipy.linalg.get_blas_funcs(("gemm",), (self._matrices,))
        for matrix, left, right in zip(self._matrices, self._left, self._right, strict=True):
            waiting = slice(self._waiting)
            gemm(-1.0, right[waiting].T, left[waiting].T, beta=1.0, c=matrix.T, trans_b=True, overwrite_c=True)
        self._waiting = 0


def _times_rows(vectors: Array, matrices: Array) -> Array:
    """Real vectors (n, n_features) times matrices (.., n_features, n_features), real or complex."""
    # Real and imaginary parts stand side by side: one real product, in half the time of a complex one.
    dense = matrices.view(np.float64)
    if len(vectors) <= FEW:
        images = np.stack([vector @ dense for vector in vectors], axis=-2)
    else:
        rows = np.zeros((-len(vectors) // _ROWS * -_ROWS, vectors.shape[1]))
        rows[: len(vectors)] = vectors
        images = (rows @ dense)[..., : len(vectors), :]
    return images.view(matrices.dtype)
