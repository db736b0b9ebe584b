"""Exact non-negative lasso: the solver behind layer 1 (coding) and step 7 (recovery).

Both layers ask the same question of unit-norm columns ``d_1 .. d_M``::

    minimise over a >= 0    1/2 ||x - sum_j a_j d_j||^2 + sum_j penalty_j a_j

The solver is a primal active set. It holds a feasible ``a`` that is optimal on its own support, adds the columns
that violate the optimality conditions most, several at a time, and walks towards the new optimum, dropping what
reaches zero on the way. The objective falls at every step and there are finitely many supports, so it ends; it
stops by the duality gap. The layers differ only in how the gradient is obtained: coding solves thousands of
problems with one dictionary and reads it off the Gram matrix; recovery has new columns in each problem, multiplies
them by the residual and never forms a Gram matrix.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

_CHUNK = 64
"""Targets coded one after the other by one thread. Fixed, so that results do not depend on the thread count."""

_BLOCK = 64 * _CHUNK
"""Targets whose correlations with all columns are in memory at a time."""

_AT_ONCE = 8
"""Columns that may join the support in one step."""

_DEPENDENT = 1e-11
"""A unit column closer (squared) than this to the span of the support is treated as lying in it."""

_ROUNDING = 1e-14
"""Violations of optimality below this fraction of the largest correlation are rounding."""

_FAST = {"reassoc", "contract", "nsz"}


class LassoResult(NamedTuple):
    """Coefficients and the duality gaps that vouch for them."""

    coef: Array
    gap: Array


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


# Small triangular systems are solved by indices rather than by rows: a view of a row costs more than its product.


@njit(cache=True, nogil=True, fastmath=_FAST)
def _append(chol, n, cross, square):
    """Squared pivot of one more column in the Cholesky factor of n columns; the row is written in any case."""
    pivot = square
    for i in range(n):
        total = cross[i]
        for k in range(i):
            total -= chol[i, k] * chol[n, k]
        total /= chol[i, i]
        chol[n, i] = total
        pivot -= total * total
    chol[n, n] = np.sqrt(pivot) if pivot > 0.0 else 0.0
    return pivot


@njit(cache=True, nogil=True)
def _delete(chol, n, row):
    """Take one column out of the Cholesky factor of n columns, by Givens rotations."""
    for i in range(row, n - 1):
        for k in range(i + 2):
            chol[i, k] = chol[i + 1, k]
    for k in range(row, n - 1):
        norm = np.hypot(chol[k, k], chol[k, k + 1])
        c, s = chol[k, k] / norm, chol[k, k + 1] / norm
        chol[k, k] = norm
        for i in range(k + 1, n - 1):
            left, right = chol[i, k], chol[i, k + 1]
            chol[i, k] = c * left + s * right
            chol[i, k + 1] = c * right - s * left


@njit(cache=True, nogil=True, fastmath=_FAST)
def _solve(chol, n, rhs, out):
    """Write the solution of (chol chol') out = rhs for the leading n unknowns."""
    for i in range(n):
        total = rhs[i]
        for k in range(i):
            total -= chol[i, k] * out[k]
        out[i] = total / chol[i, i]
    for i in range(n - 1, -1, -1):
        out[i] /= chol[i, i]
        for k in range(i):
            out[k] -= chol[i, k] * out[i]


@njit(cache=True, nogil=True)
def _cross_products(columns, gram, support, n, j, out):
    """Write the inner products of column j with the n columns of the support."""
    if gram.shape[0] > 0:
        for i in range(n):
            out[i] = gram[j, support[i]]
    else:
        for i in range(n):
            out[i] = _dot(columns[j], columns[support[i]])


@njit(cache=True, nogil=True, fastmath=_FAST)
def _gradient(columns, gram, target, corr, support, values, n, residual, out):
    """Write D'(x - D a), from the Gram matrix where there is one, else from the residual."""
    if gram.shape[0] > 0:
        out[:] = corr
        for i in range(n):
            row, value = gram[support[i]], values[i]
            for j in range(out.size):
                out[j] -= value * row[j]
    else:
        residual[:] = target
        for i in range(n):
            column, value = columns[support[i]], values[i]
            for j in range(residual.size):
                residual[j] -= value * column[j]
        for j in range(out.size):
            out[j] = _dot(columns[j], residual)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def _excess(grad, penalty):
    """Subtract the penalty from the gradient, in place; return the largest excess and the largest ratio of the two.

    Where a penalty is zero, so is its part in the ratio: the violation decides there.
    """
    most, ratio = -np.inf, 0.0
    for j in range(grad.size):
        price = penalty[j]
        ratio = max(ratio, grad[j] / price if price > 0.0 else 0.0)
        excess = grad[j] - price
        most = max(most, excess)
        grad[j] = excess
    return most, ratio


@njit(cache=True, nogil=True)
def _worst(excess, inside, least, found):
    """Write the columns outside the support whose excess is above `least`, largest first; return how many."""
    n = 0
    for j in range(excess.size):
        if excess[j] > least and not inside[j]:
            at = n
            if n < found.size:
                n += 1
            elif excess[j] <= excess[found[n - 1]]:
                continue
            else:
                at = n - 1
            while at > 0 and excess[found[at - 1]] < excess[j]:
                found[at] = found[at - 1]
                at -= 1
            found[at] = j
    return n


@njit(cache=True, nogil=True)
def _drop(chol, support, values, inside, n, row):
    _delete(chol, n, row)
    inside[support[row]] = False
    for i in range(row, n - 1):
        support[i] = support[i + 1]
        values[i] = values[i + 1]
    return n - 1


@njit(cache=True, nogil=True)
def _active_set(columns, gram, target, corr, square, penalty, tol, support, values, n, work):
    """Solve one problem in place; return the size of the support and the duality gap.

    `support[:n]` holds the columns to start from. `work` holds the arrays that a thread uses again and again.
    """
    chol, grad, inside, rhs, goal, cross, residual, candidates = work
    n_columns = grad.size
    limit = chol.shape[0] - 1
    largest, free = 0.0, False
    for j in range(n_columns):
        largest = max(largest, abs(corr[j]))
        free |= penalty[j] == 0.0
        inside[j] = False

    # Warm start: the optimum on the given support, less what would be negative there.
    given, n = n, 0
    for i in range(given):
        j = support[i]
        _cross_products(columns, gram, support, n, j, cross)
        if not inside[j] and n < limit and _append(chol, n, cross, 1.0) > _DEPENDENT:
            support[n], inside[j] = j, True
            n += 1
    clean = False
    while not clean:
        for i in range(n):
            rhs[i] = corr[support[i]] - penalty[support[i]]
        _solve(chol, n, rhs, values)
        clean = True
        for i in range(n - 1, -1, -1):
            if values[i] <= 0.0:
                n = _drop(chol, support, values, inside, n, i)
                clean = False

    gap = np.inf
    for _ in range(20 * (n_columns + limit)):
        _gradient(columns, gram, target, corr, support, values, n, residual, grad)

        # The residual, scaled until no column correlates with it by more than its penalty, is dual feasible.
        violation, ratio = _excess(grad, penalty)
        scale = 1.0 if ratio <= 1.0 else 1.0 / ratio
        if free and violation > 0.0:
            scale = 0.0
        cost, fitted, slack = 0.0, 0.0, 0.0
        for i in range(n):
            j = support[i]
            cost += values[i] * penalty[j]
            fitted += values[i] * corr[j]
            slack += values[i] * grad[j]
        rest = max(square - fitted - slack - cost, 0.0)
        gap = 0.5 * rest + cost - scale * (square - fitted) + 0.5 * scale * scale * rest
        if gap <= tol * 0.5 * square or violation <= _ROUNDING * largest:
            break

        added = 0
        least = max(0.5 * violation, _ROUNDING * largest)
        for c in range(_worst(grad, inside, least, candidates)):
            best = candidates[c]
            _cross_products(columns, gram, support, n, best, cross)
            if n < limit and _append(chol, n, cross, 1.0) > _DEPENDENT:
                support[n], values[n], inside[best] = best, 0.0, True
                n += 1
                added += 1
            elif added == 0:
                # The column lies in the span of the support: it trades places with the member that it
                # drives to zero first. The fit stays, the penalty falls.
                _solve(chol, n, cross, goal)
                out, step = -1, np.inf
                for i in range(n):
                    if goal[i] > 0.0 and values[i] < step * goal[i]:
                        out, step = i, values[i] / goal[i]
                if out < 0:
                    continue
                for i in range(n):
                    values[i] = max(values[i] - step * goal[i], 0.0)
                n = _drop(chol, support, values, inside, n, out)
                _cross_products(columns, gram, support, n, best, cross)
                if _append(chol, n, cross, 1.0) > _DEPENDENT:
                    support[n], values[n], inside[best] = best, step, True
                    n += 1
                added += 1
        if added == 0:
            break

        # Walk to the optimum of the new support, as often as a member reaches zero on the way.
        first = 0
        while first >= 0:
            for i in range(n):
                rhs[i] = corr[support[i]] - penalty[support[i]]
            _solve(chol, n, rhs, goal)
            step, first = 1.0, -1
            for i in range(n):
                if goal[i] <= 0.0 and values[i] <= step * (values[i] - goal[i]):
                    step, first = values[i] / (values[i] - goal[i]) if goal[i] < values[i] else 0.0, i
            for i in range(n - 1, -1, -1):
                values[i] += step * (goal[i] - values[i])
                if i == first or (goal[i] <= 0.0 and values[i] <= 0.0):
                    n = _drop(chol, support, values, inside, n, i)
    return n, gap


@njit(cache=True, nogil=True)
def _workspace(n_columns, n_rows):
    limit = min(n_columns, n_rows) + 1
    return (
        np.empty((limit, limit)),
        np.empty(n_columns),
        np.zeros(n_columns, dtype=np.bool_),
        np.empty(limit),
        np.empty(limit),
        np.empty(limit),
        np.empty(n_rows),
        np.empty(_AT_ONCE, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def _solve_chunk(columns, gram, targets, corr, penalty, tol, coef, gaps):
    work = _workspace(columns.shape[0], columns.shape[1])
    support = np.empty(work[3].size, dtype=np.int64)
    values = np.empty(work[3].size)
    n, last = 0, 0.0
    for t in range(targets.shape[0]):
        square = _dot(targets[t], targets[t])
        # Where a target is close to the one before it, as frames of a film are, so is its support.
        if t > 0 and 2.0 * _dot(targets[t], targets[t - 1]) < 0.5 * square + last:
            n = 0
        last = square
        n, gaps[t] = _active_set(columns, gram, targets[t], corr[t], square, penalty, tol, support, values, n, work)
        for i in range(n):
            coef[t, support[i]] = values[i]


@njit(cache=True, nogil=True)
def _solve_single(columns, target, penalty, tol, start, coef):
    n_columns, n_rows = columns.shape
    corr = np.empty(n_columns)
    for j in range(n_columns):
        corr[j] = _dot(columns[j], target)
    work = _workspace(n_columns, n_rows)
    support = np.empty(work[3].size, dtype=np.int64)
    n = 0
    for j in range(n_columns):
        if start[j] > 0.0 and n < support.size - 1:
            support[n] = j
            n += 1
    values = np.empty(work[3].size)
    n, gap = _active_set(
        columns,
        np.empty((0, 0)),
        target,
        corr,
        _dot(target, target),
        penalty,
        tol,
        support,
        values,
        n,
        work,
    )
    for i in range(n):
        coef[support[i]] = values[i]
    return gap


def solve_many(columns: Array, targets: Array, penalty: float | Array, *, tol: float = 1e-12) -> LassoResult:
    """Coefficients (n_targets, n_columns) and duality gaps (n_targets,) of many problems with the same columns.

    Parameters
    ----------
    columns : (n_columns, n_features) array
        One unit-norm column of the problem per row.
    targets : (n_targets, n_features) array
        A target that is close to the one before it starts from that one's support.
    penalty : float or (n_columns,) array
        Price of a unit of each coefficient, >= 0.
    tol : float
        Stop when the duality gap is below ``tol * ||x||^2 / 2``, that is relative to the objective at zero.
    """
    columns, targets = _as_rows(columns), _as_rows(targets)
    prices = _prices(penalty, columns)
    coef = np.zeros((targets.shape[0], columns.shape[0]))
    gaps = np.zeros(targets.shape[0])
    gram = columns @ columns.T

    # One product for many targets, then plain threads for the kernels, which release the GIL: BLAS and we never
    # compete for the cores, and numba's own threads would add to the compile time.
    with ThreadPoolExecutor(get_num_threads()) as pool:
        for block in range(0, len(targets), _BLOCK):
            corr = targets[block : block + _BLOCK] @ columns.T

            def solve_chunk(first: int, block: int = block, corr: Array = corr) -> None:
                part = slice(block + first, block + min(first + _CHUNK, len(corr)))
                rows = corr[first : first + _CHUNK]
                _solve_chunk(columns, gram, targets[part], rows, prices, tol, coef[part], gaps[part])

            list(pool.map(solve_chunk, range(0, len(corr), _CHUNK)))
    return LassoResult(coef, gaps)


def solve_one(
    columns: Array, target: Array, penalty: float | Array, *, tol: float = 1e-12, start: Array | None = None
) -> LassoResult:
    """Coefficients (n_columns,) and duality gap of one problem, without forming a Gram matrix.

    `start` is an earlier solution (n_columns,) whose support is tried first. The other parameters are those of
    `solve_many`.
    """
    columns, target = _as_rows(columns), _as_rows(target)
    coef = np.zeros(columns.shape[0])
    start = coef if start is None else _as_rows(start)
    gap = _solve_single(columns, target, _prices(penalty, columns), tol, start, coef)
    return LassoResult(coef, gap)


def unit_columns(columns: Array) -> tuple[Array, Array]:
    """Unit-norm columns (n_columns, n_features) and the norms (n_columns,) they had; zero columns stay zero."""
    norms = np.linalg.norm(columns, axis=1)
    return columns / np.where(norms > 0, norms, 1.0)[:, None], norms


def _as_rows(values: Array) -> Array:
    # Writable, because numba compiles everything anew for read-only arrays.
    return np.require(values, np.float64, ["C", "W"])


def _prices(penalty: float | Array, columns: Array) -> Array:
    return np.broadcast_to(np.asarray(penalty, dtype=np.float64), columns.shape[:1]).copy()
