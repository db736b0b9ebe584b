"""The matrix pencil (S, V) of a window, regularised: products with it, its shifted matrices, and its change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, cast

from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.moments import covariance_of, covariance_times, second_moment_of_differences, variances_of
from psmt.engines.contract import Change, Resident, ShiftInvert
from psmt.engines.window import Sums
from psmt.numerics.linalg import add_multiple, add_to_diagonal, positive_or_one
from psmt.numerics.namespace import array_namespace
from psmt.numerics.rank import moving, noise_variance
from psmt.types import AnyArray, Array, Mask


@dataclass(frozen=True)
class Pencil(Resident):
    """S and V of a window, each with its share of the noise ``N = n^2 (V + n)^-1``."""

    sums: Sums
    constant: Mask
    """Atoms (n_features,) that do not vary."""
    noise_now: Array
    """n () of the window as it is."""
    centred: bool
    noise: float
    """n that the resolvent was made with."""
    resolvent: ShiftInvert
    """``(V + n)^-1``, a single operator."""

    @property
    def curvature(self) -> float:
        """Second differences of the noise, per variance."""
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
        return covariance, add_multiple(
            self.sums.second_differences_times(vectors), self.curvature * self.noise**2, noise
        )

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

    def parts(
        self,
    ) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[int, bool, float]]:
        """As an argument of captured work: the sums stay where they are, and are multiplied as they are."""
        sums = self.sums
        shifts, matrices, _ = self._captured_resolvent.parts()
        copied = self.constant, self.noise_now, sums.ends, *shifts
        return copied, (sums.products, sums.curvature, sums.total, *matrices), (sums.n, self.centred, self.noise)

    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """The same of other arrays."""
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


def regularised_change(change: Change, pencil: Pencil, *, refinements: int) -> tuple[Array, Array, Array, Array]:
    """The `Change` of V + N and S + curvature N by a slide, and how accurate () it is.

    The resolvent R becomes that of the pencil's window. The code p that arrived and the one, q, that is gone each
    change it by one outer product, of what solves ``(V + n) x = p`` or q. Where a code alone has shown a direction, R
    grows by orders of magnitude when it leaves, and so does whatever is wrong with R there. Hence the solutions are
    refined, and what Woodbury's formula would divide by, next to nothing, is taken from the window itself.
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


def diagonal(matrix: Array) -> Array:
    """Diagonal (n,) of a matrix (n, n)."""
    return array_namespace(matrix).linalg.diagonal(matrix)
