"""The engine of the CPU: NumPy, LAPACK and kernels compiled by numba."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from psmt.engines.contract import Bound, InverseOperator, Work
from psmt.engines.numba import lasso
from psmt.engines.numba.code_window import SparseWindow
from psmt.engines.numba.frame_kernels import NumbaFrameKernels
from psmt.engines.numba.inverse import LazyInverse
from psmt.engines.numba.lasso import subtract_rows
from psmt.engines.window import CodeWindow
from psmt.types import Array, Ints, Mask
from psmt.utils.jit import njit
from psmt.utils.threads import one_blas_thread

_FEW = 8  # more problems are first solved together without the bound, then one by one where they violate it
_BLOCK = 128  # atoms whose products with all others are computed at once


class NumbaEngine:
    """The engine of the CPU (see `psmt.engines.contract.Engine`). Its arrays are NumPy arrays."""

    device = "cpu"
    captures = False
    linalg_errors: tuple[type[Exception], ...] = (np.linalg.LinAlgError, ValueError)
    frames = NumbaFrameKernels()

    def array(self, values: ArrayLike) -> Array:
        return np.asarray(values, dtype=np.float64)

    def numpy(self, values: Array) -> NDArray[np.float64]:
        return values

    def dense(self, values: csr_array) -> Array:
        return np.asarray(values.toarray())

    def sparse(self, values: Array) -> csr_array:
        return csr_array(values)

    def solver_array(self, values: Array) -> Array:
        return values

    def solve_many(
        self,
        columns: Array,
        targets: Array,
        penalty: Array | float,
        *,
        tol: float,
        norms: Array | None = None,
        gram: Array | None = None,
    ) -> Array:
        return lasso.solve_many(columns, targets, penalty, tol=tol, norms=norms, gram=gram).coef

    def solve_next(
        self, columns: Array, target: Array, penalty: Array, *, tol: float, start: Array, gram: Array
    ) -> Array:
        return lasso.solve_one(columns, target, penalty, tol=tol, start=start, gram=gram).coef

    def solve_bounded(
        self, columns: Array, targets: Array, penalty: Array, bound: Bound, *, tol: float, start: Array
    ) -> Array:
        penalties = np.broadcast_to(penalty, len(targets)).tolist()
        if len(penalty) == 1 and len(targets) > _FEW:
            coef = self.solve_many(columns, targets, penalties[0], tol=tol)
            open_ = np.flatnonzero(coef @ bound.worth > bound.limit)
        else:
            coef = np.empty((len(targets), len(columns)))
            open_ = np.arange(len(targets))
        # One target with several penalties is solved along its path, because supports grow as penalties fall.
        last = -1
        for i in sorted(open_, key=lambda i: -penalties[i]):
            on_path = len(penalty) > 1 and last >= 0 and np.array_equal(targets[i], targets[last])
            near = coef[last] if on_path else start[i]
            own = targets[i], penalties[i], bound.worth, float(bound.limit[i])
            coef[i] = lasso.solve_bounded(columns, *own, tol=tol, start=near)
            last = int(i)
        return coef

    def add_codes(self, codes: Array, samples: Array, kept: float, code_code: Array, code_sample: Array) -> None:
        code_code *= kept
        code_sample *= kept
        _add_codes(codes, samples, code_code, code_sample)

    def sweep_atoms(self, atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
        order = np.flatnonzero(used)
        for first in range(0, len(order), _BLOCK):
            block = order[first : first + _BLOCK]
            shared = code_code[block]
            targets = code_sample[block] - shared @ atoms
            _improve_block(targets, shared[:, block], block, atoms)

    def code_window(self, codes: Array, begins: Mask | None = None) -> CodeWindow:
        return SparseWindow(codes, begins)

    def inverse(self, matrix: Array) -> InverseOperator:
        return LazyInverse(matrix)

    def capture(self, work: Work) -> Work:
        return work

    def small_work(self) -> AbstractContextManager[object]:
        return one_blas_thread()


@njit(cache=True, nogil=True)
def _add_codes(codes: Array, samples: Array, code_code: Array, code_sample: Array) -> None:
    """Add ``a a'`` and ``a x'`` to the sums, for all codes a (n_atoms,) and samples x (n_features,), skipping zeros."""
    active = np.empty(codes.shape[1], dtype=np.int64)
    for t in range(codes.shape[0]):
        n = 0
        for j in range(codes.shape[1]):
            if codes[t, j] != 0.0:
                active[n] = j
                n += 1
        for i in range(n):
            j = active[i]
            own = codes[t, j]
            for k in active[:n]:
                code_code[j, k] += own * codes[t, k]
            for k in range(samples.shape[1]):
                code_sample[j, k] += own * samples[t, k]


@njit(cache=True, nogil=True)
def _improve_block(targets: Array, shared: Array, block: Ints, atoms: Array) -> None:
    """Replace each atom of a block in turn by the unit-norm atom that minimises the error, given all other atoms.

    `targets` (n, n_features) are the negative gradients of the error, computed before any atom of the block changes.
    They are corrected for the changed atoms by `shared` (n, n), the part of ``sum a a'`` that belongs to the block.
    """
    moved, index = np.empty_like(targets), np.arange(len(block))
    for i in range(len(block)):
        target, atom, own = targets[i], atoms[block[i]], shared[i, i]
        for k in range(atom.size):
            target[k] += own * atom[k]
        subtract_rows(moved, index, shared[i], i, target)
        norm = np.sqrt(np.sum(target * target))
        for k in range(atom.size):
            best = target[k] / norm if own > 0.0 and norm > 0.0 else atom[k]
            moved[i, k] = best - atom[k]
            atom[k] = best
