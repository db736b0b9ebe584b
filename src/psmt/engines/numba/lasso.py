"""Exact non-negative lasso: the solver behind layer 1 (coding) and step 7 (recovery).

Both steps solve the same problem with unit-norm columns ``d_1 .. d_M``::

    minimise over a >= 0    1/2 ||x - sum_j a_j d_j||^2 + sum_j penalty_j a_j

The solver is a primal active-set method. It keeps a feasible ``a`` that is optimal on its support (the columns with
non-zero coefficients). In each step, it adds the columns that violate the Karush-Kuhn-Tucker (KKT) conditions most and
moves towards the optimum on the larger support. Columns whose coefficients reach zero on the way leave the support.
Each change of the support updates its Cholesky factor, or downdates it by Givens rotations. The method ends because the
objective falls at every step and there are finitely many supports. It stops when the duality gap is small enough.

The two steps differ only in how the gradient is computed. Coding solves thousands of problems with one dictionary, so
it uses the Gram matrix. Recovery has new columns in each problem, so it multiplies them by the residual and never forms
a Gram matrix.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from psmt.engines.contract import LassoResult
from psmt.engines.numba.fan_out import in_threads
from psmt.types import Array, Ints, Mask
from psmt.utils.jit import njit
from psmt.utils.threads import one_blas_thread

_CHUNK = 64  # targets that a thread solves one after the other; fixed, so that results do not depend on thread counts
_AT_ONCE = 8  # columns that may join the support in one step
_DEPENDENT = 1e-11  # a unit column with a smaller squared distance from the span of the support counts as part of it
_ROUNDING = 1e-14  # KKT violations below this fraction of the target's norm are rounding
_PLANES = 200  # largest number of multipliers tried for a bound; the duality gap ends the search long before
_FREE = 1e-300  # smaller penalties are raised to this value, so that they have a reciprocal
_NONE: Any = np.int64(0)  # typed zero: numba would compile functions a second time for the literal 0
_FAST = {"reassoc", "contract", "nsz"}

_Workspace: TypeAlias = tuple[Ints, Array, Array, Array, Array, Array, Array, Mask, Array, Array, Array, Array, Ints]
"""Work arrays of one thread, made once by `_workspace` and used for all its problems."""


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def _correlate(columns: Array, target: Array, out: Array) -> None:
    """Fill `out` (n_columns,) with the inner products of all columns with a target."""
    for j in range(out.size):
        out[j] = _dot(columns[j], target)


# Triangular systems are solved by indices rather than by rows: most supports are small, and a view of a row costs more
# than its product. The diagonal of a factor holds reciprocals, because a division costs as much as many products.


@njit(cache=True, nogil=True, fastmath=_FAST)
def _append(chol: Array, n: int, cross: Array) -> float:
    """Append a unit column with inner products `cross` to a Cholesky factor of n columns. Return the squared pivot."""
    pivot = 1.0
    for i in range(n):
        total = cross[i]
        for k in range(i):
            total -= chol[i, k] * chol[n, k]
        total *= chol[i, i]
        chol[n, i] = total
        pivot -= total * total
    chol[n, n] = 1.0 / np.sqrt(pivot) if pivot > 0.0 else 0.0
    return pivot


@njit(cache=True, nogil=True)
def _delete(chol: Array, n: int, row: int) -> None:
    """Remove the column at index `row` from the Cholesky factor of n columns, by Givens rotations."""
    for i in range(row, n - 1):
        for k in range(i + 1):
            chol[i, k] = chol[i + 1, k]
        chol[i, i + 1] = 1.0 / chol[i + 1, i + 1]
    for k in range(row, n - 1):
        inverse = 1.0 / np.sqrt(chol[k, k] * chol[k, k] + chol[k, k + 1] * chol[k, k + 1])
        c, s = chol[k, k] * inverse, chol[k, k + 1] * inverse
        chol[k, k] = inverse
        for i in range(k + 1, n - 1):
            left, right = chol[i, k], chol[i, k + 1]
            chol[i, k] = c * left + s * right
            chol[i, k + 1] = c * right - s * left


@njit(cache=True, nogil=True, fastmath=_FAST)
def _solve(chol: Array, n: int, rhs: Array, out: Array) -> None:
    """Write the solution of ``chol chol' out = rhs`` to `out`, using the leading n rows and columns of `chol`."""
    for i in range(n):
        total = rhs[i]
        for k in range(i):
            total -= chol[i, k] * out[k]
        out[i] = total * chol[i, i]
    for i in range(n - 1, -1, -1):
        out[i] *= chol[i, i]
        for k in range(i):
            out[k] -= chol[i, k] * out[i]


