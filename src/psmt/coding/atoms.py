"""`Atoms`, a dictionary that is ready for coding, and `SparseRows`, which collects sparse codes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from psmt.engines import engine_for
from psmt.engines.contract import Engine, ResidentArrays
from psmt.numerics.linalg import positive_or_one, unit_columns
from psmt.numerics.namespace import is_numpy_array
from psmt.types import AnyArray, Array
from psmt.utils.threads import one_blas_thread
from psmt.utils.validation import LARGEST, check_numbers

BATCH = 1 << 14
"""Samples whose codes are dense at one time. It is a multiple of every engine's chunk, so that batches do not change
which earlier sample a code starts from."""


class Atoms:
    """Atoms of any norm, ready for coding.

    Parameters
    ----------
    given : (n_atoms, n_features) array
        A read-only copy is kept, because other arrays are derived from it.
    engine : Engine
        Samples and codes are arrays of this engine.
    """

    def __init__(self, given: Array, engine: Engine) -> None:
        self.given = np.array(given, dtype=np.float64)
        self.given.flags.writeable = False
        self._engine = engine
        self._atoms = engine.array(self.given)
        unit, norms = unit_columns(self._atoms)
        self._columns = engine.solver_array(unit)
        # A zero atom stays zero: it correlates with nothing, so no code uses it.
        self._norms = positive_or_one(norms)
        self._code_next = engine.capture(_code_next)

    def __reduce__(self) -> tuple[object, ...]:
        # The Gram matrix is larger than the atoms, and faster to compute than to read.
        return _atoms_on, (self._engine.device, self.given)

    @cached_property
    def _gram(self) -> Array:
        with one_blas_thread():
            return self._columns @ self._columns.T

    def code(self, samples: Array, alpha: float, *, tol: float) -> Array:
        """Codes (n_samples, n_atoms) of the samples (n_samples, n_features)."""
        penalty = alpha / self._norms
        solve = self._engine.solve_many
        return solve(self._columns, samples, penalty, tol=float(tol), norms=self._norms, gram=self._gram)

    def code_batches(self, samples: Array, alpha: float, *, tol: float) -> Iterator[Array]:
        """Codes (n, n_atoms) of samples (n_samples, n_features) on the host, `BATCH` samples at a time.

        Raises `ValueError` if values are not finite. A GPU codes one batch while the next one is read and moved to it.
        """
        codes = None
        for first in range(0, len(samples), BATCH):
            batch = np.asarray(samples[first : first + BATCH])
            moved = self._engine.array(batch)
            # A GPU finds the maximum quickly; it is read after the batch before has left the GPU.
            largest = None if is_numpy_array(moved) else abs(moved).max()
            if codes is not None:
                yield codes
            if largest is None or not float(largest) <= LARGEST:
                with one_blas_thread():
                    check_numbers(batch, name="X")
            codes = self.code(moved, alpha, tol=tol)
        if codes is not None:
            yield codes

    def code_next(self, sample: Array, alpha: float, *, tol: float, last: Array) -> Array:
        """Code (n_atoms,) of a sample (n_features,), starting from the last code (n_atoms,)."""
        prepared = ResidentArrays((self._columns, self._gram, self._norms))
        return self._code_next(sample, last, prepared, engine=self._engine, alpha=alpha, tol=float(tol))[0]

    def decode(self, codes: Array) -> Array:
        """Samples (n_samples, n_features) reconstructed from codes (n_samples, n_atoms)."""
        return codes @ self._atoms


def _code_next(
    sample: Array, last: Array, prepared: ResidentArrays, *, engine: Engine, alpha: float, tol: float
) -> tuple[Array]:
    columns, gram, norms = prepared
    return (engine.solve_next(columns, sample, alpha / norms, tol=tol, start=last, gram=gram) / norms,)


def _atoms_on(device: str, given: Array) -> Atoms:
    return Atoms(given, engine_for(device))


class SparseRows:
    """A CSR array (n_rows, n_columns) that is filled batch by batch, with the result of `scipy.sparse.vstack`.

    Memory is allocated for as many values as the rows so far let expect. Each batch is stored as it comes, while the
    next one is being coded, and no second copy is needed at the end.
    """

    _SPARE = 1.1  # allocated values relative to the expected ones, because rows differ

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._shape = n_rows, n_columns
        self._offsets = np.zeros(n_rows + 1, np.int64)
        self._values, self._columns = np.empty(0), np.empty(0, np.int32)
        self._n_rows = self._n_values = 0

    def add(self, rows: csr_array) -> None:
        """Append the next rows (n, n_columns)."""
        n_rows, n_values = self._n_rows + rows.shape[0], self._n_values + rows.nnz
        if n_values > len(self._values):
            expected = int(self._SPARE * n_values * self._shape[0] / n_rows) if n_rows < self._shape[0] else n_values
            self._values, self._columns = (self._resized(old, expected) for old in (self._values, self._columns))
        self._values[self._n_values : n_values] = rows.data
        self._columns[self._n_values : n_values] = rows.indices
        self._offsets[self._n_rows + 1 : n_rows + 1] = self._n_values + rows.indptr[1:].astype(np.int64)
        self._n_rows, self._n_values = n_rows, n_values

    def _resized(self, old: AnyArray, size: int) -> AnyArray:
        new = np.empty(size, old.dtype)
        new[: self._n_values] = old[: self._n_values]
        return new

    def array(self) -> csr_array:
        """All rows (n_rows, n_columns)."""
        n = self._n_values
        # Offsets have the dtype of the column indices, if that is large enough.
        offsets = self._offsets if n > np.iinfo(np.int32).max else self._offsets.astype(np.int32)
        return csr_array((self._values[:n], self._columns[:n], offsets), shape=self._shape)
