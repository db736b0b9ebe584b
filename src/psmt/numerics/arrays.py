"""Functions on arrays of every engine: NumPy arrays, and those of other libraries such as torch.

The algorithms take the array namespace from their input, so the same code works for every engine. `FUNCTIONS` and
`LINALG` list what an array library must have. An engine that records CUDA graphs also needs `UNCHECKED_LINALG`. This
module adds linear algebra (by SciPy for NumPy arrays), sums by group, and robust maxima. For the type checker, arrays
of all libraries are NumPy arrays (see `psmt.types`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import array_api_compat
import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from psmt.numerics.kernels import add_by_group, gather, lowest_tridiagonal
from psmt.types import AnyArray, Array, Ints, Mask

FEWEST = 2  # up to this number of columns, a product per column is faster than one product of matrices

_FENCE = 3.0
"""A value is an outlier if it exceeds ``q + _FENCE * (q - m)``, where q is the 0.9 quantile and m the median. This is
true of one in five million normal values and one in a thousand exponential values."""

_ALMOST = 1e-6  # largest inner product of unit vectors that count as almost orthogonal

FUNCTIONS = (
    "abs all any arange argmax argsort asarray astype broadcast_to clip concat cumulative_sum empty eye floor "
    "full_like imag isfinite log2 max maximum min nonzero ones_like pow real reshape searchsorted sign sqrt stack sum "
    "take_along_axis where zeros zeros_like"
)
"""Functions that the algorithms take from the namespace of an array. All belong to the array API standard."""

LINALG = "cholesky diagonal eigh inv trace vector_norm"
"""Functions that the algorithms take from the standard's extension `linalg`."""

UNCHECKED_LINALG = "cholesky_ex solve_ex solve_triangular"
"""Functions of torch's `linalg`, outside the standard, that return without waiting for their results."""


class Namespace(Protocol):
    """The module of an array library with all `FUNCTIONS`. Its arrays are writable and have operators and `mT`."""

    linalg: Namespace
    inf: float
    nan: float
    int64: np.dtype[np.int64]

    def __getattr__(self, name: str, /) -> Callable[..., AnyArray]: ...
    def __hash__(self) -> int: ...


# From version 2.1 on, NumPy's main namespace follows the standard and is faster than the one of array-api-compat.
_known: dict[type, Namespace] = dict.fromkeys((np.ndarray, np.float64, np.bool_), cast(Namespace, np))


def is_numpy_array(array: object) -> bool:
    """Return whether an array or scalar belongs to NumPy."""
    return isinstance(array, np.ndarray | np.generic)


