"""The one place for rank and sign: which directions exist, and which way they point."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.float64]

RANK_TOL = 1e-6
"""Directions with less than this fraction of the largest variance are not part of the window."""


def moving_atoms(covariance: Array, *, rank_tol: float = RANK_TOL) -> NDArray[np.intp]:
    """Indices of the atoms whose activity varies in the window; the others get a zero column in P."""
    variance = np.diag(covariance)
    return np.flatnonzero(variance > rank_tol * variance.max(initial=0.0))


def whitener(covariance: Array, *, rank_tol: float = RANK_TOL) -> Array:
    """W (n_features, rank) with ``W' V W = I`` over the range of V.

    Truncating V before the trailing eigenvectors are taken matters: in its null space nothing moves, so every
    direction there would pass for a perfectly straight one.
    """
    moving = moving_atoms(covariance, rank_tol=rank_tol)
    if moving.size == 0:
        return np.zeros((len(covariance), 0))
    values, vectors = scipy.linalg.eigh(covariance[np.ix_(moving, moving)], driver="evd")
    kept = values > rank_tol * values[-1]
    whitening = np.zeros((len(covariance), int(kept.sum())))
    whitening[moving] = vectors[:, kept] / np.sqrt(values[kept])
    return whitening


def fix_signs(embedding: Array) -> Array:
    """The rows (f, n_features), each turned so that its entry of largest magnitude is positive.

    The prediction does not depend on it; plots over time do.
    """
    if embedding.size == 0:
        return embedding
    largest = np.argmax(np.abs(embedding), axis=1)
    signs = np.sign(embedding[np.arange(len(embedding)), largest])
    return embedding * np.where(signs == 0, 1.0, signs)[:, None]
