"""The one place for rank and sign: which directions exist, how far V is to be trusted, and which way directions point.

Codes are sparse, so a window hardly shows some mixtures of atoms. Where V has a mixture with a variance between nothing
at all and `rank_tol`, its inverse there is made of chance. Cutting such mixtures off lets predictions jump, by some
percent, whenever one of the many crosses the threshold. Instead the window is regularised (as by Tikhonov): it is taken
to be seen through white noise with the variance of the threshold itself. V is raised by it, and S by the second
differences that such noise has. A mixture that the window hardly shows is then as rough as noise, not straight by
chance, and everything changes as smoothly as the window does. Where V has no such mixture, nothing is added, and the
embedding is the paper's to the letter.
"""

from __future__ import annotations

from dataclasses import dataclass

from psmt.numerics.linalg import eigh
from psmt.numerics.namespace import array_namespace
from psmt.types import Array, Mask

RANK_TOL = 1e-6
"""Directions with less than this fraction of the largest variance are not determined by the window."""

NOISE_ROUGHNESS = 1.5
"""Variance of a second difference ``a_t - (a_(t-1) + a_(t+1)) / 2`` of white noise of variance one."""

NULL = 1e-14
"""Directions with less than this fraction of the largest variance do not exist: what is there is rounding."""


@dataclass(frozen=True)
class Whitening:
    """V in its own directions, regularised where it needs to be."""

    directions: Array
    """(n_features, n) orthonormal; without noise, those of variance zero are left out."""
    variances: Array
    """(n,) > 0, that of the noise included."""
    noise_variance: float
    """Variance of the noise, zero where V is well determined."""
    rank: int
    """How many directions the window determines; the largest number of components there could be."""

    @property
    def matrix(self) -> Array:
        """W (n_features, n) with ``W' (V + noise_variance) W = I``."""
        return self.directions / array_namespace(self.variances).sqrt(self.variances)

    @property
    def dual(self) -> Array:
        """(n_features, n): ``P @ dual`` are the coordinates of ``P = coordinates @ W'``."""
        return self.directions * array_namespace(self.variances).sqrt(self.variances)

    @property
    def noise_share(self) -> Array:
        """Share (n,) of the noise in the variance of each direction."""
        return self.noise_variance / self.variances


def rank_threshold(variances: Array, rank_tol: float) -> Array:
    """The variance (), below which a direction is not determined, given those of the atoms (n_features,).

    It is relative to the largest of these, rounded down to a power of two: so it stays put while the window slides.
    """
    xp = array_namespace(variances)
    largest = xp.max(variances)
    scale = xp.pow(xp.full_like(largest, 2.0), xp.floor(xp.log2(xp.where(largest > 0, largest, 1.0))))
    return xp.where(largest > 0, rank_tol * scale, 0.0)


def moving(variances: Array) -> Mask:
    """Which atoms (n_features,) vary at all, given their variances; the others get a zero column in P."""
    return variances > NULL * array_namespace(variances).max(variances)


def whiten(covariance: Array, *, rank_tol: float = RANK_TOL) -> Whitening:
    """V in its own directions, regularised where some of them are neither determined nor absent.

    Leaving out what is absent matters: in the null space of V nothing moves, so every direction there would pass for a
    perfectly straight one.
    """
    xp = array_namespace(covariance)
    variances = xp.linalg.diagonal(covariance)
    threshold = float(rank_threshold(variances, rank_tol))
    (atoms,) = xp.nonzero(moving(variances))
    if not len(atoms):
        return Whitening(covariance[:, :0], variances[:0], 0.0, 0)
    values, vectors = eigh(covariance[atoms[:, None], atoms])
    exists = values > NULL * values[-1]
    determined = exists & (values > threshold)
    if bool(xp.all(determined == exists)):
        values, vectors, noise_variance = values[determined], vectors[:, determined], 0.0
    else:
        noise_variance = threshold  # all directions have this much, so that none needs to be left out
    directions = xp.zeros_like(covariance)[:, : len(values)]
    directions[atoms] = vectors
    values = xp.where(values > 0, values, 0.0) + noise_variance
    return Whitening(directions, values, noise_variance, int(xp.sum(xp.astype(determined, xp.int64))))


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
