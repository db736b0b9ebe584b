"""The regularised pair (S, V) of a window's matrices, its change by a slide, and Rayleigh-Ritz steps on it.

V is the covariance of the codes, and S the second moment of their second differences. A pair of matrices that defines a
generalised eigenproblem ``S x = r V x`` is called a pencil. Shapes in this module are fixed and no function reads a
result on the host, so that engines can capture the functions.
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
    orthonormal_columns,
    positive_or_one,
    solve_unchecked,
)
from psmt.numerics.rank import fix_signs, moving, noise_variance
from psmt.types import AnyArray, Array, Mask

_DOUBTFUL = 1e-3
"""If a direction has less than this fraction of its variance outside the span of the others, the stored products with
V and S have lost digits."""

_REFINED = 1e-10  # relative change by a refinement from which a further one is not needed
_ROUNDING = 1e-11  # a mixture of directions with less than this fraction of their variance is only rounding
_RIDGE = 1e-10  # this fraction of a proposed direction's variance counts as rounding


@dataclass(frozen=True)
class Pencil(Resident):
    """The matrices S and V of a window, regularised as if white noise were added to the codes.

    With the noise variance n, V becomes ``V + n I``, and S becomes ``S + curvature n I``. `psmt.numerics.rank` explains
    why.
    """

    sums: Sums
    constant: Mask  # atoms (n_features,) that do not vary
    noise_now: Array  # noise variance n () of the present window
    centred: bool
    noise: float  # noise variance n for which the operators were computed

    @property
    def curvature(self) -> float:
        """Return the second moment of the second differences of the noise, divided by the variance of the noise."""
        return noise_curvature(self.sums.n)

    def times(self, vectors: Array) -> tuple[Array, Array]:
        """Return the regularised V and S times the columns of `vectors` (n_features, k)."""
        covariance, rough = self.sums.times(vectors, centred=self.centred)
        covariance = add_multiple(covariance, self.noise, vectors)
        return covariance, add_multiple(rough, self.curvature * self.noise, vectors)

    def residuals(self, vectors: Array, scaled: Array) -> Array:
        """Return ``S x - V y``, regularised, for columns x of `vectors` and y of `scaled`, both (n_features, k)."""
        xp, k = array_namespace(vectors), vectors.shape[1]
        covariance, rough = self.sums.times(xp.concat([vectors, scaled], axis=1), centred=self.centred)
        return add_multiple(rough[:, :k] - covariance[:, k:], self.noise, self.curvature * vectors - scaled)

    def shifted(self, shift: complex) -> Array:
        """Return ``S - shift V`` (n_features, n_features), where S and V are regularised."""
        covariance = covariance_of(self.sums, centred=self.centred)
        rough = add_to_diagonal(1.0 * second_moment_of_differences(self.sums), self.curvature * self.noise)
        return cast(Array, rough - shift * add_to_diagonal(covariance, self.noise))

    def parts(self) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[int, bool, float]]:
        """Return the arrays and constants as an argument of captured work. The sums are resident (not copied)."""
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
    """Return a mask (n_features,) of the constant atoms, and the variance () of the noise."""
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
    """Return directions (n_features, n) in which eigenvectors may have changed, and V and S times them.

    They are the images of the change's vectors under the operators before the change, without their parts along the
    known directions. Also apply the change to the operators, which are inverses of `Pencil.shifted`.
    """
    xp, vectors = array_namespace(directions), change.vectors.T
    along, unit = directions.T @ vectors, xp.eye(len(change.vectors), dtype=vectors.dtype, device=vectors.device)
    proposed = []
    for inverse, shift in zip(inverses, shifts, strict=True):
        images = inverse.times(vectors)
        # The part along the known directions follows from their eigenvalues, without a product.
        along_shifted = along / (eigenvalues - shift)[:, None]
        for part in (xp.real, xp.imag):
            proposed.append(part(images) - directions @ part(along_shifted))
        weights = change.curvature - shift * change.covariance
        products = xp.astype(vectors.T, images.dtype) @ images
        core = solve_unchecked(unit + weights[:, None] * products, weights[:, None] * unit)
        # Symmetrise: an antisymmetric part would grow from slide to slide.
        inverse.subtract(images, images @ (0.5 * (core + core.mT)))
    found = _unit(xp.concat(proposed, axis=1))
    found = orthonormal_columns(found)  # two operators propose similar directions, whose difference matters
    return found, *pencil.times(found)


def _unit(columns: Array) -> Array:
    return columns / positive_or_one(array_namespace(columns).linalg.vector_norm(columns, axis=0))


class Known(NamedTuple):
    """Directions X of the last step, which had ``X' V X = I`` and a diagonal ``X' S X``, and changes since then."""

    directions: Array  # (n_features, n)
    eigenvalues: Array  # (n,): diagonal of X' S X after the last step
    covariance_beyond: Array  # (n, n): X' V X - I
    curvature_beyond: Array  # (n, n): X' S X - diag(eigenvalues)


def changed(directions: Array, change: LowRankChange) -> tuple[Array, Array]:
    """Return the change of ``X' V X`` and ``X' S X`` by a slide, each (n, n), for the directions X."""
    along = directions.T @ change.vectors.T
    return (along * change.covariance) @ along.T, (along * change.curvature) @ along.T


def products_on(pencil: Pencil, directions: Array, eigenvalues: Array) -> tuple[Array, Array]:
    """Return ``X' V X - I`` and ``X' S X - diag(eigenvalues)``, each (n, n), for the directions X."""
    images, rough = pencil.times(directions)
    covariance, curvature = add_to_diagonal(directions.T @ images, -1.0), directions.T @ rough
    return covariance, add_to_diagonal(curvature, -eigenvalues)


def reduce(
    pencil: Pencil, known: Known, *proposals: Array, dependent: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Reduce the pencil on the known and proposed directions to a symmetric eigenproblem.

    The proposals are the directions (n_features, m), and V and S times them. Return the matrix of the eigenproblem, the
    whitening matrix, and the known and proposed directions. The matrix is NaN if V is not positive definite, if a
    proposal is NaN, or if the variance of the noise has changed. The size of the problem is fixed: a proposed direction
    that adds nothing new gets a larger eigenvalue than all others. With `dependent`, this also holds for directions
    that are so only together with known ones; this takes longer, and cannot be captured.
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
    values: Array, vectors: Array, white: Array, directions: Array, proposed: Array, *, wanted: int, block: int
) -> tuple[Array, Array, Array, Array]:
    """Return the eigenvalues, the directions (n_features, n), the embedding matrix (wanted, n_features), and an error.

    The error () estimates how much one more operator would change, given what the last two have changed. Each proposed
    a block of directions. It is the sine of an angle, or infinite if digits were lost.
    """
    xp, n = array_namespace(values), directions.shape[1]
    part = vectors[:, :wanted] ** 2
    last, before = xp.sum(part[-block:]), xp.sum(part[-2 * block : -block])
    own = 1.0 / xp.max(xp.linalg.diagonal(white)) ** 2
    error = xp.where(own > _DOUBTFUL, last / xp.sqrt(positive_or_one(before)), xp.inf)
    turned = white.mT @ vectors[:, :n]
    directions = directions @ turned[:n] + proposed @ turned[n:]
    return 1.0 * values[:n], directions, fix_signs(directions[:, :wanted].T), error


def mixed_errors(
    pencil: Pencil, directions: Array, eigenvalues: Array, mixing: Array, inverse: InverseOperator
) -> tuple[Array]:
    """Return estimated errors (n_features, k) of mixtures of the wanted directions, with weights (wanted, k).

    The operator maps a residual to the error of the directions that causes this residual.
    """
    wanted = directions[:, : len(mixing)]
    residuals = pencil.residuals(wanted @ mixing, wanted @ (eigenvalues[: len(mixing), None] * mixing))
    return (array_namespace(mixing).real(inverse.times(residuals)),)


def estimate_error(
    pencil: Pencil, directions: Array, eigenvalues: Array, mixing: Array, inverse: InverseOperator
) -> tuple[Array]:
    """Return the estimated sine () of the largest angle to the exact subspace.

    The operator's shift is close to the largest wanted eigenvalue. The errors of random mixtures measure the sum of the
    errors of all directions, which bounds the largest angle.
    """
    xp, wanted = array_namespace(directions), len(mixing)
    (errors,) = mixed_errors(pencil, directions, eigenvalues, mixing, inverse)
    mixed, n = directions[:, :wanted] @ mixing, errors.shape[1]
    images, _ = pencil.times(xp.concat([errors, mixed], axis=1))
    outside = xp.sum(errors * images[:, :n]) - xp.sum((directions.T @ images[:, :n]) ** 2)
    # The variance of the mixtures is known. A difference from it is accumulated rounding.
    size = xp.sum(mixing**2)
    drift = xp.abs(xp.sum(mixed * images[:, n:]) / size - 1.0)
    return (xp.sqrt(wanted * xp.where(outside > 0, outside, 0.0) / size) + drift,)
