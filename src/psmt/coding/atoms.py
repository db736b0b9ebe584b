"""`Atoms`: a dictionary with all that its codes need, made once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from psmt.engines import engine_for
from psmt.engines.contract import Engine, ResidentArrays
from psmt.numerics.linalg import positive_or_one, unit_columns
from psmt.numerics.namespace import is_numpy_array
from psmt.types import Array
from psmt.utils.threads import one_blas_thread
from psmt.utils.validation import LARGEST, check_numbers

BATCH = 1 << 14
"""Samples whose codes are dense at one time. A whole number of chunks of every engine, so that a sample's neighbours in
its chunk, from whose codes its own may start, are the same however many batches there are."""


class Atoms:
    """Atoms of any norm, ready for coding.

    Parameters
    ----------
    given : (n_atoms, n_features) array
        A copy is kept, read-only: what is made from it must not fall behind.
    engine : Engine
        What samples and codes are arrays of.
    """

    def __init__(self, given: Array, engine: Engine) -> None:
        self.given = np.array(given, dtype=np.float64)
        self.given.flags.writeable = False
        self._engine = engine
        self._atoms = engine.array(self.given)
        unit, norms = unit_columns(self._atoms)
        self._columns = engine.solver_array(unit)
        # A zero atom keeps its zeros: it correlates with nothing, so no code uses it.
        self._norms = positive_or_one(norms)
        self._code_next = engine.capture(_code_next)

    def __reduce__(self) -> tuple[object, ...]:
        # The Gram matrix is larger than the atoms, and quicker made than read.
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
        """Codes (n, n_atoms) of the samples (n_samples, n_features) of the host, `BATCH` after `BATCH`.

        Raises `ValueError` where values are no finite numbers. A GPU codes one batch while the next one is read
        and moved to it.
        """
        codes = None
        for first in range(0, len(samples), BATCH):
            batch = np.asarray(samples[first : first + BATCH])
            moved = self._engine.array(batch)
            # A GPU looks through it in no time, and is asked once the batch before has left it.
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
        """Code (n_atoms,) of a sample (n_features,), sought from the last code (n_atoms,) on."""
        prepared = ResidentArrays((self._columns, self._gram, self._norms))
        return self._code_next(sample, last, prepared, engine=self._engine, alpha=alpha, tol=float(tol))[0]

    def decode(self, codes: Array) -> Array:
        """Samples (n_samples, n_features) that the codes (n_samples, n_atoms) stand for."""
        return codes @ self._atoms


def _code_next(
    sample: Array, last: Array, prepared: ResidentArrays, *, engine: Engine, alpha: float, tol: float
) -> tuple[Array]:
    columns, gram, norms = prepared
    return (engine.solve_next(columns, sample, alpha / norms, tol=tol, start=last, gram=gram) / norms,)


def _atoms_on(device: str, given: Array) -> Atoms:
    return Atoms(given, engine_for(device))
