"""The regularised pair (S, V) of a window's matrices, its change by a slide, and Rayleigh-Ritz steps on it.

V is the covariance of the codes, and S the second moment of their second differences. A pair of matrices that defines a
generalised eigenproblem ``S x = r V x`` is called a pencil. Engines record these functions as CUDA graphs
(`Engine.capture`). Therefore all shapes are fixed, and no function waits for a result from the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self, cast

from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.moments import covariance_of, second_moment_of_differences, variances_of
from psmt.engines.contract import InverseOperator, LowRankChange, Resident
from psmt.engines.window import Sums
from psmt.numerics.arrays import (
    add_multiple,
    add_to_diagonal,
    array_namespace,
    eigh,
    inverse_cholesky_unchecked,
    is_numpy_array,
    number_groups,
    orthonormal_columns,
    positive_or_one,
    solve_unchecked,
    sum_by_group,
)
from psmt.numerics.rank import fix_signs, moving, noise_variance
from psmt.types import AnyArray, Array, Mask

_DOUBTFUL = 1e-3
"""If a direction has less than this fraction of its variance outside the span of the others, the stored products with
V and S have lost digits."""

_REFINED = 1e-10  # relative change by a refinement from which a further one is not needed
_ROUNDING = 1e-11  # a combination of directions with less than this fraction of their variance is only rounding
_PROPORTIONAL = 1e-7  # largest relative difference between activities that count as proportional
_RIDGE = 1e-10  # this fraction of a proposed direction's variance counts as rounding


@dataclass(frozen=True)
class Pencil(Resident):
    """The matrices S and V of a window, regularised as if white noise were added to the codes.

    With the noise variance n, V becomes ``V + n I``, and S becomes ``S + curvature n I``. See `psmt.numerics.rank`.
    """

    sums: Sums
    constant: Mask  # atoms (n_features,) that do not vary
    noise_now: Array  # noise variance n () of the present window
    centred: bool
    noise: float  # noise variance n for which the operators were computed

    @property
    def curvature(self) -> float:
        """Return the second moment of the second differences of white noise with unit variance."""
        return noise_curvature(self.sums.n)

    def times(self, vectors: Array) -> tuple[Array, Array]:
        """Return ``V X`` and ``S X``, with V and S regularised, where X are the `vectors` (n_features, k)."""
        covariance, rough = self.sums.times(vectors, centred=self.centred)
        covariance = add_multiple(covariance, self.noise, vectors)
        return covariance, add_multiple(rough, self.curvature * self.noise, vectors)

    def residuals(self, vectors: Array, scaled: Array) -> Array:
        """Return ``S x - V y`` (n_features, k) for columns x of `vectors`, y of `scaled`, and regularised S and V."""
        xp, k = array_namespace(vectors), vectors.shape[1]
        covariance, rough = self.sums.times(xp.concat([vectors, scaled], axis=1), centred=self.centred)
        return add_multiple(rough[:, :k] - covariance[:, k:], self.noise, self.curvature * vectors - scaled)

    def shifted(self, shift: complex) -> Array:
        """Return ``S - shift V`` (n_features, n_features), where S and V are regularised."""
        covariance = covariance_of(self.sums, centred=self.centred)
        rough = add_to_diagonal(1.0 * second_moment_of_differences(self.sums), self.curvature * self.noise)
        return cast(Array, rough - shift * add_to_diagonal(covariance, self.noise))

    def parts(self) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[int, bool, float]]:
        """Return the arrays that `Engine.capture` must copy, the arrays that stay in place (sums), and constants."""
        sums = self.sums
        copied = self.constant, self.noise_now, sums.ends
        return copied, (sums.products, sums.curvature, sums.total), (sums.n, self.centred, self.noise)

    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """Return a copy of this pencil that holds the given arrays."""
        constant, noise_now, ends = copied
        products, curvature, total = resident
        return replace(
            self, sums=Sums(products, curvature, total, ends, self.sums.n), constant=constant, noise_now=noise_now
        )


def window_noise(squares: Array, total: Array, *, n: int, centred: bool, rank_tol: float) -> tuple[Mask, Array]:
    """Return a mask (n_features,) of constant atoms, and the variance of the noise, given sums over n codes."""
    variances = variances_of(squares, total, n, centred=centred)
    return ~moving(variances), noise_variance(variances, rank_tol)


def propose(
    change: LowRankChange,
    pencil: Pencil,
    directions: Array,
    eigenvalues: Array,
    *inverses: InverseOperator,
    shifts: tuple[complex, ...],
) -> tuple[Array, Array, Array]:
    """Return D, ``V D`` and ``S D``. The columns of D (n_features, m) are proposed directions of eigenvectors.

    The `inverses` are the operators ``(S - shift V)^-1`` from before the slide. Each is applied to the vectors
    of the low-rank change, and components along the tracked `directions` are removed. Then the operators are updated in
    place.
    """
    xp, vectors = array_namespace(directions), change.vectors.T
    along, unit = directions.T @ vectors, xp.eye(len(change.vectors), dtype=vectors.dtype, device=vectors.device)
    proposed, known = [], []
    for inverse, shift in zip(inverses, shifts, strict=True):
        images = inverse.times(vectors)
        # The part along the known directions follows from their eigenvalues, without a product.
        along_shifted = along / (eigenvalues - shift)[:, None]
        proposed += [xp.real(images), xp.imag(images)]
        known += [xp.real(along_shifted), xp.imag(along_shifted)]
        weights = change.curvature - shift * change.covariance
        products = xp.astype(vectors.T, images.dtype) @ images
        core = solve_unchecked(unit + weights[:, None] * products, weights[:, None] * unit)
        # Symmetrise: an antisymmetric part would grow from slide to slide.
        inverse.subtract(images, images @ (0.5 * (core + core.mT)))
    found = _unit(xp.concat(proposed, axis=1) - directions @ xp.concat(known, axis=1))
    found = orthonormal_columns(found)  # two operators propose similar directions, whose difference matters
    return found, *pencil.times(found)


def _unit(columns: Array) -> Array:
    return columns / positive_or_one(array_namespace(columns).linalg.vector_norm(columns, axis=0))


class Known(NamedTuple):
    """Directions X of the last step, and how ``X' V X`` (then I) and ``X' S X`` (then diagonal) have changed since."""

    directions: Array  # (n_features, n)
    eigenvalues: Array  # (n,): diagonal of X' S X after the last step
    covariance_beyond: Array  # (n, n): X' V X - I
    curvature_beyond: Array  # (n, n): X' S X - diag(eigenvalues)


def changed(directions: Array, change: LowRankChange) -> tuple[Array, Array]:
    """Return the changes (n, n) of ``X' V X`` and of ``X' S X`` by a slide, where X are the `directions`."""
    along = directions.T @ change.vectors.T
    return (along * change.covariance) @ along.T, (along * change.curvature) @ along.T


def products_on(pencil: Pencil, directions: Array, eigenvalues: Array) -> tuple[Array, Array]:
    """Return ``X' V X - I`` and ``X' S X - diag(eigenvalues)``, each (n, n), where X are the `directions`."""
    images, rough = pencil.times(directions)
    covariance, curvature = add_to_diagonal(directions.T @ images, -1.0), directions.T @ rough
    return covariance, add_to_diagonal(curvature, -eigenvalues)


def reduce(
    pencil: Pencil, known: Known, *proposals: Array, dependent: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Project the pencil onto n known and m proposed directions, and return the smaller eigenproblem.

    `proposals` are three matrices (n_features, m): the proposed directions D, ``V D`` and ``S D``. Four arrays are
    returned: the symmetric matrix (n + m, n + m) of the eigenproblem, its whitening matrix (n + m, n + m), the known
    directions, and the proposed directions. The first array is NaN in three cases: V is not positive definite, D has a
    NaN, or the variance of the noise has changed.

    Linearly dependent directions are not removed, because the size of the problem is fixed. Instead, a direction in D
    that depends on the rest of D gets the largest eigenvalue, so it is never chosen. If `dependent` is True, the same
    is done for combinations of known and proposed directions. This is slower and not possible in a CUDA graph.
    """
    directions, eigenvalues, covariance, curvature = known
    xp, n = array_namespace(directions), directions.shape[1]
    # An atom that does not vary has a zero column in P. Its only variance is the noise, which it shares with no other.
    lost: Array | float = 0.0
    if not is_numpy_array(directions) or directions[pencil.constant].any():
        gone = xp.where(pencil.constant[:, None], directions, 0.0)
        lost = pencil.noise * (gone.T @ gone)
        directions = directions - gone
    proposed, images, rough = (xp.where(pencil.constant[:, None], 0.0, part) for part in proposals)
    for _ in range(2):  # the second time no two directions are almost parallel
        products = proposed.T @ images
        scale = 1.0 / xp.sqrt(positive_or_one(xp.linalg.diagonal(products)))
        factor, _ = inverse_cholesky_unchecked(add_to_diagonal(scale[:, None] * products * scale, _RIDGE))
        turn = scale[:, None] * factor.mT
        proposed, images, rough = proposed @ turn, images @ turn, rough @ turn
    new = xp.sum(proposed * images, axis=0) > 0.5
    proposed, images, rough = (xp.where(new, part, 0.0) for part in (proposed, images, rough))

    def bordered(diagonal: Array | float, beyond: Array, images: Array) -> Array:
        cross = directions.T @ images
        size = n + images.shape[1]
        matrix = xp.empty((size, size), dtype=cross.dtype, device=cross.device)
        matrix[:n, :n], matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = beyond, cross, cross.T, proposed.T @ images
        add_to_diagonal(matrix[:n, :n], diagonal)
        return matrix

    curvature = bordered(eigenvalues, curvature - pencil.curvature * lost, rough)
    apart = xp.concat([xp.zeros_like(eigenvalues), 1.0 - xp.astype(new, proposed.dtype)])
    covariance = add_to_diagonal(bordered(1.0, covariance - lost, images), apart)
    valid = (pencil.noise_now == pencil.noise) & xp.all(xp.isfinite(proposals[0]))
    if dependent:
        scale = 1.0 / xp.sqrt(positive_or_one(xp.linalg.diagonal(covariance)))
        shares, mixtures = eigh(scale[:, None] * covariance * scale)
        kept = shares > _ROUNDING
        white = xp.where(kept, 1.0 / xp.sqrt(positive_or_one(shares)), 0.0)[:, None] * mixtures.T * scale
        apart = 1.0 - xp.astype(kept, shares.dtype)
    else:
        white, positive = inverse_cholesky_unchecked(covariance)
        valid = valid & positive
    inner = white @ curvature @ white.mT
    inner = add_to_diagonal(inner, apart * xp.linalg.trace(inner))
    return xp.where(valid, (inner + inner.mT) / 2, xp.nan), white, directions, proposed


