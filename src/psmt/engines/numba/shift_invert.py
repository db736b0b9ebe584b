"""Shift-invert operators on the CPU: Woodbury changes wait until they go into the matrices in one product."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from psmt.engines.contract import Change
from psmt.types import Array, Mask

_WAITING = 64
"""Vectors of changes that are kept aside before they are flushed into the matrices."""


class LazyShiftInvert:
    """See `psmt.engines.contract.ShiftInvert`. The operators are symmetric, so that rows serve as columns."""

    def __init__(self, shifted: Array, shifts: Array, total: Array, *, centred: bool) -> None:
        self.shifts = shifts
        self._centred = centred
        self._matrices = np.linalg.inv(shifted)
        # Changes that have not been put into the matrices yet: less left' right.
        self._left = np.empty((len(shifts), _WAITING, self._matrices.shape[-1]))
        self._right = np.empty_like(self._left)
        self._waiting = 0
        self._totals = self._matrices @ total

    def times(self, which: int, vectors: Array) -> Array:
        """One operator times the columns of `vectors` (n_features, n)."""
        left, right = self._left[which, : self._waiting], self._right[which, : self._waiting]
        images: Array = self._matrices[which] @ vectors - left.T @ (right @ vectors)
        return images

    def times_each(self, vectors: Array) -> Array:
        """Each operator times its own columns (n_shifts, n_features, n), or all times one set (1, ..)."""
        own = np.broadcast_to(vectors, (len(self.shifts), *vectors.shape[1:]))
        return np.stack([self.times(i, own[i]) for i in range(len(own))])

    def refactorise(self, which: Mask, shifts: Array, shifted: Array, total: Array, /) -> None:
        """Set some of the operators (n_shifts,) to the inverses of `shifted`, at new shifts; `total` sums the codes."""
        self.shifts = np.where(which, shifts, self.shifts)
        self._matrices[which] = np.linalg.inv(shifted)
        self._left[which] = self._right[which] = 0.0
        self._totals[which] = self._matrices[which] @ total

    def update(self, change: Change) -> Array:
        """Images (n_shifts, n, n_features) of the vectors of a change under the operators before it."""
        vectors = change.vectors
        n = len(vectors)
        if self._waiting + n > _WAITING:
            self._flush()
        sparse = vectors[:-1] if self._centred else vectors
        atoms = np.flatnonzero(sparse.any(axis=0))
        left, right = self._left[:, : self._waiting], self._right[:, : self._waiting]
        images = (vectors @ right.mT) @ left
        np.negative(images, out=images)
        images[:, : len(sparse)] += sparse[:, atoms] @ self._matrices[:, atoms]
        if self._centred:
            images[:, -1] = self._totals  # kept up as well, being the only dense one
        weights = change.curvature - self.shifts[:, None, None] * change.covariance
        inner = np.eye(n) + weights @ (vectors @ images.mT)
        changes = np.linalg.solve(inner, weights @ images)
        if self._centred:
            total = vectors[-1] + vectors[0] - vectors[1]
            self._totals += images[:, 0] - images[:, 1] - ((changes @ total)[:, None] @ images)[:, 0]
        self._left[:, self._waiting : self._waiting + n] = images
        self._right[:, self._waiting : self._waiting + n] = changes
        self._waiting += n
        return images

    def _flush(self) -> None:
        for matrix, left, right in zip(self._matrices, self._left, self._right, strict=True):
            waiting = slice(self._waiting)
            scipy.linalg.blas.dgemm(
                -1.0, right[waiting].T, left[waiting].T, beta=1.0, c=matrix.T, trans_b=True, overwrite_c=True
            )
        self._waiting = 0
