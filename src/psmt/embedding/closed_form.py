"""The closed form of step 5: ``min ||P A D||^2`` subject to ``P V P' = I``."""

from __future__ import annotations

from dataclasses import dataclass

from psmt.embedding.moments import WindowMoments
from psmt.numerics.arrays import add_to_diagonal, array_namespace, eigh, lowest_eigenpairs
from psmt.numerics.rank import (
    NOISE_ROUGHNESS,
    RANK_TOL,
    Whitening,
    fix_signs,
    moving,
    noise_covariance,
    noise_variance,
    whiten,
)
from psmt.types import Array, Ints

ALL_NOISE = 1.0 - 1e-4  # a direction with a larger share of noise in its variance is not shown by the window


@dataclass(frozen=True)
class Embedding:
    """P of the paper and its eigenvalues, in engine arrays."""

    matrix: Array
    """P (n_components, n_features), straightest direction first; fewer rows if the window shows fewer directions."""
    eigenvalues: Array
    """``||p A D||^2`` of each direction (n_components,), ascending: the generalised eigenvalues of S and V."""

    def __len__(self) -> int:
        return len(self.matrix)


def embed_window(
    moments: WindowMoments,
    n_components: int | None,
    *,
    centred: bool = True,
    half_stencils: bool = False,
    rank_tol: float = RANK_TOL,
) -> Embedding:
    """The closed form of a window's embedding; parameters as in `TemporalEmbedding`."""
    # At any size: when other work runs too, BLAS threads that wait for each other cost more time than they save.
    with moments.engine.small_work():
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
    """The `n_components` straightest directions (all for None), or fewer if the window shows fewer.

    ``P = U' V^-1/2`` with the trailing eigenvectors U of ``V^-1/2 S V^-1/2``: the generalised eigenvectors of S and V,
    regularised as in `psmt.numerics.rank`. The second differences of the noise depend on the number of codes
    `n_codes`.
    """
    if not rank_tol:
        return solve_whitened(whiten(covariance, rank_tol=0.0), second_differences, n_components, n_codes=n_codes)
    xp = array_namespace(covariance)
    variances = xp.linalg.diagonal(covariance)
    (atoms,) = xp.nonzero(moving(variances))
    if not len(atoms):
        return Embedding(covariance[:0], variances[:0])
    part = (atoms[:, None], atoms)
    noise = noise_covariance(covariance[part], float(noise_variance(variances, rank_tol)))
    lifted = covariance[part] + noise
    rough = second_differences[part] + noise_curvature(n_codes) * noise
    wanted = len(atoms) if n_components is None else min(n_components, len(atoms))
    values, vectors, shown = _shown_eigenpairs(rough, lifted, noise, wanted)
    if len(shown) < wanted < len(atoms):  # some are only noise: rougher directions replace them
        values, vectors, shown = _shown_eigenpairs(rough, lifted, noise, len(atoms))
    shown = shown[:wanted]
    matrix = xp.zeros_like(covariance)[: len(shown)]
    matrix[:, atoms] = vectors[:, shown].T
    return Embedding(fix_signs(matrix), xp.clip(values[shown], min=0.0))


def _shown_eigenpairs(rough: Array, lifted: Array, noise: Array, count: int) -> tuple[Array, Array, Ints]:
    """The `count` lowest eigenvalues, their vectors, and which of them are more than noise."""
    values, vectors = lowest_eigenpairs(rough, lifted, count)
    xp = array_namespace(values)
    return values, vectors, xp.nonzero(xp.sum(vectors * (noise @ vectors), axis=0) < ALL_NOISE)[0]


def solve_whitened(
    whitening: Whitening, second_differences: Array, n_components: int | None, *, n_codes: int
) -> Embedding:
    """`solve_closed_form`, given V in its own directions."""
    white = whitening.matrix
    xp = array_namespace(white)
    count = whitening.rank if n_components is None else min(n_components, whitening.rank)
    if count == 0:
        return Embedding(white.T[:0], whitening.variances[:0])
    inner = add_to_diagonal(white.T @ second_differences @ white, noise_curvature(n_codes) * whitening.noise_share)
    values, vectors = eigh((inner + inner.T) / 2)
    shown = xp.nonzero(whitening.noise_share @ vectors**2 < ALL_NOISE)[0][:count]
    return Embedding(fix_signs((white @ vectors[:, shown]).T), xp.clip(values[shown], min=0.0))


def noise_curvature(n_codes: int) -> float:
    """``||A D||^2`` of `n_codes` codes of white noise of variance one."""
    return NOISE_ROUGHNESS * (n_codes - 2)
