"""Step 7: from a point of the embedding back to a non-negative code.

With ``z`` the norms of P's columns, the paper asks for ``min ||P a - b||^2 + lam z'a`` over ``a >= 0``. In the
variables ``z_j a_j`` that is a non-negative lasso with unit columns and the penalty ``lam / 2``. There are two
departures from the paper, and each can be switched off (`activity_limit` of None, `merge_parallel=False`):

- The total activity is bounded, ``sum(a) <= activity``. An atom that P hardly shows (tiny ``z_j``) can explain a point
  only by an extreme activity, and the penalty does not prevent that, as it is scaled by ``z`` too: near-static windows
  gave predictions of a hundred times the patch's variance. The model sets the bound to the largest activity that
  extrapolated codes of its window can have. Atoms have unit norm, so the norm of the decoded patch is bounded as well.
- Atoms with parallel columns in P are recovered together, in their proportion in P, which is the solution of least
  norm. These are atoms that occur in the window in fixed proportion only, such as those of a single unusual frame. The
  paper's problem does not determine which of them to use, so rounding would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from psmt.engines import engine_for
from psmt.engines.contract import Bound, Engine
from psmt.extrapolation import Extrapolation
from psmt.numerics.arrays import (
    Namespace,
    array_namespace,
    contiguous,
    first_indices,
    first_of_group,
    sum_by_group,
    unit_columns,
)
from psmt.types import Array, Ints, Mask
from psmt.utils.constraints import check_real

ACTIVITY_FACTOR = 2.0
"""A straight line through two codes of the window, continued by one step, has at most twice the peak activity."""

PARALLEL = 1e-6
"""Squared distance of unit columns that count as parallel. In exact embeddings of a film it is below 1e-18 or above
1e-4; a tracked embedding is not exact."""

_Work = Callable[..., tuple[Array, ...]]

_FEW = 16
"""Up to this number of points, recovery is captured work: it is repeated for the same number of points."""


class Recovery:
    """Codes from points of one embedding.

    Parameters
    ----------
    embedding : (n_components, n_features) array
        P, an array of the engine. An atom that did not vary in the window has a zero column: the point does not depend
        on it, so it keeps its activity.
    lam : float or sequence of float
        Sparsity (L1) penalty, >= 0. For a sequence, results have a row for each penalty.
    activity : float or () array, default infinite
        Bound on the sum of a code, > 0.
    merge_parallel : bool, default True
        Recover atoms with parallel columns together; if False, rounding decides which of them is used.
    tol : float
        Stop when the duality gap is below ``tol * ||b||^2 / 2``. At 1e-12 the activities of atoms that P hardly shows
        are still uncertain by some hundredths.
    engine : Engine, optional
        Solves the lassos; by default that of the CPU.
    """

    def __init__(
        self,
        embedding: Array,
        lam: float | Sequence[float],
        *,
        activity: Array | float = np.inf,
        merge_parallel: bool = True,
        tol: float = 1e-14,
        engine: Engine | None = None,
    ) -> None:
        self.engine = engine_for("cpu") if engine is None else engine
        self.embedding = embedding
        self.activity = self.engine.array(activity)
        self._penalties = _penalties(self.engine, *(check_real("lam", value) for value in np.ravel(lam).tolist()))
        self._shape = np.shape(lam)
        self._tol = tol
        self._merge_parallel = merge_parallel
        # Captured work poses its columns itself, so that this is captured too.
        self._posed = None if self.engine.captures else pose_columns(embedding, merge_parallel=merge_parallel)

    def __call__(self, point: Array, current: Array | None = None) -> Array:
        """Code (n_features,) of a point (n_components,), given the current code (zero for None)."""
        return self._each(_recover, point, current)

    def change(self, shift: Array, current: Array | None = None) -> Array:
        """Signed change (n_features,) of the current code that moves its point by `shift` (n_components,).

        Step 7 for a change: ``min ||P d - shift||^2 + lam z'|d|``, a lasso with the columns of both signs. The bound
        holds for the activity of the code and its change together.
        """
        return self._each(_recover_change, shift, current)

    def many(self, points: Array, currents: Array) -> Array:
        """Codes (n, n_features) of points (n, n_components) and current codes (n, n_features), for a single lam."""
        return self._do(_recover, points, currents)

    def _each(self, work: _Work, point: Array, current: Array | None) -> Array:
        """The results (.., n_features) of a point with each of the penalties."""
        xp, n = array_namespace(point), len(self._penalties)
        code = xp.zeros_like(self.embedding[0]) if current is None else current
        found = self._do(work, xp.broadcast_to(point, (n, len(point))), xp.broadcast_to(code, (n, len(code))))
        return xp.reshape(found, (*self._shape, -1))

    def _do(self, work: _Work, points: Array, currents: Array) -> Array:
        given = self._penalties, self.activity, points, currents
        if self._posed is not None:
            return work(self._posed, *given, engine=self.engine, tol=self._tol)[0]
        masked = _captured(self.engine, work) if len(points) <= _FEW else _masked(work)
        how = {"merge_parallel": self._merge_parallel, "engine": self.engine, "tol": self._tol}
        return masked(self.embedding, *given, **how)[0]


class PosedColumns(NamedTuple):
    """The columns of P as the lasso uses them."""

    columns: Array
    """Unit columns (n_columns, n_components); if merged, one for all that are parallel to it."""
    shown: Mask
    """Atoms (n_features,) that have a column in P."""
    group: Ints
    """The column (n_features,) of each atom; arbitrary for those that are not shown."""
    share: Array
    """Activity of each atom (n_features,) per unit of its column; zero for those that are not shown."""
    total: Array
    """Total activity (n_columns,) of the atoms that share a column, per unit of it."""


def pose_columns(embedding: Array, *, merge_parallel: bool = True) -> PosedColumns:
    """The non-zero columns of P (n_components, n_features), each direction once if merged."""
    xp = array_namespace(embedding)
    unit, norms = unit_columns(contiguous(embedding.T))
    shown = norms > 0
    (atoms,) = xp.nonzero(shown)
    columns = unit[atoms]
    own = _parallel_groups(columns) if merge_parallel else _indices(columns)
    group = xp.astype(shown, own.dtype)
    group[atoms] = own
    return _posed(columns[first_indices(own)], norms, group)


def pose_columns_masked(embedding: Array, *, merge_parallel: bool = True) -> PosedColumns:
    """The same with as many columns as atoms: surplus columns are zero, and no solution uses them.

    All embeddings of one size then give problems of one shape, so that captured work need not wait for the host.
    """
    xp = array_namespace(embedding)
    unit, norms = unit_columns(embedding.T)
    own = _indices(unit)
    group = first_of_group(_parallel_groups(unit, norms == 0)) if merge_parallel else own
    is_first = group == own
    return _posed(xp.where(is_first[:, None], unit, 0.0), norms, group)


def _posed(columns: Array, norms: Array, group: Ints) -> PosedColumns:
    xp, shown = array_namespace(norms), norms > 0
    squares = sum_by_group((norms**2)[None], group, max(len(columns), 1))[0][group]
    share = xp.where(shown, norms / xp.where(shown, squares, 1.0), 0.0)
    return PosedColumns(columns, shown, group, share, sum_by_group(share[None], group, len(columns))[0])


def _parallel_groups(columns: Array, zero: Mask | None = None) -> Ints:
    """The group (n,) of parallel columns that each unit column (n, n_components) belongs to; zero columns are alone."""
    xp = array_namespace(columns)
    # Sorted by their products with any vector, parallel columns are neighbours.
    order = xp.argsort(columns @ _probe(xp, columns.shape[1], columns.device), stable=True)
    ordered = columns[order]
    differs = xp.sum((ordered[1:] - ordered[:-1]) ** 2, axis=1) > PARALLEL
    if zero is not None:
        differs = differs | zero[order[1:]]
    group = xp.zeros_like(order)
    group[order[1:]] = xp.cumulative_sum(xp.astype(differs, order.dtype))
    return group


def _indices(columns: Array) -> Ints:
    return array_namespace(columns).arange(len(columns), device=columns.device)


def _recover(
    posed: PosedColumns,
    penalties: Array,
    activity: Array,
    points: Array,
    currents: Array,
    *,
    engine: Engine,
    tol: float,
) -> tuple[Array]:
    """Codes (n, n_features) of points (n, n_components); the penalty is common (1,), or one for each point (n,)."""
    xp = array_namespace(points)
    hidden = xp.where(posed.shown, 0.0, currents)
    if not len(posed.columns):
        return (hidden,)
    start = sum_by_group(currents - hidden, posed.group, len(posed.columns))
    bound = Bound(posed.total, xp.clip(activity - xp.sum(hidden, axis=1), min=0.0))
    coef = engine.solve_bounded(posed.columns, points, penalties, bound, tol=tol, start=start)
    return (hidden + coef[:, posed.group] * posed.share,)


def _recover_change(
    posed: PosedColumns,
    penalties: Array,
    activity: Array,
    shifts: Array,
    currents: Array,
    *,
    engine: Engine,
    tol: float,
) -> tuple[Array]:
    """Changes (n, n_features) of the current codes that move their points by the shifts (n, n_components)."""
    xp, n_columns = array_namespace(shifts), len(posed.columns)
    if not n_columns:
        return (xp.zeros_like(currents),)
    columns, worth = xp.concat([posed.columns, -posed.columns]), xp.concat([posed.total, posed.total])
    bound = Bound(worth, xp.clip(activity - xp.sum(xp.abs(currents), axis=1), min=0.0))
    start = xp.zeros((len(shifts), len(worth)), dtype=shifts.dtype, device=shifts.device)
    coef = engine.solve_bounded(columns, shifts, penalties, bound, tol=tol, start=start)
    return ((coef[:, :n_columns] - coef[:, n_columns:])[:, posed.group] * posed.share,)


@cache
def _masked(work: _Work) -> _Work:
    """The same work on an embedding instead of posed columns."""

    def masked(embedding: Array, *given: Array, merge_parallel: bool, engine: Engine, tol: float) -> tuple[Array, ...]:
        posed = pose_columns_masked(embedding, merge_parallel=merge_parallel)
        return work(posed, *given, engine=engine, tol=tol)

    return masked


@lru_cache
def _captured(engine: Engine, work: _Work) -> _Work:
    return engine.capture(_masked(work))


@lru_cache(maxsize=64)
def _penalties(engine: Engine, *lam: float) -> Array:
    """Penalties (n,) on the device, transferred once: a transfer waits for the device."""
    return engine.array([0.5 * value for value in lam])


@lru_cache
def _probe(xp: Namespace, size: int, device: str) -> Array:
    return xp.asarray(np.random.default_rng(0).standard_normal(size), device=device)


def activity_limit(factor: float | None, peak: Array | float) -> Array | float:
    """Bound () on the sum of a code: a multiple of the window's peak activity (), or infinity for None."""
    return np.inf if factor is None else factor * peak


def recover_next(recover: Recovery, extrapolation: Extrapolation, previous: Array, current: Array) -> Array:
    """The code (n_features,) that follows two others: steps 6 and 7; a row for each lam if there are several."""
    engine, embedding = recover.engine, recover.embedding
    before, now = embedding @ previous, embedding @ current
    if extrapolation.adaptive:
        # It has learned on the host: a few numbers per direction.
        point = engine.array(extrapolation.advance(engine.numpy(before), engine.numpy(now)))
    else:
        point = extrapolation.advance(before, now)
    if extrapolation.predicts_change:
        return current + recover.change(point - now, current)
    return recover(point, current)
