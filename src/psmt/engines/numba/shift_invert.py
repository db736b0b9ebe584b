"""Shift-invert operators on the CPU: Woodbury changes wait until they go into the matrices in one product."""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from psmt.engines.contract import Change
from psmt.engines.numba.fan_out import in_background
from psmt.numerics.few_rows import FEW, few_rows_times
from psmt.numerics.linalg import FEWEST, inverse_symmetric
from psmt.types import Array, Mask

_WAITING = 24
"""Vectors of changes that are kept aside before they are flushed into the matrices."""


_AHEAD = 4
"""Changes that an operator is prepared ahead by: they take longer than to invert a matrix. The number is fixed, and not
that after which the inverse happens to be there, so that results do not depend on other work of the machine."""


class _Renewal(NamedTuple):
    """An operator that is being made afresh in another thread."""

    which: int
    shift: complex
    inverse: Future[Array]
    changes: list[Change]
    """What has happened to the window meanwhile."""
    process: int
    """A fork has no other threads, and would wait for ever."""


class LazyShiftInvert:
    """See `psmt.engines.contract.ShiftInvert`. The operators are symmetric, so that rows serve as columns."""

    def __init__(self, shifted: Array, shifts: Array) -> None:
        self.shifts = shifts
        self._matrices = np.stack([inverse_symmetric(matrix) for matrix in shifted])
        # Changes that have not been put into the matrices yet: less left' right.
        self._left = np.empty((len(shifts), _WAITING, self._matrices.shape[-1]), dtype=self._matrices.dtype)
        self._right = np.empty_like(self._left)
        self._waiting = 0
        self._renewal: _Renewal | None = None

    def __getstate__(self) -> dict[str, Any]:
        self._take_over()  # what another thread does can be neither copied nor written down
        return self.__dict__

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

    def refactorise(self, which: Mask, shifts: Array, shifted: Array, /, *, later: bool = False) -> None:
        """Set some of the operators (n_shifts,) to the inverses of `shifted`, at new shifts.

        To invert a matrix takes longer than a whole slide. So the first of them is prepared in another thread, where
        that may be; one at a time.
        """
        wanted = np.flatnonzero(which).tolist()
        if later:
            if self._renewal is None:
                # NumPy's inverse lets other threads run; those of SciPy do not.
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
        """Set the operator that was prepared, where there is one, after the changes since."""
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


def _core(images: Array, change: Change, shifts: Array | complex) -> Array:
    """What Woodbury's formula has between the images (.., n, n_features) of the vectors of a change, (.., n, n)."""
    weights = change.curvature - shifts * change.covariance
    inner = np.eye(len(change.vectors)) + weights[..., None] * (images @ change.vectors.T).mT
    core = np.linalg.solve(inner, weights[..., None] * np.eye(len(change.vectors)))
    # The operators stay symmetric: what is not would grow from slide to slide.
    symmetric: Array = 0.5 * (core + core.mT)
    return symmetric


def _times_rows(vectors: Array, matrices: Array) -> Array:
    """Real vectors (n, n_features) times matrices (.., n_features, n_features), real or complex."""
    # Real and imaginary parts stand side by side: one real product, in half the time of a complex one.
    dense = matrices.view(np.float64)
    if not np.iscomplexobj(matrices):
        # The resolvent: BLAS sums to a digit more, which its refinement needs.
        images = vectors @ dense if len(vectors) > FEWEST else np.stack([one @ dense for one in vectors], axis=-2)
    elif len(vectors) > FEW:
        images = vectors @ dense
    elif dense.ndim == 2:
        images = few_rows_times(vectors, dense)
    else:
        images = np.stack([few_rows_times(vectors, one) for one in dense])
    return images.view(matrices.dtype)
