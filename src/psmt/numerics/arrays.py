"""Arrays of every engine: the array namespace that the algorithms are written in, and functions beyond it.

The algorithms take the namespace from their input, so the same code works on the arrays of every engine. `Namespace`
lists what an array library must have for its engine to work: a part of the array API standard, with NumPy's names.
`UncheckedLinalg` has two functions outside the standard, which only engines that capture work need. The functions add
linear algebra (by SciPy for NumPy arrays), groups, and robust sizes. Arrays of all libraries are typed as NumPy arrays
(see `psmt.types`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast

import array_api_compat
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

from psmt.types import AnyArray, Array, Ints, Mask

FEWEST = 2  # columns up to which one product for each of them is faster than one for all

_FENCE = 3.0
"""Values beyond the upper quantile by more than this many times its distance from the median are outliers: one in five
million normal values, one in a thousand exponential ones. Up to a tenth of the values may be outliers and hardly move
the two quantiles."""

A = TypeVar("A", bound=AnyArray)
S = TypeVar("S", bound=np.generic)


class Linalg(Protocol):
    """Linear algebra of the standard."""

    def cholesky(self, x: Array, /) -> Array: ...
    def diagonal(self, x: Array, /) -> Array: ...
    def eigh(self, x: Array, /) -> tuple[Array, Array]: ...
    def inv(self, x: Array, /) -> Array: ...
    def qr(self, x: Array, /) -> tuple[Array, Array]: ...
    def trace(self, x: Array, /) -> Array: ...
    def vector_norm(self, x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array: ...


class UncheckedLinalg(Protocol):
    """Linear algebra that does not wait for results, with torch's names: for engines that capture work."""

    def cholesky_ex(self, x: Array, /) -> tuple[Array, Ints]: ...
    def solve_triangular(self, x: Array, b: Array, /, *, upper: bool) -> Array: ...


class Namespace(Protocol):
    """Functions that an array library must have; its arrays have operators, indexing and `mT`, and are writable."""

    @property
    def linalg(self) -> Linalg: ...
    @property
    def inf(self) -> float: ...
    @property
    def nan(self) -> float: ...
    @property
    def int64(self) -> np.dtype[np.int64]: ...

    # Creation
    def arange(self, stop: int, /, *, device: str | None = None) -> Ints: ...
    def asarray(self, values: A, /, *, device: object = None) -> A: ...
    def astype(self, x: AnyArray, dtype: np.dtype[S], /) -> NDArray[S]: ...
    def eye(self, n: int, /, *, dtype: np.dtype[np.float64], device: str | None = None) -> Array: ...
    def full_like(self, x: Array, value: float, /) -> Array: ...
    def ones_like(self, x: A, /) -> A: ...
    def empty(self, shape: tuple[int, ...], *, dtype: object = None, device: object = None) -> Array: ...
    def zeros(self, shape: tuple[int, ...], /, *, dtype: np.dtype[np.float64], device: str | None = None) -> Array: ...
    def zeros_like(self, x: A, /) -> A: ...

    # Element by element
    def abs(self, x: Array, /) -> Array: ...
    def clip(self, x: Array, /, *, min: float) -> Array: ...
    def floor(self, x: Array, /) -> Array: ...
    def imag(self, x: Array, /) -> Array: ...
    def log2(self, x: Array, /) -> Array: ...
    def maximum(self, x: Array, y: Array, /) -> Array: ...
    def pow(self, x: Array, y: Array, /) -> Array: ...
    def real(self, x: Array, /) -> Array: ...
    def sign(self, x: Array, /) -> Array: ...
    def sqrt(self, x: Array, /) -> Array: ...
    def where(self, condition: Mask, x: Array | float, y: Array | float, /) -> Array: ...

    # Over an axis, or all
    def all(self, x: Mask, /) -> Mask: ...
    def any(self, x: Mask, /, *, axis: int | None = None) -> Mask: ...
    def argmax(self, x: Array, /, *, axis: int) -> Ints: ...
    def argmin(self, x: Array, /, *, axis: int) -> Ints: ...
    def cumulative_sum(self, x: Ints, /) -> Ints: ...
    def max(self, x: Array, /) -> Array: ...
    def min(self, x: Array, /) -> Array: ...
    def sum(self, x: A, /, *, axis: int | None = None) -> A: ...

    # Order, indices and shapes
    def argsort(self, x: Array | Ints, /, *, stable: bool = True) -> Ints: ...
    def broadcast_to(self, x: Array, shape: tuple[int, ...], /) -> Array: ...
    def concat(self, arrays: Sequence[A], /, *, axis: int = 0) -> A: ...
    def nonzero(self, x: Mask, /) -> tuple[Ints, ...]: ...
    def permute_dims(self, x: Array, axes: tuple[int, ...], /) -> Array: ...
    def reshape(self, x: Array, shape: tuple[int, ...], /) -> Array: ...
    def searchsorted(self, ordered: Ints, values: Ints, /) -> Ints: ...
    def stack(self, arrays: Sequence[A], /) -> A: ...
    def take_along_axis(self, x: Array, indices: Ints, /, *, axis: int) -> Array: ...

    def __hash__(self) -> int: ...


