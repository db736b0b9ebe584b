"""The matrix pencil (S, V) of a window, regularised: products with it, and its shifted matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from psmt.embedding.closed_form import noise_curvature
from psmt.engines.contract import Resident
from psmt.engines.window import Sums
from psmt.moments import covariance_of, covariance_times, second_moment_of_differences, variances_of
from psmt.numerics.linalg import add_multiple, add_to_diagonal, is_positive_definite
from psmt.numerics.namespace import array_namespace
from psmt.numerics.rank import moving, rank_threshold
from psmt.types import AnyArray, Array, Mask


@dataclass(frozen=True)
class Pencil(Resident):
    """S and V of a window, each with its share of the noise."""

    sums: Sums
    constant: Mask
    """Atoms (n_features,) that do not vary."""
    threshold: Array
    """Variance () below which a direction is not determined."""
    centred: bool
    noise_variance: float

    def covariance_times(self, vectors: Array) -> Array:
        """V times the columns of `vectors` (n_features, k)."""
        images = covariance_times(self.sums, vectors, centred=self.centred)
        return add_multiple(images, self.noise_variance, vectors)

    def second_differences_times(self, vectors: Array) -> Array:
        """S times the columns of `vectors` (n_features, k)."""
        noise = noise_curvature(self.sums.n) * self.noise_variance
        return add_multiple(self.sums.second_differences_times(vectors), noise, vectors)

    def residuals(self, vectors: Array, scaled: Array) -> Array:
        """``S x - V y`` of the columns x of `vectors` and y of `scaled`, each (n_features, k)."""
        return self.second_differences_times(vectors) - self.covariance_times(scaled)

    def shifted(self, shifts: Array) -> Array:
        """``S - shift V`` for each shift (n,), as matrices (n, n_features, n_features)."""
        covariance = covariance_of(self.sums, centred=self.centred)
        matrices = second_moment_of_differences(self.sums) - shifts[:, None, None] * covariance
        noise = (noise_curvature(self.sums.n) - shifts) * self.noise_variance
        return add_to_diagonal(matrices, noise[:, None])

    def is_determined(self) -> bool:
        """Whether V has more than the threshold in every direction."""
        return is_positive_definite(add_to_diagonal(covariance_of(self.sums, centred=self.centred), -self.threshold))

    def parts(self) -> tuple[tuple[Mask, Array, Array], tuple[Array, Array, Array], tuple[int, bool, float]]:
        """As an argument of captured work: the sums stay where they are, and are multiplied as they are."""
        sums = self.sums
        resident = sums.products, sums.curvature, sums.total
        return (self.constant, self.threshold, sums.ends), resident, (sums.n, self.centred, self.noise_variance)

    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """The same of other arrays."""
        constant, threshold, ends = copied
        products, curvature, total = resident
        sums = Sums(products, curvature, total, ends, self.sums.n)
        return replace(self, sums=sums, constant=constant, threshold=threshold)


def rank_limits(squares: Array, total: Array, *, n: int, centred: bool, rank_tol: float) -> tuple[Mask, Array]:
    """Which atoms (n_features,) are constant, and the variance () below which a direction is not determined."""
    variances = variances_of(squares, total, n, centred=centred)
    return ~moving(variances), rank_threshold(variances, rank_tol)


def diagonal(matrix: Array) -> Array:
    """Diagonal (n,) of a matrix (n, n)."""
    return array_namespace(matrix).linalg.diagonal(matrix)
