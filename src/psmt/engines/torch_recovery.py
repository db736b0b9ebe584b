"""Step 7 in torch: `psmt.recovery.Recovery` on a device."""

from __future__ import annotations

from collections.abc import Sequence

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
        lam: float | Sequence[float],
        *,
        activity: Tensor | float = torch.inf,
        tol: float = 1e-14,
        solvers: Solvers,
    ) -> None:
        self.embedding = embedding
        self.lam = embedding.new_tensor([check_real("lam", p) for p in np.ravel(lam).tolist()]).view(np.shape(lam))
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
        code = torch.zeros_like(self._total) if current is None else current
        return self._codes(point.expand(self.lam.numel(), -1), code).view(*self.lam.shape, -1)

    def _codes(self, points: Tensor, currents: Tensor) -> Tensor:
        """Codes (n, n_features) of points (n, n_components), given the current codes (n_features,) or (n, n_features).

        There is one lam, or one for each point.
        """
        hidden = torch.where(self._shown, 0.0, currents).expand(len(points), -1)
        start = torch.zeros_like(hidden).index_add_(1, self._first, currents - hidden)
        left = (self.activity - hidden.sum(1)).clamp_min(0.0)
        return hidden + self._spread(self._solve(self._columns, self._total, points, start, left))

    def _spread(self, coef: Tensor) -> Tensor:
        """Activities (.., n_features) of the atoms from coefficients (.., n_features) of the columns."""
        return coef[..., self._first] * self._share

    def many(self, points: Tensor, currents: Tensor) -> Tensor:
        """Codes (n, n_features) of points (n, n_components), given the current codes (n, n_features); for a single lam.

        Those that meet the bound on activity are solved once more, together.
        """
        prices = (0.5 * self.lam).expand_as(self._total)
        found = self._solvers.solve_many(self._columns, points, prices, tol=self.tol).coef
        codes = torch.where(self._shown, self._spread(found), currents)
        over = (codes.sum(1) > self.activity).nonzero()[:, 0]
        if len(over):
            codes[over] = self._codes(points[over], currents[over])
        return codes

    def change(self, shift: Tensor, current: Tensor | None = None) -> Tensor:
        """Signed change (n_features,) of the current code that moves its point by `shift` (n_components,)."""
        unit = self._columns[: len(self._total)]
        both = padded(torch.cat([unit, -unit]))
        total = torch.cat([self._total, self._total])
        spent = 0.0 if current is None else current.abs().sum()
        n = self.lam.numel()
        left = (self.activity - total.new_tensor(0.0) - spent).clamp_min(0.0)
        found = self._solve(both, total, shift.expand(n, -1), total.new_zeros(n, len(total)), left.expand(n))
        rise, fall = found.view(*self.lam.shape, 2, -1).unbind(-2)
        return self._spread(rise - fall)

    def _solve(self, columns: Tensor, total: Tensor, points: Tensor, start: Tensor, activity: Tensor) -> Tensor:
        """Coefficients (n, n_columns) >= 0 of the columns for points (n, n_components), worth at most `activity` (n,).

        A unit of a column is worth the activity that `total` (n_columns,) says; `start` (n, n_columns) is a guess. The
        search for the price of activity is that of `psmt.recovery.Recovery`, for all points at once.
        """
        half = 0.5 * self.lam.view(-1, 1)
        # One point alone is solved from the columns, several from the inner products that they share.
        given = columns[None] if len(points) == 1 else columns
        gram = None if len(points) == 1 else columns @ columns.mT

        def priced(price: Tensor) -> Tensor:
            nonlocal start
            problem = pose(given, points, half + price[:, None] * total, gram)
            begin = torch.nn.functional.pad(start, (0, len(columns) - len(total)))
            start = self._solvers.solve(problem, self.tol, begin).coef[:, : len(total)]
            return start

        def cost(scaled: Tensor) -> Tensor:
            rest = scaled @ columns[: len(total)] - points
            return 0.5 * rest.square().sum(1) + half[:, 0] * scaled.sum(1)

        def spent(scaled: Tensor) -> Tensor:
            return scaled @ total

        found = lavish = priced(torch.zeros_like(activity))
        over = spent(lavish) > activity
        if not bool(over.any()):
            return lavish
        frugal, best = torch.zeros_like(lavish), cost(lavish)
        for _ in range(CUTS):
            span = spent(lavish) - spent(frugal)
            mixed = frugal + ((activity - spent(frugal)) / span)[:, None] * (lavish - frugal)
            found = torch.where(over[:, None], mixed, found)
            over &= cost(mixed) - best > self.tol * cost(torch.zeros_like(mixed))
            if not bool(over.any()):
                break
            price = torch.where(over, (cost(frugal) - cost(lavish)) / span, 0.0)
            fresh = priced(price)
            best = torch.maximum(best, cost(fresh) + price * (spent(fresh) - activity))
            much = (spent(fresh) > activity)[:, None]
            lavish, frugal = torch.where(much, fresh, lavish), torch.where(much, frugal, fresh)
        return found


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