# From 2.1 on, NumPy's main namespace follows the standard, and is faster than the wrappers of array-api-compat.
_known: dict[type, Namespace] = dict.fromkeys((np.ndarray, np.float64, np.bool_), cast(Namespace, np))


def is_numpy_array(array: object) -> bool:
    """Whether an array, or a scalar of an array library, is NumPy's."""
    return isinstance(array, np.ndarray | np.generic)


def array_namespace(array: AnyArray) -> Namespace:
    """The namespace of an array's library, looked up once for each type of array.

    >>> bool(array_namespace(np.zeros(3)).all(np.array([True, True])))
    True
    """
    kind = type(array)
    if kind not in _known:
        _known[kind] = cast(Namespace, array_api_compat.array_namespace(array))
    return _known[kind]


def eigh(matrix: Array, *, driver: str = "evd") -> tuple[Array, Array]:
    """Eigenvalues (n,), ascending, and eigenvectors (n, n) in columns, of a symmetric matrix (n, n).

    LAPACK's divide and conquer ('evd') is faster for all directions than the routines for a part of them. For small
    matrices another driver may be better.
    """
    if is_numpy_array(matrix):
        values, vectors = scipy.linalg.eigh(matrix, driver=driver)
    else:
        values, vectors = array_namespace(matrix).linalg.eigh(matrix)
    return values, vectors


def eigh_generalised(matrix: Array, metric: Array) -> tuple[Array, Array]:
    """Eigenvalues (n,), ascending, and eigenvectors (n, n) of ``matrix x = r metric x``, with a positive metric."""
    if is_numpy_array(matrix):
        values, vectors = scipy.linalg.eigh(matrix, metric, driver="gvd")
        return values, vectors
    xp = array_namespace(matrix)
    white = xp.linalg.inv(xp.linalg.cholesky(metric))
    values, vectors = xp.linalg.eigh(white @ matrix @ white.mT)
    return values, white.mT @ vectors


def lowest_eigenpairs(matrix: Array, metric: Array, count: int) -> tuple[Array, Array]:
    """The `count` lowest eigenvalues, ascending, and their vectors (n, count) of ``matrix x = r metric x``.

    The metric is positive definite; ``x' metric x = 1``.
    """
    if not is_numpy_array(matrix) or 2 * count > len(matrix):
        values, vectors = eigh_generalised(matrix, metric)
        return values[:count], vectors[:, :count]
    # LAPACK's drivers for a part of the directions bisect for each eigenvalue. QL for all eigenvalues and inverse
    # iteration for the vectors takes half the time.
    factor, info = lapack.dpotrf(metric, lower=1)
    if info:
        raise scipy.linalg.LinAlgError("the metric is not positive definite")
    reduced, _ = lapack.dsygst(matrix, factor, lower=1)
    n = len(matrix)
    reflectors, diagonal, beside, scales, _ = lapack.dsytrd(
        reduced, lower=1, lwork=int(lapack.dsytrd_lwork(n, lower=1)[0]), overwrite_a=1
    )
    values = scipy.linalg.eigvalsh_tridiagonal(diagonal, beside, lapack_driver="sterf")
    block, end = np.ones(n, dtype=np.int32), np.full(n, n, dtype=np.int32)
    vectors, info = lapack.dstein(diagonal, beside, values[:count], block, end)
    if info:
        values, vectors = eigh_generalised(matrix, metric)
        return values[:count], vectors[:, :count]
    vectors[1:], _, _ = lapack.dormqr("L", "N", reflectors[1:, :-1], scales, vectors[1:], 64 * count)
    return values[:count], scipy.linalg.blas.dtrsm(1.0, factor, vectors, lower=1, trans_a=1)


