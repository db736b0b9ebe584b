"""The minibatch alternative to the closed form, which the paper names for its locality.

Each step lowers the curvature of a few moments of the film, ``P <- P - rate * (mean of P d d') V^+``, and puts P back
onto the constraint ``P V P' = I``. The step is measured in the metric of the constraint (hence ``V^+``), in which a
second difference of white codes has a curvature of at most 4: a rate below 1/2 is stable for any film.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from psmt.numerics.rank import NOISE_ROUGHNESS, whiten
from psmt.types import Array


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
        directions = whiten(covariance, rank_tol=rank_tol).directions.T
        self.matrix = rng.standard_normal((min(n_components, len(directions)), len(directions))) @ directions
        self.renew(covariance)

    def renew(self, covariance: Array) -> None:
        """Go on under another constraint."""
        whitening = whiten(covariance, rank_tol=self.rank_tol)
        self.rank = whitening.rank
        # Coordinates in which the constraint is orthonormality.
        self._white, self._dual = whitening.matrix, whitening.dual
        self._noise = NOISE_ROUGHNESS * whitening.noise_share
        self._keep(_orthonormal((self.matrix @ self._dual)[: self.rank]))

    def _keep(self, rows: Array) -> None:
        self.matrix = rows @ self._white.T

    def epoch(self, second_differences: Array, batch_size: int) -> None:
        """One pass over the second differences (n, n_features), in random order."""
        rate = self.rate / (1.0 + self.epochs / 10.0)
        white = second_differences @ self._white
        rows = self.matrix @ self._dual
        order = self.rng.permutation(len(white))
        for start in range(0, len(white), batch_size):
            batch = white[order[start : start + batch_size]]
            rows = _orthonormal(rows - rate * ((rows @ batch.T) @ batch / len(batch) + rows * self._noise))
        self._keep(rows)
        self.epochs += 1

    def residual(self, second_differences: Array, n_codes: int) -> float:
        """How far P is from a stationary subspace: 0 at the closed form, at most about 1."""
        rows = self.matrix @ self._dual
        image = (self.matrix @ second_differences) @ self._white + (n_codes - 2) * rows * self._noise
        size = float(np.linalg.norm(image))
        return float(np.linalg.norm(image - (image @ rows.T) @ rows)) / size if size > 0 else 0.0

    def ordered(self, second_differences: Array) -> tuple[Array, Array]:
        """P turned inside its subspace so that the straightest direction comes first, and its eigenvalues."""
        eigenvalues, turn = scipy.linalg.eigh(self.matrix @ second_differences @ self.matrix.T)
        return turn.T @ self.matrix, np.maximum(eigenvalues, 0.0)


def _orthonormal(rows: Array) -> Array:
    """Rows (f, n) that span the same, orthonormal; those closest to the ones given, from the first on."""
    if not len(rows):
        return rows
    factor = scipy.linalg.cholesky(rows @ rows.T, lower=True)
    orthonormal: Array = scipy.linalg.solve_triangular(factor, rows, lower=True)
    return orthonormal
