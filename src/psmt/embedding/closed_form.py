"""The closed form of step 5: ``min ||P A D||^2`` subject to ``P V P' = I``."""

from __future__ import annotations

from dataclasses import dataclass

from psmt.moments import WindowMoments
from psmt.numerics.linalg import add_to_diagonal, eigh
from psmt.numerics.namespace import array_namespace
from psmt.numerics.rank import NOISE_ROUGHNESS, RANK_TOL, Whitening, fix_signs, whiten
from psmt.types import Array

ALL_NOISE = 1.0 - 1e-9
"""Share of the noise in the variance of a direction that the window does not show at all."""


@dataclass(frozen=True)
class Embedding:
    """P of the paper with what the window says of it, in arrays of the engine."""

    matrix: Array
    """P (n_components, n_features), straightest direction first."""
    eigenvalues: Array
    """``||p A D||^2`` of each direction (n_components,), ascending: the generalised eigenvalues of S and V."""
    rank: int
    """How many directions the window determines, the largest number of components there could be."""


def embed_window(
    moments: WindowMoments,
    n_components: int | None,
    *,
    centred: bool = True,
    half_stencils: bool = False,
    rank_tol: float = RANK_TOL,
) -> Embedding:
    """The closed form of a window's embedding; parameters as in `TemporalEmbedding`."""
    return solve_closed_form(
        moments.covariance(centred=centred),
        moments.second_differences(half_stencils=half_stencils),
        n_components,
        n_codes=len(moments),
        rank_tol=rank_tol,
    )


def solve_closed_form(
    covariance: Array,
    second_differences: Array,
    n_components: int | None = None,
    *,
    n_codes: int,
    rank_tol: float = RANK_TOL,
) -> Embedding:
    """The `n_components` straightest directions (all for None), fewer where V has a smaller rank.

    ``P = U' V^-1/2`` with the trailing eigenvectors U of ``V^-1/2 S V^-1/2``, both taken inside the range of V. The
    window has `n_codes`: so large are the second differences of the noise, if there is any.
    """
    return solve_whitened(whiten(covariance, rank_tol=rank_tol), second_differences, n_components, n_codes=n_codes)


def solve_whitened(
    whitening: Whitening, second_differences: Array, n_components: int | None, *, n_codes: int
) -> Embedding:
    """`solve_closed_form`, where V is known in its own directions."""
    count = whitening.rank if n_components is None else min(n_components, whitening.rank)
    white = whitening.matrix
    xp = array_namespace(white)
    if count == 0:
        return Embedding(white.T[:0], whitening.variances[:0], whitening.rank)
    inner = add_to_diagonal(white.T @ second_differences @ white, noise_curvature(n_codes) * whitening.noise_share)
    values, vectors = eigh((inner + inner.T) / 2)
    # Directions of the noise alone are not among them, however many are wanted.
    shown = xp.nonzero(whitening.noise_share @ vectors**2 < ALL_NOISE)[0][:count]
    eigenvalues = values[shown]
    matrix = fix_signs((white @ vectors[:, shown]).T)
    return Embedding(matrix, xp.where(eigenvalues > 0, eigenvalues, 0.0), whitening.rank)


def noise_curvature(n_codes: int) -> float:
    """``||A D||^2`` of `n_codes` of white noise of variance one."""
    return NOISE_ROUGHNESS * (n_codes - 2)