@njit(cache=True, nogil=True)
def _cross_products(columns: Array, gram: Array, support: Ints, n: int, j: int, out: Array) -> None:
    """Fill `out` with the inner products of column j with the n columns of the support."""
    if gram.shape[0] > 0:
        for i in range(n):
            out[i] = gram[support[i], j]  # the rows of the support are the ones in the cache
    else:
        for i in range(n):
            out[i] = _dot(columns[j], columns[support[i]])


@njit(cache=True, nogil=True, fastmath=_FAST)
def subtract_rows(rows: Array, support: Ints, values: Array, n: int, out: Array) -> None:
    """Subtract the sum of ``values[i] * rows[support[i]]`` for i < n from `out`, four rows at a time for speed."""
    for i in range(0, n, 4):
        # Indices beyond the last row repeat the last row, times zero.
        i1, i2, i3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        row0, row1, row2, row3 = rows[support[i]], rows[support[i1]], rows[support[i2]], rows[support[i3]]
        value0 = values[i]
        value1 = values[i1] if i1 == i + 1 else 0.0
        value2 = values[i2] if i2 == i + 2 else 0.0
        value3 = values[i3] if i3 == i + 3 else 0.0
        for j in range(out.size):
            out[j] -= (value0 * row0[j] + value1 * row1[j]) + (value2 * row2[j] + value3 * row3[j])


@njit(cache=True, nogil=True, fastmath=_FAST)
def _kkt_violation(columns: Array, gram: Array, target: Array, penalty: Array, n: int, work: _Workspace) -> None:
    """Compute the KKT violations ``D'(x - D a) - penalty`` of all columns. An empty Gram matrix is not used.

    The support, its coefficients a and the result are in `work`. At the optimum, the result is zero on the support and
    nowhere positive.
    """
    support, values, _, _, lead, out, _, _, _, _, _, residual, _ = work
    if gram.shape[0] > 0 or n == 0:
        for j in range(out.size):
            out[j] = lead[j]
        subtract_rows(gram, support, values, n, out)
    else:
        for i in range(target.size):
            residual[i] = target[i]
        subtract_rows(columns, support, values, n, residual)
        _correlate(columns, residual, out)
        for j in range(out.size):
            out[j] -= penalty[j]


@njit(cache=True, nogil=True)
def _largest(values: Array) -> float:
    """Return the largest value, or zero if none is positive. Floats are compared as integers, which is fast."""
    most, bits = np.int64(0), values.view(np.int64)
    for j in range(bits.size):
        most = max(most, bits[j])
    return np.int64(most).view(np.float64)


@njit(cache=True, nogil=True)
def _worst_violators(violation: Array, inside: Mask, least: float, found: Ints) -> int:
    """Fill `found` with columns of largest KKT violation, above `least` and not in the support. Return their number."""
    n = 0
    for first in range(0, violation.size, 16):
        last = min(first + 16, violation.size)
        some = 0
        for j in range(first, last):
            some += violation[j] > least
        if some == 0:
            continue
        for j in range(first, last):
            if violation[j] > least and not inside[j]:
                at = n
                if n < found.size:
                    n += 1
                elif violation[j] <= violation[found[n - 1]]:
                    continue
                else:
                    at = n - 1
                while at > 0 and violation[found[at - 1]] < violation[j]:
                    found[at] = found[at - 1]
                    at -= 1
                found[at] = j
    return n


