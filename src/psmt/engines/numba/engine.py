"""The engine of the CPU: NumPy, LAPACK and kernels that numba compiles."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from psmt.engines.contract import Bound, ShiftInvert, Work
from psmt.engines.numba import dictionary, lasso
from psmt.engines.numba.code_window import SparseWindow
from psmt.engines.numba.frame_kernels import NumbaFrameKernels
from psmt.engines.numba.shift_invert import LazyShiftInvert
from psmt.engines.window import CodeWindow
from psmt.numerics.cutting_planes import bounded
from psmt.types import Array, Mask
from psmt.utils.threads import one_blas_thread

_FEW = 8
"""Problems up to this number are solved one by one; beyond, one Gram matrix serves those that do not meet the bound."""


class NumbaEngine:
    """See `psmt.engines.contract.Engine`; its own arrays are NumPy's."""

    device = "cpu"
    captures = False
    linalg_errors: tuple[type[Exception], ...] = (np.linalg.LinAlgError, ValueError)
    frames = NumbaFrameKernels()

    def array(self, values: ArrayLike) -> Array:
        """Own array of float64 with these values."""
        return np.asarray(values, dtype=np.float64)

    def numpy(self, values: Array) -> NDArray[np.float64]:
        """A NumPy array with the values of an own one."""
        return values

    def dense(self, values: csr_array) -> Array:
        """Own array of float64 with the values of a sparse one."""
        return np.asarray(values.toarray())

    def sparse(self, values: Array) -> csr_array:
        """A sparse array (n, n_columns) with the values of a dense one."""
        return csr_array(values)

    def solver_array(self, values: Array) -> Array:
        """The values in the precision that lassos are solved in."""
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
        """Coefficients (n, n_columns) of targets (n, n_features), divided by `norms` (n_columns,) if given."""
        return lasso.solve_many(columns, targets, penalty, tol=tol, norms=norms, gram=gram).coef

    def solve_next(
        self, columns: Array, target: Array, penalty: Array, *, tol: float, start: Array, gram: Array
    ) -> Array:
        """Coefficients (n_columns,) of one target, sought from the support of an earlier solution on."""
        return lasso.solve_one(columns, target, penalty, tol=tol, start=start, gram=gram).coef

    def solve_bounded(
        self, columns: Array, targets: Array, penalty: Array, bound: Bound, *, tol: float, start: Array
    ) -> Array:
        """Coefficients (n, n_columns) of targets (n, n_features), worth no more than the bound says."""
        penalties = np.broadcast_to(penalty, len(targets)).tolist()
        if len(penalty) == 1 and len(targets) > _FEW:
            coef = self.solve_many(columns, targets, penalties[0], tol=tol)
            open_ = np.flatnonzero(coef @ bound.worth > bound.limit)
        else:
            coef = np.empty((len(targets), len(columns)))
            open_ = np.arange(len(targets))
        # One target with several penalties is solved along its path: supports grow as penalties fall.
        last = -1
        for i in sorted(open_, key=lambda i: -penalties[i]):
            own = Bound(bound.worth, bound.limit[i])
            on_path = len(penalty) > 1 and last >= 0 and np.array_equal(targets[i], targets[last])
            near = coef[last] if on_path else start[i]
            coef[i] = self._bounded(columns, targets[i], penalties[i], own, tol, near)
            last = int(i)
        return coef

    @staticmethod
    def _bounded(columns: Array, target: Array, penalty: float, bound: Bound, tol: float, start: Array) -> Array:
        support = start

        def solve(multiplier: float | Array) -> Array:
            nonlocal support  # each solution is close to the last: its support is tried first
            penalties = penalty + float(np.asarray(multiplier)) * bound.worth
            support = lasso.solve_one(columns, target, penalties, tol=tol, start=support).coef
            return support

        def cost(coef: Array) -> Array:
            error = 0.5 * float(np.sum((coef @ columns - target) ** 2))
            return np.asarray(error + penalty * float(coef.sum()))

        free = solve(0.0)
        if float(free @ bound.worth) <= bound.limit:
            return free
        return bounded(free, solve, cost, bound.worth, bound.limit, tol * cost(np.zeros_like(free)))

    def add_codes(self, codes: Array, samples: Array, kept: float, code_code: Array, code_sample: Array) -> None:
        """Scale the statistics by `kept` and add ``sum a a'`` and ``sum a x'`` of a batch to them, in place."""
        code_code *= kept
        code_sample *= kept
        dictionary.add_codes(codes, samples, code_code, code_sample)

    def sweep_atoms(self, atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
        """One sweep of exact block-coordinate descent, in place, over the unit-norm atoms that are used."""
        dictionary.sweep_atoms(atoms, code_code, code_sample, used)

    def code_window(self, codes: Array, begins: Mask | None = None) -> CodeWindow:
        """Codes (n, n_features) of a window with their sums, kept up as it slides; `begins` (n,) marks first ones."""
        return SparseWindow(codes, begins)

    def shift_invert(self, shifted: Array, shifts: Array) -> ShiftInvert:
        """Inverses of the matrices `shifted` (n_shifts, n_features, n_features)."""
        return LazyShiftInvert(shifted, shifts)

    def capture(self, work: Work) -> Work:
        """The work itself."""
        return work

    def small_work(self) -> AbstractContextManager[object]:
        """Context in which small matrices are worked on: one thread, as more would wait longer than they work."""
        return one_blas_thread()