def turn(
    values: Array,
    vectors: Array,
    white: Array,
    directions: Array,
    proposed: Array,
    pencil: Pencil,
    probe: Array,
    *,
    wanted: int,
    block: int,
) -> tuple[Array, Array, Array, Array]:
    """Return eigenvalues (n,), directions (n_features, n), embedding matrix (wanted, n_features), and error (a scalar).

    The arrays `white`, `directions` and `proposed` come from `reduce`. The matrix that it returned with them has the
    eigenvalues `values` and the eigenvectors `vectors`. Each operator proposed `block` directions. The error estimates
    how much one more operator would turn the wanted directions, given the contributions of the last two operators. It
    is a sine, or infinite if digits were lost. `probe` (n_features, k) are random vectors for `_aligned`.
    """
    xp, n = array_namespace(values), directions.shape[1]
    part = vectors[:, :wanted] ** 2
    last, before = xp.sum(part[-block:]), xp.sum(part[-2 * block : -block])
    own = 1.0 / xp.max(xp.linalg.diagonal(white)) ** 2
    error = xp.where(own > _DOUBTFUL, last / xp.sqrt(positive_or_one(before)), xp.inf)
    turned = white.mT @ vectors[:, :n]
    directions = directions @ turned[:n] + proposed @ turned[n:]
    return 1.0 * values[:n], directions, _aligned(pencil, fix_signs(directions[:, :wanted].T), probe), error


