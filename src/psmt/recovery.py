"""Step 7 of the paper: recover a non-negative code from a point of the embedding.

The paper minimises ``||P a - b||^2 + lam z'a`` over codes ``a >= 0``, where P is the embedding matrix, ``b`` the point
and ``z`` the norms of P's columns. In the variables ``z_j a_j`` this is a non-negative lasso with unit columns and the
penalty ``lam / 2``. There are two departures from the paper, and each can be switched off (`activity_bound=None` and
`merge_parallel=False` in `PSMT`):

- The total activity is bounded, ``sum(a) <= activity``. An atom whose column has a tiny norm ``z_j`` can explain a
  point only by an extreme activity. The penalty does not prevent this, because it is scaled by ``z`` too. Without the
  bound, windows with little motion gave predictions of a hundred times the patch's variance. The model sets the bound
  to the largest activity that extrapolated codes of its window can have. Atoms have unit norm, so the norm of the
  decoded patch is also bounded.
- Atoms with parallel columns in P are recovered together, in proportion to the norms of these columns. This is the
  solution of least norm. Such atoms occur in the window only in a fixed proportion, for example in a single unusual
  frame. The paper's problem does not determine which of them to use, so rounding would decide.
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
    number_groups,
    sum_by_group,
    unit_rows,
)
from psmt.types import Array, Ints, Mask
from psmt.utils.constraints import check_real

ACTIVITY_FACTOR = 2.0
"""Bound on the sum of a predicted code, as a multiple of the largest sum in the window. If the straight line through
two codes of the window is continued by one step, its sum is below this bound."""

PARALLEL = 1e-6
"""Squared distance below which unit columns count as parallel. In exact embeddings of a film, squared distances are
below 1e-18 or above 1e-4. In tracked embeddings, parallel columns have larger distances."""

_Work = Callable[..., tuple[Array, ...]]

_FEW = 16  # largest number of points whose recovery is captured, that is, recorded at the first call and replayed later


class Recovery:
    """Recovers codes from points of one embedding.

    Parameters
    ----------
    embedding : (n_components, n_features) array
        The embedding matrix P, as an array of the engine (NumPy or torch). The column of an atom that did not vary in
        the window is zero. Points do not depend on such an atom, so it keeps its activity.
    lam : float or sequence of float
        Sparsity (L1) penalty, >= 0. With a sequence of penalties, results have one row per penalty.
    activity : float or scalar array, default infinite
        Bound on the sum of a code, > 0.
    merge_parallel : bool, default True
        If True, atoms with parallel columns are recovered together. If False, rounding decides which of them is used.
    tol : float
        Stop when the duality gap is below ``tol * ||b||^2 / 2``. At 1e-12, the activities of atoms with tiny columns in
        P are still uncertain by some hundredths.
    engine : Engine, optional
        Engine that solves the lassos, by default that of the CPU.
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
        # On an engine that captures work, preparing the columns is part of the captured work.
        self._posed = None if self.engine.captures else pose_columns(embedding, merge_parallel=merge_parallel)

    def __call__(self, point: Array, current: Array | None = None) -> Array:
        """Return the code (n_features,) recovered from a point (n_components,), given the current code (None: zero)."""
        return self._each(_recover, point, current)

    def change(self, shift: Array, current: Array | None = None) -> Array:
        """Return the signed change (n_features,) of the current code that moves its point by `shift` (n_components,).

        The change d minimises ``||P d - shift||^2 + lam z'|d|``, which is step 7 for a change. It is solved as a lasso
        with columns of both signs. The bound applies to the activity of the code plus that of the change.
        """
        return self._each(_recover_change, shift, current)

    def many(self, points: Array, currents: Array) -> Array:
        """Return codes (n, n_features) recovered from points (n, n_components), given current codes and one penalty."""
        return self._do(_recover, points, currents)

    def _each(self, work: _Work, point: Array, current: Array | None) -> Array:
        """Call `work` for a point with each penalty, and return the results (..., n_features)."""
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
    """The columns of the embedding matrix P, prepared for the lasso of step 7."""

    columns: Array
    """Unit columns (n_columns, n_components). If parallel columns of P are merged, one unit column stands for them."""
    shown: Mask
    """Mask (n_features,) of the atoms that have a non-zero column in the embedding matrix P."""
    group: Ints
    """Index (n_features,) of the unit column of each atom. It has no meaning for atoms outside the mask `shown`."""
    share: Array
    """Activity of each atom (n_features,) per unit of its column's coefficient. Zero outside the mask `shown`."""
    total: Array
    """Sum (n_columns,) of the activities of all atoms merged into a column, per unit of the column's coefficient."""