def inverse_positive(matrix: Array) -> Array:
    """Inverse (n, n) of a symmetric positive definite matrix."""
    if not is_numpy_array(matrix):
        xp = array_namespace(matrix)
        root = xp.linalg.inv(xp.linalg.cholesky(matrix))
        return root.mT @ root
    factor, info = lapack.dpotrf(matrix, lower=1)
    if info:
        raise scipy.linalg.LinAlgError("the matrix is not positive definite")
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    return _mirrored(inverse)


def inverse_symmetric(matrix: Array) -> Array:
    """Inverse (n, n) of a symmetric matrix, real or complex; faster than that of a general one."""
    if not is_numpy_array(matrix):
        return array_namespace(matrix).linalg.inv(matrix)
    factorise, invert = scipy.linalg.get_lapack_funcs(("sytrf", "sytri"), (matrix,))
    factor, pivots, info = factorise(matrix, lower=1, lwork=64 * len(matrix))
    if not info:
        inverse, info = invert(factor, pivots, lower=1, overwrite_a=1)
    if info:
        raise scipy.linalg.LinAlgError("the matrix is singular")
    return _mirrored(inverse)


def _mirrored(lower: Array) -> Array:
    """The symmetric matrix with this lower triangle."""
    half = np.tril(lower)
    half[np.diag_indices_from(half)] *= 0.5
    return half + half.T


def inverse_cholesky_unchecked(matrix: Array) -> tuple[Array, Mask]:
    """Inverse (n, n) of the Cholesky factor, and whether () it exists, without waiting for the answer.

    For captured work, on namespaces whose `linalg` is also an `UncheckedLinalg`.
    """
    xp = array_namespace(matrix)
    linalg = cast(UncheckedLinalg, xp.linalg)
    factor, info = linalg.cholesky_ex(matrix)
    unit = xp.eye(len(factor), dtype=factor.dtype, device=factor.device)
    return linalg.solve_triangular(factor, unit, upper=False), info == 0


def add_to_diagonal(matrices: Array, values: Array | float) -> Array:
    """The matrices (.., n, n) with values (.., n) added to their diagonals, in place."""
    if is_numpy_array(matrices):
        np.einsum("...ii->...i", matrices)[...] += values
    else:
        own: Any = matrices  # torch's own methods
        own.diagonal(dim1=-2, dim2=-1).add_(values)
    return matrices


def add_multiple(matrix: Array, factor: float, other: Array) -> Array:
    """The matrix plus a multiple of another, in place; in one pass if the library can."""
    if is_numpy_array(matrix):
        matrix += factor * other
    else:
        own: Any = matrix  # torch's own methods
        own.add_(other, alpha=factor)
    return matrix


def subtract_outer(matrix: Array, left: Array, right: Array) -> Array:
    """The matrix (n, m) less the outer product of vectors (n,) and (m,), in place, in one pass."""
    if is_numpy_array(matrix):
        matrix -= left[:, None] * right
    else:
        own: Any = matrix  # torch's own methods
        own.addr_(left, right, alpha=-1.0)
    return matrix


def few_times(matrix: Array, vectors: Array) -> Array:
    """The matrix (n, m) times the columns of `vectors` (m, k); up to `FEWEST` of them one by one, for speed."""
    if is_numpy_array(matrix) and vectors.shape[1] <= FEWEST:
        return np.stack([matrix @ vector for vector in vectors.T], axis=1)
    return matrix @ vectors


