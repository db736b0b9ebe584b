"""Rules for the rank, the regularisation and the signs of directions. V is the covariance of the window's codes.

Codes are sparse, so some combinations of atoms hardly occur in a window, and the inverse of V is arbitrary along them.
If combinations below some variance were cut off, predictions would jump whenever a variance crosses this threshold.
Instead V, and the second moment S of the second differences of the H codes, are regularised as if white noise of
variance n were added to the codes (Tikhonov regularisation)::

    V + n I,    S + 1.5 (H - 2) n I.

The noise is so small that it hardly changes directions that occur in the window. A direction that does not occur then
counts as rough, like noise, and not as straight. A slide of the window does not change n I, so it changes V and S by as
few outer products as without noise. Therefore the embedding can be tracked from slide to slide.
"""

from __future__ import annotations

from dataclasses import dataclass

from psmt.numerics.arrays import array_namespace, eigh
from psmt.types import Array, Mask

RANK_TOL = 5e-9
"""The noise variance n divided by the variance of the more active atoms, up to a factor of sixteen. The window does not
determine combinations of atoms whose variance is far below n. Prediction errors hardly depend on this value between
5e-10 and 1e-7. A larger value departs further from the paper. With a smaller value, rounding errors become visible."""

NOISE_ROUGHNESS = 1.5  # variance of a second difference a_t - (a_(t-1) + a_(t+1)) / 2 of white noise of variance one

NULL = 1e-14  # a direction with less than this fraction of the largest variance is only rounding
_LEAST = 1e-150  # a direction with a smaller variance is ignored, because its square would underflow

_OCTAVES = 8.0
"""The noise variance n stays constant until the variances have grown by this many octaves (factors of 2). If n changed
at every slide, no slide would be a change of low rank."""

_RAMP = 1.0 / 512.0
"""Fraction of these octaves over which n rises smoothly to its next value. The ramp is short, because the embedding
must be solved afresh at every slide on it."""


@dataclass(frozen=True)
class Whitening:
    """Eigendecomposition of the regularised covariance V + n I."""

    directions: Array  # (n_features, k), orthonormal; without regularisation, directions of variance zero are left out
    variances: Array  # (k,) > 0, including the noise
    noise: Array | float  # variance n of the noise
    rank: int  # number of directions with a variance above rounding, before the noise is added

    @property
    def matrix(self) -> Array:
        """Return the whitening matrix W (n_features, k), for which ``W' (V + n I) W = I``."""
        return self.directions / array_namespace(self.variances).sqrt(self.variances)

    @property
    def dual(self) -> Array:
        """Return the matrix D (n_features, k) for which ``W' D = I``, where W is the whitening matrix."""
        return self.directions * array_namespace(self.variances).sqrt(self.variances)

    @property
    def noise_share(self) -> Array:
        """Return, for each direction, the fraction (k,) of its variance that is noise."""
        return self.noise / self.variances


def noise_variance(variances: Array, rank_tol: float) -> Array:
    """Return the variance of the regularising noise, given the variances of the atoms (n_features,).

    It is about ``rank_tol * sum(v**2) / sum(v)`` for the variances v, so unused atoms do not count. It changes in
    steps, with short smooth ramps between them, so that most slides of the window do not change it.
    """
    xp = array_namespace(variances)
    total = xp.sum(variances)
    scale = xp.sum(variances**2) / xp.where(total > 0, total, 1.0)
    steps = xp.log2(xp.where(scale > 0, scale, 1.0)) / _OCTAVES + 0.5
    below = xp.floor(steps)
    rise = xp.clip((steps - below - 1.0) / _RAMP + 1.0, min=0.0)
    step = _OCTAVES * (below + rise**2 * (3.0 - 2.0 * rise))
    return xp.where(scale > 0, rank_tol * xp.pow(xp.full_like(step, 2.0), step), 0.0)


def moving(variances: Array) -> Mask:
    """Return a mask (n_features,) of the atoms that vary, given their variances. Other atoms get zero columns in P."""
    return (variances > NULL * array_namespace(variances).max(variances)) & (variances > _LEAST)


def whiten(covariance: Array, *, rank_tol: float = RANK_TOL) -> Whitening:
    """Return the eigendecomposition of the regularised covariance V.

    With ``rank_tol=0``, V is not regularised. Its null space is left out, because it would count as perfectly straight.
    """
    xp = array_namespace(covariance)
    variances = xp.linalg.diagonal(covariance)
    (atoms,) = xp.nonzero(moving(variances))
    if not len(atoms):
        return Whitening(covariance[:, :0], variances[:0], variances[:0], 0)
    values, vectors = eigh(covariance[atoms[:, None], atoms])
    exists = values > NULL * values[-1]
    noise: Array | float = 0.0
    if rank_tol:
        noise = noise_variance(variances, rank_tol)
        values = xp.where(values > 0, values, 0.0)
    else:
        values, vectors = values[exists], vectors[:, exists]
    directions = xp.zeros_like(covariance)[:, : len(values)]
    directions[atoms] = vectors
    return Whitening(directions, values + noise, noise, int(xp.sum(xp.astype(exists, xp.int64))))


def rank_of(covariance: Array) -> int:
    """Return the rank of the covariance V (n_features, n_features). Directions of rounding errors do not count."""
    values, _ = eigh(covariance)
    xp = array_namespace(values)
    return int(xp.sum(xp.astype((values > NULL * values[-1]) & (values > _LEAST), xp.int64)))


def fix_signs(embedding: Array) -> Array:
    """Return the rows (f, n_features) with signs such that the entry of largest magnitude in each row is positive.

    Predictions do not depend on signs, but plots over time do.
    """
    xp = array_namespace(embedding)
    if 0 in embedding.shape:
        return embedding
    flipped = -xp.min(embedding, axis=1) > xp.max(embedding, axis=1)
    return xp.where(flipped[:, None], -embedding, embedding)
