"""Step 5 of the paper in closed form: ``min ||P A D||^2`` subject to ``P V P' = I``.

P is the embedding matrix. The columns of A are the codes, D takes second differences in time, and V is the covariance
of the codes. S is the second moment ``A D D' A'`` of the second differences.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from psmt.embedding.moments import WindowMoments, covariance_of, second_moment_of_differences
from psmt.errors import NumericalWarning
from psmt.numerics.arrays import add_to_diagonal, array_namespace, eigh, lowest_eigenpairs, submatrix
from psmt.numerics.rank import (
    NOISE_ROUGHNESS,
    RANK_TOL,
    Whitening,
    fix_signs,
    moving,
    noise_variance,
    whiten,
)
from psmt.types import Array, Ints

_MORE, _LEAST_TOL, _LARGEST_TOL = 100.0, 1e-14, 1.0
"""While V cannot be factorised, `rank_tol` is multiplied by the first value, from the second value up to the third."""

ALL_NOISE = 1.0 - 1e-4  # a direction with a larger share of noise in its variance is not shown by the window


@dataclass(frozen=True)
class Embedding:
    """The embedding matrix P of the paper and its eigenvalues, as arrays on the device of the codes."""

    matrix: Array
    """The embedding matrix P (n_components, n_features), straightest direction first. It has at most rank(V) rows."""
    eigenvalues: Array
    """Generalised eigenvalues of S and V (n_components,), ascending. Each is ``||p A D||^2`` for one row p of P."""

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
    """Return the embedding of a window, solved in closed form. The parameters are those of `TemporalEmbedding`."""
    # BLAS threads are limited at any size, because beside other work they cost more time than they save.
    with moments.engine.small_work():
        sums, tol = moments.window.sums(half_stencils=half_stencils), rank_tol
        xp, atoms = array_namespace(sums.total), moments.window.used()
        if (centred and moments.cancels()) or not len(atoms):
            covariance, atoms = moments.covariance(centred=centred), slice(None)
        else:
            sums = sums.part(atoms)
            covariance = covariance_of(sums, centred=centred)
        rough = second_moment_of_differences(sums)
        while True:
            try:
                found = solve_closed_form(covariance, rough, n_components, n_codes=len(moments), rank_tol=tol)
                matrix = xp.zeros_like(moments.window.products[: len(found)])
                matrix[:, atoms] = found.matrix
                return Embedding(matrix, found.eigenvalues)
            except moments.engine.linalg_errors:
                if tol >= _LARGEST_TOL:
                    raise
                tol = max(_MORE * tol, _LEAST_TOL)
                warnings.warn(
                    f"V cannot be factorised with rank_tol={rank_tol:g}, as codes differ too much in size; "
                    f"a larger one is used, up to {_LARGEST_TOL:g}",
                    NumericalWarning,
                    stacklevel=2,
                )


def solve_closed_form(
    covariance: Array,
    second_differences: Array,
    n_components: int | None = None,
    *,
    n_codes: int,
    rank_tol: float = RANK_TOL,
) -> Embedding:
    """Return the embedding in the `n_components` straightest directions. None: all directions that are not only noise.

    With V the covariance and S the second moment of second differences, the embedding matrix is ``P = U' V^-1/2``. The
    columns of U are the eigenvectors of ``V^-1/2 S V^-1/2`` with the smallest eigenvalues. So the rows of P are
    generalised eigenvectors of S and V. Both matrices are regularised as in `psmt.numerics.rank`. For S this depends on
    the number of codes `n_codes`.
    """
    if not rank_tol:
        return solve_whitened(whiten(covariance, rank_tol=0.0), second_differences, n_components, n_codes=n_codes)
    xp = array_namespace(covariance)
    variances = xp.linalg.diagonal(covariance)
    (atoms,) = xp.nonzero(moving(variances))
    if not len(atoms):
        return Embedding(covariance[:0], variances[:0])
    noise = float(noise_variance(variances, rank_tol))

    def shown_eigenpairs(count: int) -> tuple[Array, Array, Ints]:
        """Return the `count` lowest eigenvalues, their eigenvectors, and the indices of those that are not noise."""
        own, rough = (submatrix(whole, atoms) for whole in (covariance, second_differences))
        rough = add_to_diagonal(rough, noise_curvature(n_codes) * noise)
        values, vectors = lowest_eigenpairs(rough, add_to_diagonal(own, noise), count)
        return values, vectors, xp.nonzero(noise * xp.sum(vectors**2, axis=0) < ALL_NOISE)[0]

    wanted = len(atoms) if n_components is None else min(n_components, len(atoms))
    values, vectors, shown = shown_eigenpairs(wanted)
    if len(shown) < wanted < len(atoms):  # some directions are only noise, so the next rougher ones replace them
        values, vectors, shown = shown_eigenpairs(len(atoms))
    shown = shown[:wanted]
    matrix = xp.zeros_like(covariance[: len(shown)])
    matrix[:, atoms] = vectors[:, shown].T
    return Embedding(fix_signs(matrix), xp.clip(values[shown], min=0.0))


def solve_whitened(
    whitening: Whitening, second_differences: Array, n_components: int | None, *, n_codes: int
) -> Embedding:
    """Return the embedding as `solve_closed_form` does, given the eigendecomposition of the covariance."""
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
    """Return the expected squared norm of the second differences of `n_codes` values of unit white noise."""
    return NOISE_ROUGHNESS * (n_codes - 2)
