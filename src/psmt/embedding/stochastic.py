"""The minibatch alternative to the closed form, which the paper names for its locality.

Each step lowers the curvature of a few moments of the film, ``P <- P - rate * (mean of P d d') V^+``, and puts P back
onto the constraint ``P V P' = I``. The step is measured in the metric of the constraint (hence ``V^+``), in which a
second difference of white codes has a curvature of at most 4: a rate below 1/2 is stable for any film.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from psmt.embedding.policy import whitener

Array = NDArray[np.float64]


class StochasticSolver:
    """P that descends batch by batch.

    Parameters
    ----------
    n_components : int
    covariance : (n_features, n_features) array
        V of the codes so far; replace it by `renew` as codes come in.
    rate : float
        First step size; epoch k uses ``rate / (1 + k / 10)``.
    """

    def __init__(
        self,
        n_components: int,
        covariance: Array,
        *,
        rate: float,
        rank_tol: float,
        rng: np.random.RandomState,
    ) -> None:
        self.rate = rate
        self.rank_tol = rank_tol
        self.rng = rng
        self.epochs = 0
        whitening = whitener(covariance, rank_tol=rank_tol)
        self.rank = whitening.shape[1]
        self.matrix = rng.standard_normal((min(n_components, self.rank), self.rank)) @ whitening.T
        self.renew(covariance)

    def renew(self, covariance: Array) -> None:
        """Go on under another constraint."""
        self._covariance = covariance
        self._whitening = whitener(covariance, rank_tol=self.rank_tol)
        self.rank = self._whitening.shape[1]
        self._retract()

    def epoch(self, bends: Array, batch_size: int) -> None:
        """One pass over the second differences (n, n_features), in random order."""
        rate = self.rate / (1.0 + self.epochs / 10.0)
        # Inside the range of V, in coordinates where the constraint is orthonormality.
        white = bends @ self._whitening
        rows = self.matrix @ self._covariance @ self._whitening
        order = self.rng.permutation(len(white))
        for start in range(0, len(white), batch_size):
            batch = white[order[start : start + batch_size]]
            rows = rows - rate * (rows @ batch.T) @ batch / len(batch)
            rows = scipy.linalg.solve_triangular(_factor(rows @ rows.T), rows, lower=True)
        self.matrix = rows @ self._whitening.T
        self.epochs += 1

    def residual(self, second_differences: Array) -> float:
        """How far P is from a stationary subspace: 0 at the closed form, at most about 1."""
        inner = self._whitening.T @ second_differences @ self._whitening
        rows = self.matrix @ self._covariance @ self._whitening
        image = rows @ inner
        size = float(np.linalg.norm(image))
        return float(np.linalg.norm(image - (image @ rows.T) @ rows)) / size if size > 0 else 0.0

    def ordered(self, second_differences: Array) -> tuple[Array, Array]:
        """P turned inside its subspace so that the straightest direction comes first, and the curvatures."""
        roughness, turn = scipy.linalg.eigh(self.matrix @ second_differences @ self.matrix.T)
        return turn.T @ self.matrix, np.maximum(roughness, 0.0)

    def _retract(self) -> None:
        rows = self.matrix @ self._covariance @ self._whitening
        if len(rows):
            rows = scipy.linalg.solve_triangular(_factor(rows @ rows.T), rows, lower=True)
        self.matrix = rows @ self._whitening.T


def _factor(gram: Array) -> Array:
    return scipy.linalg.cholesky(gram, lower=True)
