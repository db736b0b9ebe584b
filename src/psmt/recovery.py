"""Step 7: from a point of the embedding back to a non-negative code.

With ``z`` the norms of P's columns, the paper asks for ``min ||P a - b||^2 + lam z'a`` over ``a >= 0``. In the
variables ``z_j a_j`` that is a non-negative lasso with unit columns and the penalty ``lam / 2``.

An atom that P hardly shows (tiny ``z_j``) can explain a point only by an absurd activity, and as the penalty is
scaled by ``z`` too, nothing in the problem stands against it: near-static windows made predictions of a hundred times
the patch's variance that way. So the total activity is bounded, ``sum(a) <= activity``, and the model sets the bound
to what extrapolating codes of its window could give at the most. Atoms have unit norm, so the bound holds for the norm
of the decoded patch as well. Where the bound is not reached, the problem is the paper's, to the letter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from psmt.extrapolation import Extrapolation
from psmt.lasso import solve_one, unit_columns
from psmt.validation import check_real

Array = NDArray[np.float64]


class Recovery:
    """Codes from points of one embedding.

    Parameters
    ----------
    embedding : (n_components, n_features) array
        P. An atom that did not vary in the window has a zero column: the point says nothing of it, so it keeps the
        activity that it has.
    lam : float
        Price of activity, >= 0.
    activity : float, default infinite
        Bound on the sum of a code, > 0.
    tol : float
        Stop when the duality gap is below ``tol * ||b||^2 / 2``.
    """

    def __init__(self, embedding: Array, lam: float, *, activity: float = np.inf, tol: float = 1e-12) -> None:
        self.embedding = embedding
        self.lam = check_real("lam", lam)
        self.activity = activity
        self.tol = tol
        columns, norms = unit_columns(np.ascontiguousarray(embedding.T))
        self._shown = np.flatnonzero(norms > 0)
        self._columns, self._norms = columns[self._shown], norms[self._shown]

    def __call__(self, point: Array, current: Array | None = None) -> Array:
        """Code (n_features,) of a point (n_components,), given the current code (zero for None)."""
        code = np.zeros(self.embedding.shape[1]) if current is None else current.copy()
        if self._shown.size:
            code[self._shown] = self._recover(point, code[self._shown])
        return code

    def _recover(self, point: Array, start: Array) -> Array:
        def priced(price: float) -> Array:
            nonlocal start  # each solution is close to the last: its support is tried first
            penalty = 0.5 * self.lam + price / self._norms
            start = solve_one(self._columns, point, penalty, tol=self.tol, start=start).coef
            return start / self._norms

        code = priced(0.0)
        if code.sum() <= self.activity:
            return code
        # The bound is active: its multiplier is a price on activity itself, at which the sum just meets the bound.
        high = float(self._norms.min()) * max(self.lam, 1e-3)
        while priced(high).sum() > self.activity:
            high *= 4.0
        # Parallel columns leave the code open at price zero; any price settles it.
        low = 1e-9 * high
        code = priced(low)
        if code.sum() <= self.activity:
            return code
        return priced(brentq(lambda price: priced(price).sum() - self.activity, low, high, xtol=1e-12 * high))

    def change(self, shift: Array) -> Array:
        """Signed change (n_features,) of a code that moves its point by `shift` (n_components,).

        Step 7 asked of a change: ``min ||P d - shift||^2 + lam z'|d|``, a lasso whose columns come with both signs.
        """
        change = np.zeros(self.embedding.shape[1])
        columns = np.vstack([self._columns, -self._columns])
        rise, fall = solve_one(columns, shift, 0.5 * self.lam, tol=self.tol).coef.reshape(2, -1)
        change[self._shown] = (rise - fall) / self._norms
        return change


def recover_next(recover: Recovery, extrapolation: Extrapolation, previous: Array, current: Array) -> Array:
    """The code (n_features,) that follows two others: steps 6 and 7."""
    before, now = recover.embedding @ previous, recover.embedding @ current
    point = extrapolation.advance(before, now)
    if extrapolation.anchored:
        return current + recover.change(point - now)
    return recover(point, current)
