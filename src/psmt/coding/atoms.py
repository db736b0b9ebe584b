"""`Atoms`: a dictionary with all that its codes need, made once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psmt.engines.numba.lasso import gram_matrix, solve_many, solve_one, unit_columns

Array = NDArray[np.float64]


class Atoms:
    """Atoms of any norm, ready for coding.

    Parameters
    ----------
    given : (n_atoms, n_features) array
        A copy is kept, read-only: what is made from it must not fall behind.
    """

    def __init__(self, given: Array) -> None:
        self.given = np.array(given, dtype=np.float64)
        self.given.flags.writeable = False
        self._unit, norms = unit_columns(given)
        # A zero atom keeps its zeros: it correlates with nothing, so no code uses it.
        self._norms = np.where(norms > 0, norms, 1.0)

    def __reduce__(self) -> tuple[type[Atoms], tuple[Array]]:
        # The Gram matrix is larger than the atoms, and quicker made than read.
        return Atoms, (self.given,)

    @cached_property
    def _gram(self) -> Array:
        return gram_matrix(self._unit)

    def code(self, samples: Array, alpha: float, *, tol: float) -> Array:
        """Codes (n_samples, n_atoms) of the samples (n_samples, n_features)."""
        prices = alpha / self._norms
        return solve_many(self._unit, samples, prices, tol=tol, norms=self._norms, gram=self._gram).coef

    def code_next(self, sample: Array, alpha: float, *, tol: float, last: Array) -> Array:
        """Code (n_atoms,) of a sample (n_features,), sought from the last code (n_atoms,) on."""
        prices = alpha / self._norms
        return solve_one(self._unit, sample, prices, tol=tol, start=last, gram=self._gram).coef / self._norms

    def decode(self, codes: Array) -> Array:
        """Samples (n_samples, n_features) that the codes (n_samples, n_atoms) stand for."""
        return codes @ self.given