def array_namespace(array: AnyArray) -> Namespace:
    """Return the array library (a module) of an array. The library is looked up once for each type of array.

    >>> bool(array_namespace(np.zeros(3)).all(np.array([True, True])))
    True
    """
    kind = type(array)
    if kind not in _known:
        _known[kind] = cast(Namespace, array_api_compat.array_namespace(array))
    return _known[kind]


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Return the ascending eigenvalues (n,) of a symmetric matrix (n, n), and its eigenvectors as columns (n, n)."""
    if is_numpy_array(matrix):
        # Divide and conquer, LAPACK's fastest routine for all eigenpairs, may not end on values that are not finite.
        if not len(matrix) or not np.isfinite(matrix.sum()):
            return cast(tuple[Array, Array], scipy.linalg.eigh(matrix, driver="evd"))
        values, vectors, info = lapack.dsyevd(matrix)
        if info:
            raise scipy.linalg.LinAlgError(f"the eigenvalues of a matrix {matrix.shape} do not converge")
    else:
        values, vectors = array_namespace(matrix).linalg.eigh(matrix)
    return values, vectors


def eigh_generalised(matrix: Array, metric: Array) -> tuple[Array, Array]:
    """Return the ascending eigenvalues r (n,) of ``matrix x = r metric x``, and the eigenvectors as columns (n, n).

    The metric must be positive definite.
    """
    if is_numpy_array(matrix):
        values, vectors = scipy.linalg.eigh(matrix, metric, driver="gvd")
        return values, vectors
    xp = array_namespace(matrix)
    white = xp.linalg.inv(xp.linalg.cholesky(metric))
    values, vectors = xp.linalg.eigh(white @ matrix @ white.mT)
    return values, white.mT @ vectors


def lowest_eigenpairs(matrix: Array, metric: Array, count: int) -> tuple[Array, Array]:
    """Return the lowest eigenvalues r (count,) of ``matrix x = r metric x``, and their eigenvectors (n, count).

    The metric must be positive definite. Eigenvectors are scaled so that ``x' metric x = 1``. NumPy matrices with
    contiguous rows are overwritten, because copies of them would take as long as a factorisation.
    """
    if not is_numpy_array(matrix) or not 0 < 2 * count <= len(matrix):
        values, vectors = eigh_generalised(matrix, metric)
        return values[:count], vectors[:, :count]
    factor, info = lapack.dpotrf(metric.T, lower=1, overwrite_a=1)
    if info:
        raise scipy.linalg.LinAlgError("the metric is not positive definite")
    reduced, _ = lapack.dsygst(matrix.T, factor, lower=1, overwrite_a=1)
    space = int(lapack.dsytrd_lwork(len(matrix), lower=1)[0])
    reflectors, diagonal, beside, scales, _ = lapack.dsytrd(reduced, lower=1, lwork=space, overwrite_a=1)
    values, vectors = lowest_tridiagonal(diagonal, beside, count)
    mixing = add_to_diagonal(-0.5 * vectors.T @ vectors, 1.5)  # makes columns orthonormal that almost are
    if np.abs(add_to_diagonal(1.0 * mixing, -1.0)).max() < _ALMOST:
        vectors = np.asfortranarray(vectors @ mixing)
    else:  # some eigenvalues are equal, but for rounding
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside, select="i", select_range=(0, count - 1))
    # With less space, LAPACK would apply the reflectors one by one.
    vectors[1:], _, _ = lapack.dormqr("L", "N", reflectors[1:, :-1], scales, vectors[1:], 64 * (count + 65))
    return values, scipy.linalg.blas.dtrsm(1.0, factor, vectors, lower=1, trans_a=1, overwrite_b=1)


def inverse_positive(matrix: Array) -> Array:
    """Return the inverse (n, n) of a symmetric positive definite matrix."""
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
    """Return the inverse (n, n) of a real or complex symmetric matrix. In NumPy, the inverse is exactly symmetric."""
    if not is_numpy_array(matrix):
        return array_namespace(matrix).linalg.inv(matrix)
    # LAPACK's routines for symmetric matrices are not blocked, and take 1.5 times as long as those for general ones.
    factorise, invert = scipy.linalg.get_lapack_funcs(("getrf", "getri"), (matrix,))
    factor, pivots, info = factorise(matrix)
    if not info:
        inverse, info = invert(factor, pivots, lwork=64 * len(matrix), overwrite_lu=1)
    if info:
        raise scipy.linalg.LinAlgError("the matrix is singular")
    return _mirrored(inverse)


def _mirrored(lower: Array) -> Array:
    """Return the symmetric matrix with this lower triangle."""
    half = np.tril(lower, -1)
    half += half.T
    return add_to_diagonal(half, np.diagonal(lower))


def inverse_cholesky_unchecked(matrix: Array) -> tuple[Array, Mask]:
    """Return the inverse (n, n) of the Cholesky factor, and whether the factor exists, without waiting for a GPU."""
    xp = array_namespace(matrix)
    if is_numpy_array(matrix):
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
        inverse, failed = lapack.dtrtri(factor, lower=1, overwrite_c=1)
        return inverse, np.asarray(info == 0 and failed == 0)
    factor, info = xp.linalg.cholesky_ex(matrix)
    unit = xp.eye(len(factor), dtype=factor.dtype, device=factor.device)
    return xp.linalg.solve_triangular(factor, unit, upper=False), info == 0


def solve_unchecked(matrix: Array, right: Array) -> Array:
    """Return the solution (n, m) of ``matrix x = right``. Only NumPy raises an error if the matrix is singular."""
    if is_numpy_array(matrix):
        return np.asarray(np.linalg.solve(matrix, right))
    return cast(Array, array_namespace(matrix).linalg.solve_ex(matrix, right)[0])


def orthonormal_columns(matrix: Array) -> Array:
    """Return the columns (n, m) of a matrix after Gram-Schmidt orthonormalisation, up to signs.

    In libraries other than NumPy, three Cholesky factorisations are used, which do not wait for a GPU. A zero column
    then stays zero, and all columns are NaN if a factorisation fails.
    """
    if is_numpy_array(matrix):
        return np.asarray(np.linalg.qr(matrix)[0], dtype=np.float64)
    xp = array_namespace(matrix)
    for ridge in (1e-13, 1e-14, 1e-14):
        matrix = matrix / positive_or_one(xp.linalg.vector_norm(matrix, axis=0))
        factor, positive = inverse_cholesky_unchecked(add_to_diagonal(matrix.T @ matrix, ridge))
        matrix = xp.where(positive, matrix @ factor.mT, xp.nan)
    return matrix


def add_to_diagonal(matrices: Array, values: Array | float) -> Array:
    """Add values (..., n) to the diagonals of matrices (..., n, n) in place, and return the matrices."""
    if is_numpy_array(matrices):
        np.einsum("...ii->...i", matrices)[...] += values
    else:
        own: Any = matrices  # torch's own methods
        own.diagonal(dim1=-2, dim2=-1).add_(values)
    return matrices


def add_multiple(matrix: Array, factor: float, other: Array) -> Array:
    """Add ``factor * other`` to a matrix in place, and return the matrix."""
    if is_numpy_array(matrix):
        matrix += factor * other
    else:
        own: Any = matrix  # torch's own methods
        own.add_(other, alpha=factor)
    return matrix


def subtract_outer(matrix: Array, left: Array, right: Array) -> Array:
    """Subtract the outer product of vectors (n,) and (m,) from a matrix (n, m) in place, and return the matrix."""
    if 0 in matrix.shape:
        return matrix
    if is_numpy_array(matrix):
        return np.asarray(scipy.linalg.blas.dger(-1.0, right, left, a=matrix.T, overwrite_a=1).T)
    own: Any = matrix  # torch's own methods
    return cast(Array, own.addr_(left, right, alpha=-1.0))


def submatrix(matrix: Array, chosen: Ints) -> Array:
    """Return a copy (n, n) of the rows and columns `chosen` (n,) of a matrix."""
    if not is_numpy_array(matrix):
        return matrix[chosen[:, None], chosen]
    part = np.empty((len(chosen), len(chosen)))
    gather(matrix, chosen, part)
    return part


def few_times(matrix: Array, vectors: Array) -> Array:
    """Return the product (n, k) of a matrix (n, m) and `vectors` (m, k). A few columns are taken one by one."""
    if is_numpy_array(matrix) and vectors.shape[1] <= FEWEST:
        return np.stack([matrix @ vector for vector in vectors.T], axis=1)
    return matrix @ vectors


def unit_rows(rows: Array) -> tuple[Array, Array]:
    """Return the rows of an array (n, n_features), scaled to unit norm, and their norms (n,)."""
    xp = array_namespace(rows)
    norms = xp.linalg.vector_norm(rows, axis=1)
    return rows / positive_or_one(norms)[:, None], norms


def positive_or_one(values: Array) -> Array:
    """Return the values for use as divisors. Values that are not positive are replaced by 1."""
    xp = array_namespace(values)
    return xp.where(values > 0, values, xp.ones_like(values))


def contiguous(matrix: Array) -> Array:
    """Return the matrix with contiguous rows, which compiled CPU kernels require."""
    return np.ascontiguousarray(matrix) if is_numpy_array(matrix) else matrix


def sum_by_group(values: Array, group: Ints, n_groups: int) -> Array:
    """Return the sums (n, n_groups) of columns of `values` (n, m) by group. `group` (m,) holds the columns' groups."""
    if is_numpy_array(values):
        sums = np.zeros((len(values), max(n_groups, int(group.max(initial=0)) + 1)))
        add_by_group(values, group, sums)
        return sums
    own: Any = values  # torch's own methods
    return cast(Array, own.new_zeros(len(own), n_groups).index_add_(1, group, own))


