"""The one place for rank and sign: which directions exist, how far V is to be trusted, and which way directions point.

Codes are sparse, so a window hardly shows some mixtures of atoms, and the inverse of V is made of chance there. Cutting
such mixtures off, or treating a window in another way as soon as it has one, lets predictions jump whenever a variance
crosses a threshold. Instead every window is regularised by one smooth function of itself, as if it were seen through
noise: V and S become::

    V + N,    S + 1.5 (H - 2) N    with    N = n^2 (V + n)^-1,

N being the covariance of a noise, and 1.5 (H - 2) N the second differences that such noise has. Where the variance v of
a direction is far above n, the noise is a fraction (n / v)^2 of it, and the embedding is the paper's. Where the window
shows nothing, the noise has the variance n: that direction is as rough as noise, not straight by chance. Nothing
switches in between. A slide changes N, being a resolvent of V, by as few outer products as it changes V, so that the
embedding can be followed from slide to slide.
"""

from __future__ import annotations

from dataclasses import dataclass

from psmt.numerics.linalg import eigh, inverse_positive
from psmt.numerics.namespace import array_namespace
from psmt.types import Array, Mask

RANK_TOL = 5e-9
"""n, as a fraction of the variance of the livelier atoms, within a factor of sixteen. Mixtures of atoms far below it
are not determined by the window. Predictions of a film are about the same from 1e-9 to 1e-6; below, rounding shows."""

NOISE_ROUGHNESS = 1.5
"""Variance of a second difference ``a_t - (a_(t-1) + a_(t+1)) / 2`` of white noise of variance one."""

NULL = 1e-14
"""Directions with less than this fraction of the largest variance do not exist: what is there is rounding."""

_LEAST = 1e-150
"""Nor do directions whose variance is smaller: its square is no number."""

_OCTAVES = 8.0
"""The noise stays put while the variances double so many times. It follows them only from there on: were it to change
at every slide, in all directions a little, no slide would be a low-rank change."""

_RAMP = 1.0 / 512.0
"""Fraction of these octaves in which the noise rises, smoothly, to what it is in the next ones. On the ramp every slide
is solved afresh, so it is short: predictions hardly depend on n."""


@dataclass(frozen=True)
class Whitening:
    """V in its own directions, regularised."""

    directions: Array
    """(n_features, n) orthonormal; without noise, those of variance zero are left out."""
    variances: Array
    """(n,) > 0, that of the noise included."""
    noise: Array
    """Variance (n,) of the noise in each direction."""
    rank: int
    """How many of the directions the window shows at all."""

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

    It is relative to the mean variance, each atom counted by its variance: so atoms that are not used do not matter. It
    goes in smooth steps: a slide does not change it but on the short ramp from one step to the next.
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
    """Which atoms (n_features,) vary at all, given their variances; the others get a zero column in P."""
    return (variances > NULL * array_namespace(variances).max(variances)) & (variances > _LEAST)


def whiten(covariance: Array, *, rank_tol: float = RANK_TOL) -> Whitening:
    """V in its own directions, regularised; with ``rank_tol=0`` as it is, inside its range.

    Leaving out what is absent matters then: in the null space of V nothing moves, so every direction there would pass
    for a perfectly straight one.
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
    """How many directions a window with this V (n_features, n_features) shows at all."""
    values, _ = eigh(covariance)
    xp = array_namespace(values)
    return int(xp.sum(xp.astype((values > NULL * values[-1]) & (values > _LEAST), xp.int64)))


def fix_signs(embedding: Array) -> Array:
    """The rows (f, n_features), each turned so that its entry of largest magnitude is positive.

    The prediction does not depend on it; plots over time do.
    """
    xp = array_namespace(embedding)
    if 0 in embedding.shape:
        return embedding
    largest = xp.argmax(xp.abs(embedding), axis=1)
    signs = xp.sign(xp.take_along_axis(embedding, largest[:, None], axis=1))
    return embedding * xp.where(signs == 0, 1.0, signs)
