"""The closed form of step 5: ``min ||P A D||^2`` subject to ``P V P' = I``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from psmt.numerics.rank import NOISE_BEND, RANK_TOL, Whitening, fix_signs, whiten

Array = NDArray[np.float64]

ALL_NOISE = 1.0 - 1e-9
"""Share of the noise in the variance of a direction that the window does not show at all."""


@dataclass(frozen=True)
class Embedding:
    """P of the paper with what the window says of it."""

    matrix: Array
    """P (n_components, n_features), straightest direction first."""
    roughness: Array
    """Curvature ``||p A D||^2`` of each direction (n_components,), ascending."""
    rank: int
    """How many directions the window determines, the largest number of components there could be."""


def straightest(
    covariance: Array,
    second_differences: Array,
    n_components: int | None = None,
    *,
    n_codes: int,
    rank_tol: float = RANK_TOL,
) -> Embedding:
    """The `n_components` straightest directions (all for None), fewer where V has a smaller rank.

    ``P = U' V^-1/2`` with the trailing eigenvectors U of ``V^-1/2 S V^-1/2``, both taken inside the range of V. The
    window has `n_codes`: so much curvature has the noise, if there is any.
    """
    return straightest_in(whiten(covariance, rank_tol=rank_tol), second_differences, n_components, n_codes=n_codes)


def straightest_in(
    whitening: Whitening, second_differences: Array, n_components: int | None, *, n_codes: int
) -> Embedding:
    """`straightest`, where V is known in its own directions."""
    count = whitening.rank if n_components is None else min(n_components, whitening.rank)
    white = whitening.matrix
    if count == 0:
        return Embedding(np.zeros((0, len(white))), np.zeros(0), whitening.rank)
    inner = white.T @ second_differences @ white
    inner[np.diag_indices_from(inner)] += noise_curvature(n_codes) * whitening.noise
    # Divide and conquer for all directions takes less time than LAPACK's routines for a part of them.
    roughness, vectors = scipy.linalg.eigh((inner + inner.T) / 2, driver="evd")
    # Directions of the noise alone are not among them, however many are wanted.
    shown = np.flatnonzero(whitening.noise @ vectors**2 < ALL_NOISE)[:count]
    return Embedding(fix_signs((white @ vectors[:, shown]).T), np.maximum(roughness[shown], 0.0), whitening.rank)


def noise_curvature(n_codes: int) -> float:
    """``||A D||^2`` of `n_codes` of white noise of variance one."""
    return NOISE_BEND * (n_codes - 2)