def unit_columns(columns: Array) -> tuple[Array, Array]:
    """Columns (n_columns, n_features), one per row, scaled to unit norm, and their norms; zero columns stay zero."""
    xp = array_namespace(columns)
    norms = xp.linalg.vector_norm(columns, axis=1)
    return columns / positive_or_one(norms)[:, None], norms


def positive_or_one(values: Array) -> Array:
    """The values, with 1 in place of those that are not positive: safe divisors."""
    xp = array_namespace(values)
    return xp.where(values > 0, values, xp.ones_like(values))


def whitening_mixtures(covariance: Array, *, dependent: float) -> Array:
    """Mixtures (n, m), of unit covariance, of n directions with this covariance (n, n); dependent ones are dropped."""
    variances, turn = eigh(covariance, driver="evr")
    kept: Mask = variances > dependent * variances[-1]
    return turn[:, kept] / array_namespace(variances).sqrt(variances[kept])


def contiguous(matrix: Array) -> Array:
    """The matrix with contiguous rows, as compiled kernels of the CPU need it."""
    return np.ascontiguousarray(matrix) if is_numpy_array(matrix) else matrix


def sum_by_group(values: Array, group: Ints, n_groups: int) -> Array:
    """Sums (n, n_groups) of the columns of `values` (n, m) with the same group (m,)."""
    if is_numpy_array(values):
        return np.array([np.bincount(group, row, n_groups) for row in values], dtype=np.float64)
    own: Any = values  # torch's own methods
    sums: Array = own.new_zeros(len(own), n_groups).index_add_(1, group, own)
    return sums


def first_indices(group: Ints) -> Ints:
    """Index (n_groups,) of the first member of each group, in the order of their numbers."""
    if is_numpy_array(group):
        return np.asarray(np.unique(group, return_index=True)[1])
    xp = array_namespace(group)
    (firsts,) = xp.nonzero(first_of_group(group) == xp.arange(len(group), device=group.device))
    return firsts[xp.argsort(group[firsts])]


def first_of_group(group: Ints) -> Ints:
    """For each of n items, the index (n,) of the first item of its group (n,); groups are numbered below n."""
    if is_numpy_array(group):
        _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
        return np.asarray(first[inverse])
    own: Any = group  # torch's own methods
    index = array_namespace(own).arange(len(own), device=own.device)
    firsts: Ints = own.new_full((len(own),), len(own)).scatter_reduce_(0, own, index, "amin")[own]
    return firsts


def robust_peak(values: Array) -> Array:
    """Largest () of some sizes (n,) in the order of time, with outliers clipped; zero for an empty array.

    Without outliers this is exactly the maximum. The latest two sizes are never clipped: the straight line of step 6
    goes through them.
    """
    xp = array_namespace(values)
    if not len(values):
        return xp.sum(values)
    ordered = values[xp.argsort(values)]
    upper, middle = _quantile(ordered, 0.9), _quantile(ordered, 0.5)
    fence, peak = upper + _FENCE * (upper - middle), ordered[-1]
    return xp.maximum(xp.where(peak > fence, fence, peak), xp.max(values[-2:]))


def _quantile(ordered: Array, share: float) -> Array:
    """Quantile () of values (n,) in ascending order, by linear interpolation."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    quantile: Array = ordered[below] + (at - below) * (ordered[above] - ordered[below])
    return quantile


def drawn_back(wanted: Array, start: Array, length: Array, reach: Array | float) -> Array:
    """`wanted` (n,), unchanged if its distance `length` () from `start` (n,) is within `reach`.

    Otherwise it is the point ``reach / length`` of the way from `start` to `wanted`.
    """
    xp = array_namespace(wanted)
    too_far: Mask = length > reach
    share = xp.where(too_far, reach / xp.where(too_far, length, 1.0), 1.0)
    return xp.where(too_far, start + share * (wanted - start), wanted)
