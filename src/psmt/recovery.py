"""Step 7: from a point of the embedding back to a non-negative code.

With ``z`` the norms of P's columns, the paper asks for ``min ||P a - b||^2 + lam z'a`` over ``a >= 0``. In the
variables ``z_j a_j`` that is a non-negative lasso with unit columns and the penalty ``lam / 2``.

An atom that P hardly shows (tiny ``z_j``) can explain a point only by an absurd activity, and as the penalty is
scaled by ``z`` too, nothing in the problem stands against it: near-static windows made predictions of a hundred times
the patch's variance that way. So the total activity is bounded, ``sum(a) <= activity``, and the model sets the bound
to what extrapolating codes of its window could give at the most. Atoms have unit norm, so the bound holds for the norm
of the decoded patch as well. Where the bound is not reached, the problem is the paper's, to the letter.

Atoms that the window shows in fixed proportion only, such as those of one frame that used atoms like no other, have
parallel columns in P. The problem then does not say which of them to use, and rounding would: one atom today, another
tomorrow. So they are recovered together, in their proportion in P, which is the solution of least norm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from psmt.engines.numba.lasso import solve_many, solve_one, unit_columns
from psmt.extrapolation import Extrapolation
from psmt.validation import check_real

Array = NDArray[np.float64]

ACTIVITY_FACTOR = 2.0
"""No straight line through two codes of the window, continued by one step, has more than twice its peak activity."""

PARALLEL = 1e-6
"""Squared distance of unit columns that count as parallel. In exact embeddings of a film it is below 1e-18 or above
1e-4; an embedding that was followed is not exact."""

CUTS = 200
"""Prices that are tried for the bound at the most; the duality gap ends the search long before."""


class Recovery:
    """Codes from points of one embedding.

    Parameters
    ----------
    embedding : (n_components, n_features) array
        P. An atom that did not vary in the window has a zero column: the point says nothing of it, so it keeps the
        activity that it has.
    lam : float or sequence of float
        Price of activity, >= 0. Of several, each gives a code or a change of its own: a row of what one would give.
    activity : float, default infinite
        Bound on the sum of a code, > 0.
    tol : float
        Stop when the duality gap is below ``tol * ||b||^2 / 2``. At 1e-12 atoms that P hardly shows are still open by
        some hundredths of activity.
    """

    def __init__(
        self, embedding: Array, lam: float | Sequence[float], *, activity: float = np.inf, tol: float = 1e-14
    ) -> None:
        self.embedding = embedding
        self.lam = np.array([check_real("lam", price) for price in np.ravel(lam).tolist()]).reshape(np.shape(lam))
        self.activity = activity
        self.tol = tol
        columns, norms = unit_columns(np.ascontiguousarray(embedding.T))
        self._shown = np.flatnonzero(norms > 0)
        first, self._group = _parallel(columns[self._shown])
        self._columns = columns[self._shown][first]
        norms = norms[self._shown]
        # Activity of each atom, and of all atoms, for a unit of the column that they share.
        self._share = norms / np.bincount(self._group, norms**2)[self._group]
        self._total: Array = np.bincount(self._group, self._share).astype(np.float64)

    def __call__(self, point: Array, current: Array | None = None) -> Array:
        """Code (n_features,) of a point (n_components,), given the current code (zero for None)."""
        hidden = np.zeros(self.embedding.shape[1]) if current is None else current.copy()
        start: Array = np.bincount(self._group, hidden[self._shown], len(self._columns)).astype(np.float64)
        hidden[self._shown] = 0.0
        left = max(self.activity - float(hidden.sum()), 0.0)
        codes = np.broadcast_to(hidden, (*self.lam.shape, len(hidden))).copy()
        codes[..., self._shown] = self._spread(self._solve(self._columns, self._total, point, start, left))
        return codes

    def _spread(self, coef: Array) -> Array:
        """Activities (.., n_shown) of the atoms from coefficients (.., n_columns) of the columns."""
        return coef[..., self._group] * self._share

    def many(self, points: Array, currents: Array) -> Array:
        """Codes (n, n_features) of points (n, n_components), given the current codes (n, n_features); for a single lam.

        The same codes as one by one, faster: one Gram matrix serves all points. Those that meet the bound on activity
        are solved on their own.
        """
        codes = currents.copy()
        if self._shown.size:
            found = solve_many(self._columns, points, 0.5 * float(self.lam), tol=self.tol)
            codes[:, self._shown] = self._spread(found.coef)
            for t in np.flatnonzero(codes.sum(axis=1) > self.activity):
                codes[t] = self(points[t], currents[t])
        return codes

    def change(self, shift: Array, current: Array | None = None) -> Array:
        """Signed change (n_features,) of the current code that moves its point by `shift` (n_components,).

        Step 7 asked of a change: ``min ||P d - shift||^2 + lam z'|d|``, a lasso whose columns come with both signs.
        The bound is on the activity of the code and its change together.
        """
        change = np.zeros((*self.lam.shape, self.embedding.shape[1]))
        columns = np.vstack([self._columns, -self._columns])
        left = self.activity if current is None else max(self.activity - float(np.abs(current).sum()), 0.0)
        start = np.zeros(len(columns))
        rise, fall = np.split(self._solve(columns, np.tile(self._total, 2), shift, start, left), 2, axis=-1)
        change[..., self._shown] = self._spread(rise - fall)
        return change

    def _solve(self, columns: Array, total: Array, point: Array, start: Array, activity: float) -> Array:
        """Coefficients (.., n) >= 0 of the unit columns (n, n_components) for a point, a row of them for each lam."""
        found = [self._bounded(lam, columns, total, point, start, activity) for lam in self.lam.ravel().tolist()]
        return np.array(found).reshape(*self.lam.shape, len(columns))

    def _bounded(self, lam: float, columns: Array, total: Array, point: Array, start: Array, activity: float) -> Array:
        """Coefficients (n,) >= 0 of the unit columns (n, n_components) for a point, worth at most `activity` in all.

        A unit of a column is worth the activity that `total` (n,) says.
        """

        def priced(price: float) -> Array:
            nonlocal start  # each solution is close to the last: its support is tried first
            penalty = 0.5 * lam + price * total
            start = solve_one(columns, point, penalty, tol=self.tol, start=start).coef
            return start

        def cost(scaled: Array) -> float:
            return 0.5 * float(np.sum((scaled @ columns - point) ** 2)) + 0.5 * lam * float(scaled.sum())

        def spent(scaled: Array) -> float:
            return float(scaled @ total)

        lavish = priced(0.0)
        if spent(lavish) <= activity:
            return lavish
        # The bound is active: its multiplier is a price on activity itself. As the price rises the activity falls, in
        # places by leaps, so the solution is sought between a code that spends too much and one that spends too little.
        frugal, best = np.zeros_like(lavish), cost(lavish)
        for _ in range(CUTS):
            share = (activity - spent(frugal)) / (spent(lavish) - spent(frugal))
            mixed = frugal + share * (lavish - frugal)
            if cost(mixed) - best <= self.tol * cost(np.zeros_like(mixed)):
                break
            # Each code draws a line under the optimum, as a function of the price; the lines cross at the next one.
            price = (cost(frugal) - cost(lavish)) / (spent(lavish) - spent(frugal))
            found = priced(price)
            best = max(best, cost(found) + price * (spent(found) - activity))
            if spent(found) > activity:
                lavish = found
            else:
                frugal = found
        return mixed


def _parallel(columns: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of each set of parallel unit columns (n, n_components), and the set (n,) that each belongs to."""
    if len(columns) == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    # Parallel columns are neighbours in the order of their products with any vector.
    order = np.argsort(columns @ np.random.default_rng(0).standard_normal(columns.shape[1]), kind="stable")
    ordered = columns[order]
    differs = np.einsum("ij,ij->i", ordered[1:] - ordered[:-1], ordered[1:] - ordered[:-1]) > PARALLEL
    group = np.empty(len(columns), dtype=np.intp)
    group[order] = np.concatenate([[0], np.cumsum(differs)])
    return np.unique(group, return_index=True)[1], group


def recover_next(recover: Recovery, extrapolation: Extrapolation, previous: Array, current: Array) -> Array:
    """The code (n_features,) that follows two others: steps 6 and 7."""
    before, now = recover.embedding @ previous, recover.embedding @ current
    point = extrapolation.advance(before, now)
    if extrapolation.anchored:
        return current + recover.change(point - now, current)
    return recover(point, current)