@njit(cache=True, nogil=True)
def _drop(chol: Array, support: Ints, values: Array, inside: Mask, n: int, row: int) -> int:
    """Remove the column at position `row` from the support, and return the new size of the support."""
    _delete(chol, n, row)
    inside[support[row]] = False
    for i in range(row, n - 1):
        support[i] = support[i + 1]
        values[i] = values[i + 1]
    return n - 1


@njit(cache=True, nogil=True)
def _active_set(
    columns: Array, gram: Array, target: Array, corr: Array, penalty: Array, tol: float, n: int, work: _Workspace
) -> tuple[int, float]:
    """Solve one problem. Return the size of the support and the duality gap.

    On entry, `work` holds the n columns of the support to start from. On return, it holds the support and the
    coefficients of the solution. `corr` (n_columns,) are the inner products of all columns with the target.
    """
    support, values, inverse, chol, lead, violation, relative, inside, rhs, goal, cross, _, candidates = work
    n_columns = violation.size
    limit = chol.shape[0] - 1
    square = _dot(target, target)
    rounding = _ROUNDING * np.sqrt(square)
    for j in range(n_columns):
        lead[j] = corr[j] - penalty[j]

    # Warm start from the optimum on the given support, without the members that would be negative there.
    given, n = n, _NONE
    for i in range(given):
        j = support[i]
        _cross_products(columns, gram, support, n, j, cross)
        if not inside[j] and n < limit and _append(chol, n, cross) > _DEPENDENT:
            support[n], inside[j] = j, True
            n += 1
    clean = False
    while not clean:
        for i in range(n):
            rhs[i] = lead[support[i]]
        _solve(chol, n, rhs, values)
        clean = True
        for i in range(n - 1, -1, -1):
            if values[i] <= 0.0:
                n = _drop(chol, support, values, inside, n, i)
                clean = False

    gap = np.inf
    for _ in range(20 * (n_columns + limit)):
        _kkt_violation(columns, gram, target, penalty, n, work)
        for j in range(n_columns):
            relative[j] = violation[j] * inverse[j]
        # The residual is dual feasible once it is scaled so that no correlation exceeds its penalty.
        largest = _largest(violation)
        scale = 1.0 / (1.0 + _largest(relative))
        cost, fitted, slack = 0.0, 0.0, 0.0
        for i in range(n):
            j = support[i]
            cost += values[i] * penalty[j]
            fitted += values[i] * corr[j]
            slack += values[i] * violation[j]
        rest = max(square - fitted - slack - cost, 0.0)
        gap = 0.5 * rest + cost - scale * (square - fitted) + 0.5 * scale * scale * rest
        if gap <= tol * 0.5 * square or largest <= rounding:
            break

        added = 0
        least = max(0.5 * largest, rounding)
        for c in range(_worst_violators(violation, inside, least, candidates)):
            best = candidates[c]
            _cross_products(columns, gram, support, n, best, cross)
            if n < limit and _append(chol, n, cross) > _DEPENDENT:
                support[n], values[n], inside[best] = best, 0.0, True
                n += 1
                added += 1
            elif added == 0:
                # The column lies in the span of the support. It replaces the member that it drives to zero first, which
                # leaves the fit unchanged and lowers the penalty.
                _solve(chol, n, cross, goal)
                out, step = _NONE - 1, np.inf
                for i in range(n):
                    if goal[i] > 0.0 and values[i] < step * goal[i]:
                        out, step = i, values[i] / goal[i]
                if out < 0:
                    continue
                for i in range(n):
                    values[i] = max(values[i] - step * goal[i], 0.0)
                n = _drop(chol, support, values, inside, n, out)
                _cross_products(columns, gram, support, n, best, cross)
                if _append(chol, n, cross) > _DEPENDENT:
                    support[n], values[n], inside[best] = best, step, True
                    n += 1
                added += 1
        if added == 0:
            break

        # Walk to the optimum of the new support. Start again each time a member reaches zero on the way.
        first = 0
        while first >= 0:
            for i in range(n):
                rhs[i] = lead[support[i]]
            _solve(chol, n, rhs, goal)
            step, first = 1.0, -1
            for i in range(n):
                if goal[i] <= 0.0 and values[i] <= step * (values[i] - goal[i]):
                    step, first = values[i] / (values[i] - goal[i]) if goal[i] < values[i] else 0.0, i
            for i in range(n - 1, -1, -1):
                values[i] += step * (goal[i] - values[i])
                if i == first or (goal[i] <= 0.0 and values[i] <= 0.0):
                    n = _drop(chol, support, values, inside, n, i)
    for i in range(n):
        inside[support[i]] = False
    return n, gap


