"""Shift-invert operators on the CPU: Woodbury changes wait until they go into the matrices in one product."""

from __future__ import annotations

import os
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from psmt.engines.contract import Change
from psmt.engines.numba.fan_out import in_background, in_threads, together
from psmt.numerics.few_rows import FEW, few_rows_times
from psmt.numerics.linalg import FEWEST, inverse_symmetric
from psmt.types import Array, Mask

_WAITING = 24
"""Vectors of changes that are kept aside before they are flushed into the matrices."""


_ROWS = 128
"""Rows of a matrix that changes are flushed into at a time: their product stays in the cache."""

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
        return self._images(which, vectors.T).T

    def times_each(self, vectors: Array) -> Array:
        """Each operator times its own columns (n_shifts, n_features, n), or all times one set (1, ..)."""
        own = np.broadcast_to(vectors, (len(self.shifts), *vectors.shape[1:]))
        return np.stack(together(*(partial(self.times, i, columns) for i, columns in enumerate(own))))

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
        return np.stack(together(*(partial(self._images, i, vectors) for i in range(len(self.shifts)))))

    def _images(self, which: int, vectors: Array) -> Array:
        """Images (n, n_features) of vectors under one operator."""
        left, right = self._left[which, : self._waiting], self._right[which, : self._waiting]
        images = _times_rows(vectors, self._matrices[which])
        images -= (vectors @ right.T) @ left
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
        left, right = self._left[:, : self._waiting], self._right[:, : self._waiting]
        if np.iscomplexobj(left):  # a real product of real and imaginary parts, as in `_times_rows`
            left, right = np.concatenate([left.real, left.imag], axis=1), np.concatenate([right, 1j * right], axis=1)
        columns, rows = left.mT, right.view(np.float64)
        n, n_blocks = self._matrices.shape[-1], -(-self._matrices.shape[-1] // _ROWS)

        def subtract(block: slice) -> None:
            which, k = divmod(block.start, n_blocks)
            part = slice(k * _ROWS, min((k + 1) * _ROWS, n))
            self._matrices[which, part].view(np.float64)[...] -= columns[which, part] @ rows[which]

        in_threads(subtract, len(self.shifts) * n_blocks, 1)
        self._waiting = 0


def _core(images: Array, change: Change, shifts: Array | complex) -> Array:
    """What Woodbury's formula has between the images (.., n, n_features) of the vectors of a change, (.., n, n)."""
    weights = change.curvature - shifts * change.covariance
    inner = np.eye(len(change.vectors)) + weights[..., None] * (images @ change.vectors.T).mT
    core = np.linalg.solve(inner, weights[..., None] * np.eye(len(change.vectors)))
    # The operators stay symmetric: what is not would grow from slide to slide.
    symmetric: Array = 0.5 * (core + core.mT)
    return symmetric


def _times_rows(vectors: Array, matrix: Array) -> Array:
    """Real vectors (n, n_features) times a matrix (n_features, n_features), real or complex."""
    # Real and imaginary parts stand side by side: one real product, in half the time of a complex one.
    dense = matrix.view(np.float64)
    if not np.iscomplexobj(matrix):
        # The resolvent: BLAS sums to a digit more, which its refinement needs.
        images = vectors @ dense if len(vectors) > FEWEST else np.stack([one @ dense for one in vectors])
    else:
        images = vectors @ dense if len(vectors) > FEW else few_rows_times(vectors, dense)
    return images.view(matrix.dtype)