def _aligned(pencil: Pencil, matrix: Array, probe: Array) -> Array:
    """Return the embedding matrix (f, n_features) with exactly parallel columns for atoms of proportional activity.

    In closed form these columns are parallel, and step 7 recovers such atoms together. But tracking leaves small
    differences between the columns, and step 7 would choose one of the atoms by these differences. Atoms count as
    proportional if V maps random vectors `probe` (n_features, k) to proportional values.
    """
    xp, sums = array_namespace(matrix), pencil.sums
    squares = xp.linalg.diagonal(sums.products)
    deviations = xp.sqrt(variances_of(squares, sums.total, sums.n, centred=pencil.centred))
    images = sums.covariance_times(probe, centred=pencil.centred) / positive_or_one(deviations)[:, None]
    order = xp.argsort(images[:, 0], stable=True)
    steps = xp.max(xp.abs(images[order[1:]] - images[order[:-1]]), axis=1)
    differs = steps > _PROPORTIONAL * xp.max(xp.abs(images))
    if is_numpy_array(matrix) and (differs | (deviations[order[1:]] == 0)).all():
        return matrix
    group, n = number_groups(order, differs), len(order)
    weights = sum_by_group(deviations[None] ** 2, group, n)
    common = sum_by_group(matrix * deviations, group, n) / positive_or_one(weights)
    return xp.where(deviations > 0, common[:, group] * deviations, matrix)


