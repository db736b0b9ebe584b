"""Step 7 in torch: `psmt.recovery.Recovery` on a device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from psmt.engines.torch_atoms import unit_columns
from psmt.engines.torch_lasso import Solvers, padded, pose
from psmt.recovery import CUTS, PARALLEL
from psmt.validation import check_real


class TorchRecovery:
    """Codes from points of one embedding (n_components, n_features). Parameters as `psmt.recovery.Recovery`."""

    def __init__(
        self,
        embedding: Tensor,
        lam: float,
        *,
        activity: Tensor | float = torch.inf,
        tol: float = 1e-14,
        solvers: Solvers,
    ) -> None:
        self.embedding = embedding
        self.lam = check_real("lam", lam)
        self.activity = activity
        self.tol = tol
        self._solvers = solvers
        unit, norms = unit_columns(embedding.T)
        self._shown = norms > 0
        # Of parallel columns the first stands for all; the others, and atoms that P does not show, have zeros, which
        # no solution uses: so all embeddings of one size make problems of one shape.
        self._first = _first_parallel(unit)
        is_first = self._first == torch.arange(len(unit), device=unit.device)
        self._columns = padded(unit * is_first[:, None])
        squares = torch.zeros_like(norms).index_add_(0, self._first, norms**2)[self._first]
        # Activity of each atom, and of all atoms, for a unit of the column that they share.
        self._share = torch.where(self._shown, norms / squares, 0.0)
        self._total = torch.zeros_like(norms).index_add_(0, self._first, self._share)

    def __call__(self, point: Tensor, current: Tensor | None = None) -> Tensor:
        """Code (n_features,) of a point (n_components,), given the current code (zero for None)."""
        code = self._share.new_zeros(len(self._share)) if current is None else current
        hidden = torch.where(self._shown, 0.0, code)
        start = torch.zeros_like(code).index_add_(0, self._first, code - hidden)
        left = (self.activity - hidden.sum()).clamp_min(0.0)
        return hidden + self._spread(self._solve(self._columns, self._total, point, start, left))

    def _spread(self, coef: Tensor) -> Tensor:
        """Activities (.., n_features) of the atoms from coefficients (.., n_features) of the columns."""
        return coef[..., self._first] * self._share

    def many(self, points: Tensor, currents: Tensor) -> Tensor:
        """Codes (n, n_features) of points (n, n_components), given the current codes (n, n_features)."""
        prices = torch.full_like(self._total, 0.5 * self.lam)
        found = self._solvers.solve_many(self._columns, points, prices, tol=self.tol).coef
        codes = torch.where(self._shown, self._spread(found), currents)
        for t in (codes.sum(1) > self.activity).nonzero()[:, 0].tolist():
            codes[t] = self(points[t], currents[t])
        return codes

    def change(self, shift: Tensor, current: Tensor | None = None) -> Tensor:
        """Signed change (n_features,) of the current code that moves its point by `shift` (n_components,)."""
        unit = self._columns[: len(self._total)]
        both = padded(torch.cat([unit, -unit]))
        total = torch.cat([self._total, self._total])
        spent = 0.0 if current is None else current.abs().sum()
        left = (self.activity - total.new_tensor(0.0) - spent).clamp_min(0.0)
        found = self._solve(both, total, shift, torch.zeros_like(total), left)
        rise, fall = found.view(2, -1)
        return self._spread(rise - fall)

    def _solve(self, columns: Tensor, total: Tensor, point: Tensor, start: Tensor, activity: Tensor) -> Tensor:
        """Coefficients (n,) >= 0 of the columns (n, n_components) for a point, worth at most `activity` in all.

        A unit of a column is worth the activity that `total` (n,) says. The search for the price of activity is that of
        `psmt.recovery.Recovery`.
        """

        def priced(price: Tensor | float) -> Tensor:
            nonlocal start
            problem = pose(columns[None], point[None], 0.5 * self.lam + price * total)
            begin = torch.nn.functional.pad(start, (0, len(columns) - len(start)))
            start = self._solvers.solve(problem, self.tol, begin[None]).coef[0, : len(total)]
            return start

        def cost(scaled: Tensor) -> Tensor:
            rest = scaled @ columns[: len(scaled)] - point
            return 0.5 * rest.square().sum() + 0.5 * self.lam * scaled.sum()

        def spent(scaled: Tensor) -> Tensor:
            return scaled @ total

        lavish = priced(0.0)
        if bool(spent(lavish) <= activity):
            return lavish
        frugal, best = torch.zeros_like(lavish), cost(lavish)
        for _ in range(CUTS):
            share = (activity - spent(frugal)) / (spent(lavish) - spent(frugal))
            mixed = frugal + share * (lavish - frugal)
            if bool(cost(mixed) - best <= self.tol * cost(torch.zeros_like(mixed))):
                break
            price = (cost(frugal) - cost(lavish)) / (spent(lavish) - spent(frugal))
            found = priced(price)
            best = torch.maximum(best, cost(found) + price * (spent(found) - activity))
            if bool(spent(found) > activity):
                lavish = found
            else:
                frugal = found
        return mixed


def _first_parallel(columns: Tensor) -> Tensor:
    """For each unit column (n, n_components) the first (n,) that is parallel to it; zero columns are their own."""
    probe = np.random.default_rng(0).standard_normal(columns.shape[1])
    order = (columns @ torch.from_numpy(probe).to(columns)).argsort(stable=True)
    ordered = columns[order]
    distance = (ordered[1:] - ordered[:-1]).square().sum(1)
    differs = (distance > PARALLEL) | ~ordered[1:].any(1)
    group = torch.zeros_like(order)
    group[order[1:]] = differs.cumsum(0)
    index = torch.arange(len(order), device=order.device)
    first = torch.full_like(order, len(order)).scatter_reduce_(0, group, index, "amin")
    return first[group]