@njit(cache=True, nogil=True)
def _workspace(columns: Array, penalty: Array) -> _Workspace:
    n_columns, n_rows = columns.shape
    limit = min(n_columns, n_rows) + 1
    return (
        np.empty(limit, dtype=np.int64),  # support
        np.empty(limit),  # values: the coefficients of the support
        1.0 / np.maximum(penalty, _FREE),  # inverse
        np.empty((limit, limit)),  # chol: the Cholesky factor of the support
        np.empty(n_columns),  # lead
        np.empty(n_columns),  # violation
        np.empty(n_columns),  # relative: violations over penalties
        np.zeros(n_columns, dtype=np.bool_),  # inside: whether a column is in the support; False between problems
        np.empty(limit),  # rhs
        np.empty(limit),  # goal
        np.empty(limit),  # cross
        np.empty(n_rows),  # residual
        np.empty(_AT_ONCE, dtype=np.int64),  # candidates
    )


@njit(cache=True, nogil=True)
def _solve_in_turn(
    columns: Array, gram: Array, targets: Array, corr: Array, penalty: Array, tol: float, start: Array, coef: Array
) -> Array:
    """Write the lasso coefficients (n, n_columns) of n targets to `coef`, and return their duality gaps (n,).

    The search for the first target begins with the support of `start` (n_columns,), which may be an empty array.
    """
    work = _workspace(columns, penalty)
    support, values = work[:2]
    gaps, n, last = np.empty(targets.shape[0]), _NONE, 0.0
    for j in range(start.size):
        if start[j] > 0.0 and n < support.size - 1:
            support[n] = j
            n += 1
    for t in range(targets.shape[0]):
        square = _dot(targets[t], targets[t])
        # A target that is close to the one before it, as frames of a film are, has a similar support.
        if t > 0 and 2.0 * _dot(targets[t], targets[t - 1]) < 0.5 * square + last:
            n = _NONE
        last = square
        n, gaps[t] = _active_set(columns, gram, targets[t], corr[t], penalty, tol, n, work)
        for i in range(n):
            coef[t, support[i]] = values[i]
    return gaps


def gram_matrix(columns: Array) -> Array:
    """Return the Gram matrix (n_columns, n_columns) of columns that are given as rows (n_columns, n_features)."""
    with one_blas_thread():
        return np.asarray(columns @ columns.T)


def solve_many(
    columns: Array,
    targets: Array,
    penalty: float | Array,
    *,
    tol: float = 1e-12,
    norms: Array | None = None,
    gram: Array | None = None,
) -> LassoResult:
    """Return the coefficients (n_targets, n_columns) and duality gaps (n_targets,) of lassos with the same columns.

    The columns (n_columns, n_features), one per row, have unit norm. A zero column with a positive penalty is never
    used. If a target is close to the one before it, its search starts from the support of the previous solution. Each
    gap is at most ``tol * ||x||^2 / 2``, that is, `tol` times the objective at zero. If `norms` (n_columns,) are given,
    the coefficients are divided by them. `gram` is the `gram_matrix` of the columns; it is computed if it is not given.
    """
    columns, targets = _as_rows(columns), _as_rows(targets)
    penalties = _penalties(penalty, columns)
    gram = gram_matrix(columns) if gram is None else gram
    coef, gaps, nothing = np.zeros((len(targets), len(columns))), np.zeros(len(targets)), np.empty(0)

    def solve_chunk(part: slice) -> None:
        corr = targets[part] @ columns.T
        gaps[part] = _solve_in_turn(columns, gram, targets[part], corr, penalties, tol, nothing, coef[part])
        if norms is not None:
            coef[part] /= norms

    in_threads(solve_chunk, len(targets), _CHUNK)
    return LassoResult(coef, gaps)


