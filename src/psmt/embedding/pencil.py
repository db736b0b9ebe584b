"""The regularised matrix pencil (S, V) of a window, its change by a slide, and Rayleigh-Ritz steps on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self, cast

from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.moments import covariance_of, covariance_times, second_moment_of_differences, variances_of
from psmt.engines.contract import LowRankChange, Resident, ShiftInvert
from psmt.engines.window import Sums
from psmt.numerics.arrays import (
    add_multiple,
    add_to_diagonal,
    array_namespace,
    eigh,
    eigh_generalised,
    inverse_cholesky_unchecked,
    positive_or_one,
    unit_columns,
    whitening_mixtures,
)
from psmt.numerics.rank import fix_signs, moving, noise_variance
from psmt.types import AnyArray, Array, Mask

_ROUNDING = 1e-11
"""Mixtures with a smaller fraction of their variance of their own, beside the others of a step, are only rounding."""

_DEPENDENT = 1e-12
"""Mixtures of unit vectors with less than this fraction of the largest variance are mostly rounding, which could look
like a straight direction."""

_RIDGE = 1e-10  # in the masked step, the fraction of a proposed direction's variance that is only rounding
_STOPPED = 4  # most atoms that may stop at once in captured work


@dataclass(frozen=True)
class Pencil(Resident):
    """S and V of a window, each with its part of the noise ``N = n^2 (V + n)^-1``."""

    sums: Sums
    constant: Mask  # atoms (n_features,) that do not vary
    noise_now: Array  # n () of the present window
    centred: bool
    noise: float  # n of the resolvent
    resolvent: ShiftInvert  # (V + n)^-1, a single operator

    @property
    def curvature(self) -> float:
        """Second moment of the differences of the noise, relative to its variance."""
        return noise_curvature(self.sums.n)

    def covariance_times(self, vectors: Array) -> Array:
        """V + N times the columns of `vectors` (n_features, k)."""
        images = covariance_times(self.sums, vectors, centred=self.centred)
        return add_multiple(images, self.noise**2, self.resolvent.times(0, vectors))

    def lifted_times(self, vectors: Array) -> Array:
        """V + n, whose inverse is the resolvent, times the columns of `vectors` (n_features, k)."""
        return add_multiple(covariance_times(self.sums, vectors, centred=self.centred), self.noise, vectors)

    def times(self, vectors: Array) -> tuple[Array, Array]:
        """V and S, each with its noise, times the columns of `vectors` (n_features, k)."""
        noise = self.resolvent.times(0, vectors)
        covariance = add_multiple(covariance_times(self.sums, vectors, centred=self.centred), self.noise**2, noise)
        rough = self.sums.second_differences_times(vectors)
        return covariance, add_multiple(rough, self.curvature * self.noise**2, noise)

    def residuals(self, vectors: Array, scaled: Array) -> Array:
        """``S x - V y``, with their noise, of the columns x of `vectors` and y of `scaled`, each (n_features, k)."""
        images = self.sums.second_differences_times(vectors)
        images -= covariance_times(self.sums, scaled, centred=self.centred)
        return add_multiple(images, self.noise**2, self.resolvent.times(0, self.curvature * vectors - scaled))

    def shifted(self, shifts: Array) -> Array:
        """``S - shift V``, with their noise, for each shift (n,), as matrices (n, n_features, n_features)."""
        covariance = covariance_of(self.sums, centred=self.centred)
        matrices = second_moment_of_differences(self.sums) - shifts[:, None, None] * covariance
        matrices += ((self.curvature - shifts) * self.noise**2)[:, None, None] * self.resolvent.dense()
        return matrices

    def parts(self) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[int, bool, float]]:
        """Arrays as an argument of captured work: the sums stay where they are."""
        sums = self.sums
        shifts, matrices, _ = self._captured_resolvent.parts()
        copied = self.constant, self.noise_now, sums.ends, *shifts
        return copied, (sums.products, sums.curvature, sums.total, *matrices), (sums.n, self.centred, self.noise)

    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """The same pencil with other arrays."""
        constant, noise_now, ends, *shifts = copied
        products, curvature, total, *matrices = resident
        sums = Sums(products, curvature, total, ends, self.sums.n)
        resolvent = cast(ShiftInvert, self._captured_resolvent.with_arrays(tuple(shifts), tuple(matrices)))
        return replace(self, sums=sums, constant=constant, noise_now=noise_now, resolvent=resolvent)

    @property
    def _captured_resolvent(self) -> Resident:
        assert isinstance(self.resolvent, Resident), "engines that capture work have operators that can be captured"
        return self.resolvent


def window_noise(squares: Array, total: Array, *, n: int, centred: bool, rank_tol: float) -> tuple[Mask, Array]:
    """Which atoms (n_features,) are constant, and the variance () of the noise."""
    variances = variances_of(squares, total, n, centred=centred)
    return ~moving(variances), noise_variance(variances, rank_tol)


def lifted_covariance(sums: Sums, noise: float, *, centred: bool) -> Array:
    """V + n (1, n_features, n_features), whose inverse is the resolvent."""
    return add_to_diagonal(covariance_of(sums, centred=centred), noise)[None]


def regularised_change(change: LowRankChange, pencil: Pencil, *, refinements: int) -> tuple[Array, Array, Array, Array]:
    """The `LowRankChange` of V + N and S + curvature N by a slide, and its accuracy ().

    The resolvent R becomes that of the pencil's window. The code p that arrived and the code q that left each change it
    by one outer product, of the solutions of ``(V + n) x = p`` and q. If only one code has shown a direction, R grows
    there by orders of magnitude when that code leaves, and so does the error of R. Therefore the solutions are refined,
    and the tiny divisor of Woodbury's formula is computed from the window itself.
    """
    xp, resolvent = array_namespace(change.vectors), pencil.resolvent
    pair, weights = change.vectors[:2], change.covariance[:2]
    solved = resolvent.images(pair)[0]
    for _ in range(refinements):
        before = pencil.lifted_times(solved.T).T - (weights * (solved @ pair.T)) @ pair
        refined = resolvent.images(pair - before)[0]
        solved = solved + refined
    norm = xp.linalg.vector_norm
    accuracy = xp.max(norm(refined, axis=1) / positive_or_one(norm(solved, axis=1)))
    (first, second), (arrived, gone) = solved, pair
    weight = weights[0] / (1.0 + weights[0] * (arrived @ first))
    second = second - weight * (first @ gone) * first
    left = second @ pencil.lifted_times(second[:, None])[:, 0]
    lost = xp.stack([-weight, xp.where(left > 0, 1.0 / positive_or_one(left) - 1.0 / (gone @ second), 0.0)])
    images = xp.stack([first, second])
    resolvent.subtract(images[None], -(lost[:, None] * images)[None])
    return (
        xp.concat([change.vectors, pencil.noise * images]),
        xp.concat([change.covariance, lost]),
        xp.concat([change.curvature, pencil.curvature * lost]),
        accuracy,
    )


def propose(
    along: Array, change: LowRankChange, directions: Array, eigenvalues: Array, inverses: ShiftInvert
) -> tuple[Array]:
    """Directions (n_features, n) in which the new eigenvectors may differ; the operators take up the change.

    `along` (n_directions, n) are the products of the directions known before with the vectors of the change.
    """
    # The part along the known directions is subtracted. For an eigenvector it is known without a product.
    known = real_parts(along / (eigenvalues[:, None] - inverses.shifts[:, None, None]))
    proposed = real_parts(inverses.update(change)) - known.mT @ directions.T
    return (array_namespace(along).reshape(proposed, (-1, len(directions))).T,)


def real_parts(values: Array) -> Array:
    """Real and imaginary parts (2 n, ..) of complex numbers (n, ..), one after the other."""
    xp = array_namespace(values)
    return xp.concat([xp.real(values), xp.imag(values)])


def estimate_error(
    directions: Array, eigenvalues: Array, mixing: Array, pencil: Pencil, inverses: ShiftInvert
) -> tuple[Array]:
    """Sine () of the angle to the exact subspace, from residuals of random mixtures; infinite if the noise has changed.

    The operator at the last shift, close to the end of the wanted eigenvalues, maps a residual to the error behind it.
    Random mixtures measure the sum of the errors of all directions, which bounds the largest angle.
    """
    xp, wanted = array_namespace(directions), len(mixing)
    errors = xp.real(inverses.times(-1, mixed_residuals(pencil, directions, eigenvalues, mixing)))
    mixed, n = directions[:, :wanted] @ mixing, errors.shape[1]
    images = pencil.covariance_times(xp.concat([errors, mixed], axis=1))
    outside = xp.sum(errors * images[:, :n]) - xp.sum((directions.T @ images[:, :n]) ** 2)
    # The variance of the mixtures is known: a difference is accumulated rounding.
    size = xp.sum(mixing**2)
    drift = xp.abs(xp.sum(mixed * images[:, n:]) / size - 1.0)
    error = xp.sqrt(wanted * xp.where(outside > 0, outside, 0.0) / size) + drift
    return (xp.where(pencil.noise_now == pencil.noise, error, xp.inf),)


class Known(NamedTuple):
    """The directions known before a slide, with V and S on them: the result of the last step, changed by the slide."""

    directions: Array  # (n_features, n)
    eigenvalues: Array  # (n,): S of the directions, whose V is one
    covariance_beyond: Array  # (n, n): V on them, less the unit matrix
    curvature_beyond: Array  # (n, n): S on them, less the eigenvalues

    def changed(self, along: Array, change: LowRankChange) -> Self:
        """The same directions after a slide, given their products (n, k) with the vectors of its change."""
        covariance = self.covariance_beyond + (along * change.covariance) @ along.T
        curvature = self.curvature_beyond + (along * change.curvature) @ along.T
        return self._replace(covariance_beyond=covariance, curvature_beyond=curvature)

    def bordered(self, proposed: Array, images: Array, rough: Array) -> tuple[Array, Array]:
        """S and V (n + m, n + m) on the known and m proposed directions, given these and V and S times them.

        The known directions need no products, only their change.
        """
        n, size = len(self.eigenvalues), len(self.eigenvalues) + proposed.shape[1]

        def border(values: Array | float, change: Array, images: Array) -> Array:
            cross = self.directions.T @ images
            matrix = array_namespace(change).empty((size, size), dtype=change.dtype, device=change.device)
            matrix[:n, :n], matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = change, cross, cross.T, proposed.T @ images
            add_to_diagonal(matrix[:n, :n], values)
            return matrix

        return border(self.eigenvalues, self.curvature_beyond, rough), border(1.0, self.covariance_beyond, images)


def rayleigh_ritz(pencil: Pencil, proposed: Array, known: Known) -> tuple[Array, Array, float]:
    """The lowest eigenvalues and eigenvectors (n_features, n) in the span of the known and the proposed directions.

    The third result is the smallest fraction of its variance that one of these directions has of its own.
    """
    xp, n = array_namespace(proposed), len(known.eigenvalues)
    # An atom that has stopped becomes a proposed direction, so that the step can remove it from the known ones.
    (constant,) = xp.nonzero(pencil.constant)
    shows = xp.any(known.directions[constant] != 0, axis=1)
    proposed[constant[~shows]] = 0.0
    if bool(xp.any(shows)):
        places = xp.arange(len(proposed), device=proposed.device)[:, None]
        units = xp.astype(places == constant[shows], proposed.dtype)
        proposed = xp.concat([proposed, units], axis=1)
    # Two operators propose similar directions, and their difference matters. QR finds it to full precision; products of
    # the directions would lose half of the digits.
    proposed, _ = xp.linalg.qr(unit_columns(proposed.T)[0].T)
    images, rough = pencil.times(proposed)
    turn = whitening_mixtures(proposed.T @ images, dependent=_DEPENDENT)
    curvature, covariance = known.bordered(proposed @ turn, images @ turn, rough @ turn)
    own = float(xp.min(xp.linalg.diagonal(xp.linalg.cholesky(covariance)))) ** 2
    if own > _ROUNDING:
        values, vectors = eigh_generalised(curvature, covariance)
    else:
        mixtures = whitening_mixtures(covariance, dependent=_ROUNDING)
        values, vectors = eigh(mixtures.T @ curvature @ mixtures)
        vectors = mixtures @ vectors
    turned = known.directions @ vectors[:n, :n] + (proposed @ turn) @ vectors[n:, :n]
    turned[pencil.constant] = 0.0  # they are zero up to rounding, which the recovery would pick up
    return values[:n], turned, own


def products_on(pencil: Pencil, directions: Array, eigenvalues: Array) -> tuple[Array, Array]:
    """V and S (n, n) on the directions, less the unit matrix and the eigenvalues, computed by products."""
    images, rough = pencil.times(directions)
    covariance, curvature = add_to_diagonal(directions.T @ images, -1.0), directions.T @ rough
    return covariance, add_to_diagonal(curvature, -eigenvalues)


# The same step for captured work, in two parts around the eigenproblem. Shapes are fixed and the host does not wait, so
# proposed directions that add nothing new cannot be dropped. They are masked instead.


def reduce_masked(pencil: Pencil, proposed: Array, known: Known) -> tuple[Array, Array, Array]:
    """The pencil on the known and the proposed directions as one symmetric matrix, its whitening, and the latter.

    The matrix is nan if V is not positive definite there.
    """
    xp = array_namespace(proposed)
    shown = xp.where(pencil.constant, xp.sum(known.directions**2, axis=1), 0.0)
    stopped = xp.argsort(-shown)[:_STOPPED]
    units = xp.arange(len(shown), device=shown.device)[:, None] == stopped
    proposed = xp.concat([proposed, xp.where(units, shown[:, None], 0.0)], axis=1)
    proposed, _ = _orthonormalise_masked(pencil, proposed)
    proposed, images = _orthonormalise_masked(pencil, proposed)  # once more, now that no two are almost parallel
    new = xp.sum(proposed * images, axis=0) > 0.5
    proposed = xp.where(new, proposed, 0.0)
    curvature, covariance = known.bordered(proposed, *pencil.times(proposed))
    # A direction that adds nothing new gets an eigenvalue above all others.
    apart = xp.concat([xp.zeros_like(known.eigenvalues), 1.0 - xp.astype(new, proposed.dtype)])
    white, positive = inverse_cholesky_unchecked(add_to_diagonal(covariance, apart))
    inner = white @ curvature @ white.mT
    inner = add_to_diagonal(inner, apart * xp.linalg.trace(inner))
    return xp.where(positive, (inner + inner.mT) / 2, xp.nan), white, proposed


def turn_masked(
    values: Array, vectors: Array, white: Array, proposed: Array, directions: Array, constant: Mask, *, wanted: int
) -> tuple[Array, Array, Array]:
    """Eigenvalues, directions (n_features, n_known) and the matrix (wanted, n_features) of the embedding."""
    xp, known = array_namespace(values), directions.shape[1]
    turn = white.mT @ vectors[:, :known]
    turned = xp.where(constant[:, None], 0.0, directions @ turn[:known] + proposed @ turn[known:])
    return 1.0 * values[:known], turned, fix_signs(turned[:, :wanted].T)


def _orthonormalise_masked(pencil: Pencil, directions: Array) -> tuple[Array, Array]:
    """The directions (n_features, n), each orthogonal to those before it in the metric of V, and V times them.

    They get unit variance, or less if only rounding is left.
    """
    xp = array_namespace(directions)
    directions = directions / positive_or_one(xp.linalg.vector_norm(directions, axis=0))
    images = pencil.covariance_times(directions)
    products = directions.T @ images
    scale = 1.0 / xp.sqrt(positive_or_one(xp.linalg.diagonal(products)))
    inverse, _ = inverse_cholesky_unchecked(add_to_diagonal(scale[:, None] * products * scale, _RIDGE))
    turn = scale[:, None] * inverse.mT
    return directions @ turn, images @ turn


def mixed_residuals(pencil: Pencil, directions: Array, eigenvalues: Array, mixing: Array) -> Array:
    """``S x - r V x`` (n_features, n) of the wanted directions, mixed by (wanted, n)."""
    wanted = directions[:, : len(mixing)]
    return pencil.residuals(wanted @ mixing, wanted @ (eigenvalues[: len(mixing), None] * mixing))
