"""Rank and sign policy: which directions exist, how V is regularised, and which way directions point.

Codes are sparse, so a window hardly shows some mixtures of atoms, and there the inverse of V is arbitrary. If such
mixtures were cut off, predictions would jump whenever a variance crosses the threshold. Instead every window is
regularised by one smooth function of itself, as if noise were added to the codes. V and S become::

    V + N,    S + 1.5 (H - 2) N    with    N = n^2 (V + n)^-1,

where N is the covariance of the noise and 1.5 (H - 2) N the moment of its second differences. In a direction whose
variance v is far above n, the noise is a fraction (n / v)^2 of it, and the embedding is that of the paper. In a
direction that the window does not show, the noise has the variance n: the direction is as rough as noise, not straight
by chance. N is a resolvent of V, so a slide changes N by as few outer products as V, and the embedding can be tracked
from slide to slide.
"""

from __future__ import annotations

from dataclasses import dataclass

from psmt.numerics.arrays import array_namespace, eigh, inverse_positive
from psmt.types import Array, Mask

RANK_TOL = 5e-9
"""n, as a fraction of the variance of the livelier atoms, within a factor of sixteen. The window does not determine
mixtures of atoms far below it. Predictions of a film hardly change from 1e-9 to 1e-6; below, rounding shows."""

NOISE_ROUGHNESS = 1.5  # variance of a second difference a_t - (a_(t-1) + a_(t+1)) / 2 of white noise of variance one

NULL = 1e-14  # directions with less than this fraction of the largest variance do not exist: they are rounding
_LEAST = 1e-150  # nor do directions with a smaller variance, whose square would underflow

_OCTAVES = 8.0
"""The noise is constant while the variances double this many times. If it changed at every slide, in all directions a
little, no slide would be a low-rank change."""

_RAMP = 1.0 / 512.0
"""Fraction of these octaves in which the noise rises smoothly to its next value. On the ramp every slide is solved
afresh, so the ramp is short: predictions hardly depend on n."""


@dataclass(frozen=True)
class Whitening:
    """Regularised V in its own directions."""

    directions: Array  # (n_features, n), orthonormal; without noise, those of variance zero are left out
    variances: Array  # (n,) > 0, noise included
    noise: Array  # variance (n,) of the noise in each direction
    rank: int  # number of directions that the window shows

    @property
    def matrix(self) -> Array:
        """W (n_features, n) with ``W' (V + N) W = I``."""
        return self.directions / array_namespace(self.variances).sqrt(self.variances)

    @property
    def dual(self) -> Array:
        """(n_features, n): ``P @ dual`` are the coordinates of ``P = coordinates @ W'``."""
        return self.directions * array_namespace(self.variances).sqrt(self.variances)

    @property
    def noise_share(self) -> Array:
        """Share (n,) of the noise in the variance of each direction."""
        return self.noise / self.variances


def noise_variance(variances: Array, rank_tol: float) -> Array:
    """N (), the variance of the noise where a window shows nothing, given the variances of its atoms (n_features,).

    It is relative to the mean variance, weighted by variance, so that unused atoms do not count. It goes in smooth
    steps: a slide changes it only on the short ramp from one step to the next.
    """
    xp = array_namespace(variances)
    total = xp.sum(variances)
    scale = xp.sum(variances**2) / xp.where(total > 0, total, 1.0)
    steps = xp.log2(xp.where(scale > 0, scale, 1.0)) / _OCTAVES + 0.5
    below = xp.floor(steps)
    rise = xp.clip((steps - below - 1.0) / _RAMP + 1.0, min=0.0)
    step = _OCTAVES * (below + rise**2 * (3.0 - 2.0 * rise))
    return xp.where(scale > 0, rank_tol * xp.pow(xp.full_like(step, 2.0), step), 0.0)


def noise_covariance(covariance: Array, noise: float) -> Array:
    """N = n^2 (V + n)^-1 (n_features, n_features)."""
    xp = array_namespace(covariance)
    lifted = covariance + noise * xp.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    return noise**2 * inverse_positive(lifted)


def moving(variances: Array) -> Mask:
    """Which atoms (n_features,) vary, given their variances; the others get a zero column in P."""
    return (variances > NULL * array_namespace(variances).max(variances)) & (variances > _LEAST)


def whiten(covariance: Array, *, rank_tol: float = RANK_TOL) -> Whitening:
    """Regularised V in its own directions; with ``rank_tol=0``, V inside its range.

    The null space must be left out then: nothing moves there, so every direction would count as perfectly straight.
    """
    xp = array_namespace(covariance)
    variances = xp.linalg.diagonal(covariance)
    (atoms,) = xp.nonzero(moving(variances))
    if not len(atoms):
        return Whitening(covariance[:, :0], variances[:0], variances[:0], 0)
    values, vectors = eigh(covariance[atoms[:, None], atoms])
    exists = values > NULL * values[-1]
    if rank_tol:
        n = noise_variance(variances, rank_tol)
        values = xp.where(values > 0, values, 0.0)
        noise = n**2 / (values + n)
    else:
        values, vectors = values[exists], vectors[:, exists]
        noise = xp.zeros_like(values)
    directions = xp.zeros_like(covariance)[:, : len(values)]
    directions[atoms] = vectors
    return Whitening(directions, values + noise, noise, int(xp.sum(xp.astype(exists, xp.int64))))


def rank_of(covariance: Array) -> int:
    """Number of directions that a window with this V (n_features, n_features) shows."""
    values, _ = eigh(covariance)
    xp = array_namespace(values)
    return int(xp.sum(xp.astype((values > NULL * values[-1]) & (values > _LEAST), xp.int64)))


def fix_signs(embedding: Array) -> Array:
    """The rows (f, n_features), with signs such that the entry of largest magnitude of each is positive.

    Predictions do not depend on signs, but plots over time do.
    """
    xp = array_namespace(embedding)
    if 0 in embedding.shape:
        return embedding
    largest = xp.argmax(xp.abs(embedding), axis=1)
    signs = xp.sign(xp.take_along_axis(embedding, largest[:, None], axis=1))
    return embedding * xp.where(signs == 0, 1.0, signs)
