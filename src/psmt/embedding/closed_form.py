"""The closed form of step 5: ``min ||P A D||^2`` subject to ``P V P' = I``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from psmt.embedding.policy import RANK_TOL, fix_signs, whitener

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Embedding:
    """P of the paper with what the window says of it."""

    matrix: Array
    """P (n_components, n_features), straightest direction first."""
    roughness: Array
    """Curvature ``||p A D||^2`` of each direction (n_components,), ascending."""
    rank: int
    """Rank of V, the largest number of components there could be."""


def straightest(
    covariance: Array,
    second_differences: Array,
    n_components: int | None = None,
    *,
    rank_tol: float = RANK_TOL,
) -> Embedding:
    """The `n_components` straightest directions (all for None), fewer where V has a smaller rank.

    ``P = U' V^-1/2`` with the trailing eigenvectors U of ``V^-1/2 S V^-1/2``, both taken inside the range of V.
    """
    whitening = whitener(covariance, rank_tol=rank_tol)
    rank = whitening.shape[1]
    count = rank if n_components is None else min(n_components, rank)
    if count == 0:
        return Embedding(np.zeros((0, len(covariance))), np.zeros(0), rank)
    inner = whitening.T @ second_differences @ whitening
    # Divide and conquer for all directions takes less time than LAPACK's routines for a part of them.
    roughness, vectors = scipy.linalg.eigh((inner + inner.T) / 2, driver="evd")
    matrix = (whitening @ vectors[:, :count]).T
    return Embedding(fix_signs(matrix), np.maximum(roughness[:count], 0.0), rank)