def solve_one(
    columns: Array,
    target: Array,
    penalty: float | Array,
    *,
    tol: float = 1e-12,
    start: Array | None = None,
    gram: Array | None = None,
) -> LassoResult:
    """Return the coefficients (n_columns,) and the duality gap of one lasso.

    `start` is an earlier solution (n_columns,) from whose support the search begins. The other parameters are those of
    `solve_many`, except that no Gram matrix is computed if `gram` is not given.
    """
    columns, target = _as_rows(columns), _as_rows(target)
    coef, corr = np.zeros((1, len(columns))), np.empty((1, len(columns)))
    _correlate(columns, target, corr[0])
    start = np.empty(0) if start is None else _as_rows(start)
    gram = np.empty((0, 0)) if gram is None else gram
    (gap,) = _solve_in_turn(columns, gram, target[None], corr, _penalties(penalty, columns), tol, start, coef)
    return LassoResult(coef[0], gap)


def solve_bounded(
    columns: Array, target: Array, penalty: float, worth: Array, limit: float, *, tol: float, start: Array
) -> Array:
    """Return the coefficients (n_columns,) of one lasso with the bound ``coef @ worth <= limit``.

    A Lagrange multiplier penalises ``coef @ worth``. This sum falls as the multiplier rises, in places by jumps. So the
    search keeps two solutions, one that exceeds the limit and one that does not, and combines them to reach the limit.
    The multiplier is found by cutting planes on the dual function, which maps a multiplier to the minimum of the
    penalised cost. Each solution gives a line that is nowhere below the dual function, and the next multiplier is where
    the lines of the two solutions intersect. No dual value exceeds the minimum under the bound. So the search stops
    when the cost of the combination exceeds the largest dual value by at most `tol` times the cost of zero
    coefficients. The search begins with the support of `start` (n_columns,), an earlier solution.
    """
    support = start

    def solve(multiplier: float) -> Array:
        nonlocal support  # each solution is close to the previous one, so the previous support is tried first
        support = solve_one(columns, target, penalty + multiplier * worth, tol=tol, start=support).coef
        return support

    def cost(coef: Array) -> float:
        return 0.5 * float(np.sum((coef @ columns - target) ** 2)) + penalty * float(coef.sum())

    found = infeasible = solve(0.0)
    if float(found @ worth) <= limit:
        return found
    feasible, lower = np.zeros_like(found), cost(found)
    tolerance = tol * cost(feasible)
    for _ in range(_PLANES):
        spent = float(feasible @ worth)
        span = float(infeasible @ worth) - spent
        found = feasible + (limit - spent) / span * (infeasible - feasible)
        if cost(found) - lower <= tolerance:
            break
        multiplier = (cost(feasible) - cost(infeasible)) / span
        fresh = solve(multiplier)
        excess = float(fresh @ worth - limit)
        lower = max(lower, cost(fresh) + multiplier * excess)
        infeasible, feasible = (fresh, feasible) if excess > 0 else (infeasible, fresh)
    return found


def _as_rows(values: Array) -> Array:
    # Writable, because numba compiles everything once more for read-only arrays.
    return np.require(values, np.float64, ["C", "W"])


def _penalties(penalty: float | Array, columns: Array) -> Array:
    return np.broadcast_to(np.asarray(penalty, dtype=np.float64), columns.shape[:1]).copy()