def mixed_errors(
    pencil: Pencil, directions: Array, eigenvalues: Array, mixing: Array, inverse: InverseOperator
) -> tuple[Array]:
    """Return estimated errors (n_features, k) of k linear combinations of the wanted directions.

    `mixing` (wanted, k) has the coefficients. An error e leaves a residual of about ``(S - shift V) e``. So the
    operator `inverse`, which is ``(S - shift V)^-1``, turns the residuals of the combinations into their errors.
    """
    wanted = directions[:, : len(mixing)]
    residuals = pencil.residuals(wanted @ mixing, wanted @ (eigenvalues[: len(mixing), None] * mixing))
    return (array_namespace(mixing).real(inverse.times(residuals)),)


def estimate_error(
    pencil: Pencil, directions: Array, eigenvalues: Array, mixing: Array, inverse: InverseOperator
) -> tuple[Array]:
    """Return an estimate of the sine of the largest angle between the wanted directions and the exact subspace.

    `mixing` (wanted, k) are the coefficients of random combinations of the directions. The errors of these combinations
    give an estimate of the total error of all directions. The total error bounds the largest angle. The shift of the
    operator `inverse` is close to the largest wanted eigenvalue.
    """
    xp, wanted = array_namespace(directions), len(mixing)
    (errors,) = mixed_errors(pencil, directions, eigenvalues, mixing, inverse)
    mixed, n = directions[:, :wanted] @ mixing, errors.shape[1]
    images, _ = pencil.times(xp.concat([errors, mixed], axis=1))
    outside = xp.sum(errors * images[:, :n]) - xp.sum((directions.T @ images[:, :n]) ** 2)
    # The variance of the combinations is known. A difference from it is accumulated rounding.
    size = xp.sum(mixing**2)
    drift = xp.abs(xp.sum(mixed * images[:, n:]) / size - 1.0)
    return (xp.sqrt(wanted * xp.where(outside > 0, outside, 0.0) / size) + drift,)