def pose_columns(embedding: Array, *, merge_parallel: bool = True) -> PosedColumns:
    """Return the non-zero columns of P (n_components, n_features), scaled to unit norm for the lasso.

    If `merge_parallel` is True, each group of parallel columns becomes one column.
    """
    xp = array_namespace(embedding)
    unit, norms = unit_rows(contiguous(embedding.T))
    shown = norms > 0
    (atoms,) = xp.nonzero(shown)
    columns = unit[atoms]
    own = _parallel_groups(columns) if merge_parallel else _indices(columns)
    group = xp.astype(shown, own.dtype)
    group[atoms] = own
    return _posed(columns[first_indices(own)], norms, group)


def pose_columns_masked(embedding: Array, *, merge_parallel: bool = True) -> PosedColumns:
    """Return the columns of P at unit norm, one per atom. Of parallel columns, all but the first are set to zero.

    No solution uses a zero column. All shapes depend only on the shape of P, unlike those of `pose_columns`. So
    `Engine.capture` can record the work once and replay it for other values.
    """
    xp = array_namespace(embedding)
    unit, norms = unit_rows(embedding.T)
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
    """Return the group number (n,) of each unit column (n, n_components). Parallel columns share a group.

    A column in the mask `zero` is alone in its group.
    """
    xp = array_namespace(columns)
    # When columns are sorted by their products with any vector, parallel columns are neighbours.
    order = xp.argsort(columns @ _probe(xp, columns.shape[1], columns.device), stable=True)
    ordered = columns[order]
    differs = xp.sum((ordered[1:] - ordered[:-1]) ** 2, axis=1) > PARALLEL
    if zero is not None:
        differs = differs | zero[order[1:]]
    return number_groups(order, differs)


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
    """Return codes (n, n_features) of points (n, n_components). `penalties` has one entry, or one for each point."""
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
    """Return changes (n, n_features) of the current codes, such that their points move by shifts (n, n_components)."""
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
    """Return a version of `work` that takes an embedding matrix and prepares its columns by `pose_columns_masked`."""

    def masked(embedding: Array, *given: Array, merge_parallel: bool, engine: Engine, tol: float) -> tuple[Array, ...]:
        posed = pose_columns_masked(embedding, merge_parallel=merge_parallel)
        return work(posed, *given, engine=engine, tol=tol)

    return masked


@lru_cache
def _captured(engine: Engine, work: _Work) -> _Work:
    return engine.capture(_masked(work))


@lru_cache(maxsize=64)
def _penalties(engine: Engine, *lam: float) -> Array:
    """Return half of each penalty as an array (n,) on the device. It is cached, because transfers are slow."""
    return engine.array([0.5 * value for value in lam])


@lru_cache
def _probe(xp: Namespace, size: int, device: str) -> Array:
    return xp.asarray(np.random.default_rng(0).standard_normal(size), device=device)


def activity_limit(factor: float | None, peak: Array | float) -> Array | float:
    """Return the bound ``factor * peak``, where `peak` is the window's maximum. A factor of None gives infinity."""
    return np.inf if factor is None else factor * peak


def recover_next(recover: Recovery, extrapolation: Extrapolation, previous: Array, current: Array) -> Array:
    """Return the code (n_features,) that follows two codes, by steps 6 and 7 of the paper.

    If `recover` has several penalties, the result has one row per penalty.
    """
    now = recover.embedding @ current
    point = advanced(extrapolation, recover.engine, recover.embedding @ previous, now)
    if extrapolation.predicts_change:
        return current + recover.change(point - now, current)
    return recover(point, current)


def advanced(extrapolation: Extrapolation, engine: Engine, previous: Array, current: Array) -> Array:
    """Return the point (n,) that an extrapolation predicts after two points. All points are on the device."""
    if not extrapolation.adaptive:
        return extrapolation.advance(previous, current)
    # The extrapolation learned on the host, and needs only a few numbers per direction.
    return engine.array(extrapolation.advance(engine.numpy(previous), engine.numpy(current)))
