"""The one place for rank and sign: which directions exist, how far V is to be trusted, and which way directions point.

Codes are sparse, so a window hardly shows some mixtures of atoms. Where V has a mixture with a variance between nothing
at all and `rank_tol`, its inverse there is made of chance. Cutting such mixtures off lets predictions jump, by some
percent, whenever one of the many crosses the line. Instead the window is taken to be seen through white noise with the
variance of the line itself: V is lifted by it, and S by the curvature that such noise has. A mixture that the window
hardly shows is then as rough as noise, not straight by chance, and everything changes as smoothly as the window does.
Where V has no such mixture, nothing is lifted, and the embedding is the paper's to the letter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.float64]

RANK_TOL = 1e-6
"""Directions with less than this fraction of the largest variance are not determined by the window."""

NOISE_BEND = 1.5
"""Variance of a second difference ``a_t - (a_(t-1) + a_(t+1)) / 2`` of white noise of variance one."""

NULL = 1e-14
"""Directions with less than this fraction of the largest variance do not exist: what is there is rounding."""


@dataclass(frozen=True)
class Whitening:
    """V in its own directions, lifted by the noise where it needs to be."""

    directions: Array
    """(n_features, n) orthonormal; without noise, those of variance zero are left out."""
    variances: Array
    """(n,) > 0, lifted."""
    floor: float
    """Variance of the noise, zero where V is well determined."""
    rank: int
    """How many directions the window determines; the largest number of components there could be."""

    @property
    def matrix(self) -> Array:
        """W (n_features, n) with ``W' (V + floor) W = I``."""
        return self.directions / np.sqrt(self.variances)

    @property
    def dual(self) -> Array:
        """(n_features, n): ``P @ dual`` are the coordinates of ``P = coordinates @ W'``."""
        return self.directions * np.sqrt(self.variances)

    @property
    def noise(self) -> Array:
        """Share (n,) of the noise in the variance of each direction."""
        return self.floor / self.variances


def noise_line(variances: Array, rank_tol: float) -> float:
    """The variance below which a direction is not determined, given those of the atoms (n_features,).

    It is relative to the largest of these, rounded down to a power of two: so it stays put while the window slides.
    """
    largest = variances.max(initial=0.0)
    return rank_tol * float(2.0 ** np.floor(np.log2(largest))) if largest > 0 else 0.0


def moving(variances: Array) -> NDArray[np.bool_]:
    """Which atoms vary at all, given their variances (n_features,); the others get a zero column in P."""
    return variances > NULL * variances.max(initial=0.0)


def whiten(covariance: Array, *, rank_tol: float = RANK_TOL) -> Whitening:
    """V in its own directions, lifted where some of them are neither determined nor absent.

    Leaving out what is absent matters: in the null space of V nothing moves, so every direction there would pass for a
    perfectly straight one.
    """
    variance = np.diag(covariance)
    line = noise_line(variance, rank_tol)
    atoms = np.flatnonzero(moving(variance))
    if atoms.size == 0:
        return Whitening(np.zeros((len(covariance), 0)), np.zeros(0), 0.0, 0)
    values, vectors = scipy.linalg.eigh(covariance[np.ix_(atoms, atoms)], driver="evd")
    determined = values > line
    if np.array_equal(determined, values > NULL * values[-1]):
        values, vectors, floor = values[determined], vectors[:, determined], 0.0
    else:
        floor = line  # all directions have this much, so that none needs to be left out
    directions = np.zeros((len(covariance), len(values)))
    directions[atoms] = vectors
    return Whitening(directions, np.maximum(values, 0.0) + floor, floor, int(determined.sum()))


def fix_signs(embedding: Array) -> Array:
    """The rows (f, n_features), each turned so that its entry of largest magnitude is positive.

    The prediction does not depend on it; plots over time do.
    """
    if embedding.size == 0:
        return embedding
    largest = np.argmax(np.abs(embedding), axis=1)
    signs = np.sign(embedding[np.arange(len(embedding)), largest])
    return embedding * np.where(signs == 0, 1.0, signs)[:, None]