def number_groups(order: Ints, differs: Mask) -> Ints:
    """Return the group number (n,) of each item. `order` (n,) sorts the items so that groups are contiguous.

    `differs` (n - 1,) is True where a sorted item and the one before it belong to different groups.
    """
    xp = array_namespace(order)
    group = xp.zeros_like(order)
    group[order[1:]] = xp.cumulative_sum(xp.astype(differs, order.dtype))
    return group


def first_indices(group: Ints) -> Ints:
    """Return the index (n_groups,) of the first member of each group, in the order of the groups' numbers."""
    if is_numpy_array(group):
        return np.asarray(np.unique(group, return_index=True)[1])
    xp = array_namespace(group)
    (firsts,) = xp.nonzero(first_of_group(group) == xp.arange(len(group), device=group.device))
    return cast(Ints, firsts[xp.argsort(group[firsts])])


def first_of_group(group: Ints) -> Ints:
    """Return, for each of n items, the index (n,) of the first item in its group. Group numbers are below n."""
    if is_numpy_array(group):
        _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
        return np.asarray(first[inverse])
    own: Any = group  # torch's own methods
    index = array_namespace(own).arange(len(own), device=own.device)
    return cast(Ints, own.new_full((len(own),), len(own)).scatter_reduce_(0, own, index, "amin")[own])


def robust_peak(values: Array) -> Array:
    """Return the maximum of values (n,) >= 0 in order of time, with outliers clipped. Without values it is zero.

    Without outliers this is the maximum. The latest two values are never clipped, because step 6 extrapolates them.
    """
    xp = array_namespace(values)
    if not len(values):
        return xp.sum(values)
    ordered = np.sort(values) if is_numpy_array(values) else values[xp.argsort(values)]
    upper, middle = _quantile(ordered, 0.9), _quantile(ordered, 0.5)
    fence, peak = upper + _FENCE * (upper - middle), ordered[-1]
    return xp.maximum(xp.where(peak > fence, fence, peak), xp.max(values[-2:]))


def _quantile(ordered: Array, share: float) -> Array:
    """Return a quantile of ascending values (n,) by linear interpolation. The level of the quantile is `share`."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return cast(Array, ordered[below] + (at - below) * (ordered[above] - ordered[below]))


def drawn_back(wanted: Array, start: Array, length: Array, reach: Array | float) -> Array:
    """Return the points `wanted` (..., n), after limiting their distance from the point `start` (n,) to `reach`.

    The parameter `length`, a scalar or (..., 1), gives the original distances, in any norm. A point that is too far
    away is moved straight towards `start`.
    """
    xp = array_namespace(wanted)
    too_far: Mask = length > reach
    share = xp.where(too_far, reach / xp.where(too_far, length, 1.0), 1.0)
    return xp.where(too_far, start + share * (wanted - start), wanted)
