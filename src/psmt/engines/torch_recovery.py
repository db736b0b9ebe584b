"""Step 7 in torch: `psmt.recovery.Recovery` on a device."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from psmt.engines.torch_atoms import unit_columns
from psmt.engines.torch_lasso import Solvers, padded, pose
from psmt.recovery import _CUTS
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
        self._columns = padded(unit)
        # An atom that P does not show has a column of zeros, which no solution uses.
        self._shown = norms > 0
        self._norms = torch.where(self._shown, norms, 1.0)

    @cached_property
    def _gram(self) -> Tensor:
        return self._columns @ self._columns.mT

    def __call__(self, point: Tensor, current: Tensor | None = None) -> Tensor:
        """Code (n_features,) of a point (n_components,), given the current code (zero for None)."""
        code = self._norms.new_zeros(len(self._norms)) if current is None else current
        hidden = torch.where(self._shown, 0.0, code)
        start = torch.where(self._shown, code, 0.0)
        left = (self.activity - hidden.sum()).clamp_min(0.0)
        return hidden + self._solve(self._columns, self._gram, self._norms, point, start, left)

    def many(self, points: Tensor, currents: Tensor) -> Tensor:
        """Codes (n, n_features) of points (n, n_components), given the current codes (n, n_features)."""
        prices = torch.full_like(self._norms, 0.5 * self.lam)
        found = (
            self._solvers.solve_many(self._columns, points, prices, tol=self.tol, gram=self._gram).coef / self._norms
        )
        codes = torch.where(self._shown, found, currents)
        for t in (codes.sum(1) > self.activity).nonzero()[:, 0].tolist():
            codes[t] = self(points[t], currents[t])
        return codes

    def change(self, shift: Tensor, current: Tensor | None = None) -> Tensor:
        """Signed change (n_features,) of the current code that moves its point by `shift` (n_components,)."""
        unit = self._columns[: len(self._norms)]
        both = padded(torch.cat([unit, -unit]))
        norms = torch.cat([self._norms, self._norms])
        spent = 0.0 if current is None else current.abs().sum()
        left = (self._norms.new_tensor(0.0) + self.activity - spent).clamp_min(0.0)
        found = self._solve(both, both @ both.mT, norms, shift, torch.zeros_like(norms), left)
        rise, fall = found.view(2, -1)
        return rise - fall

    def _solve(
        self, columns: Tensor, gram: Tensor, norms: Tensor, point: Tensor, start: Tensor, activity: Tensor
    ) -> Tensor:
        """Activities (n,) >= 0 of the columns (n, n_components) for a point, with a sum of at most `activity`.

        The search for the price of activity is that of `psmt.recovery.Recovery`.
        """

        def priced(price: Tensor | float) -> Tensor:
            nonlocal start
            penalty = 0.5 * self.lam + price / norms
            problem = pose(columns, point[None], penalty, gram)
            begin = torch.nn.functional.pad(start, (0, len(columns) - len(start)))
            start = self._solvers.solve(problem, self.tol, begin[None]).coef[0, : len(norms)]
            return start

        def cost(scaled: Tensor) -> Tensor:
            rest = scaled @ columns[: len(scaled)] - point
            return 0.5 * rest.square().sum() + 0.5 * self.lam * scaled.sum()

        def spent(scaled: Tensor) -> Tensor:
            return (scaled / norms).sum()

        lavish = priced(0.0)
        if bool(spent(lavish) <= activity):
            return lavish / norms
        frugal, best = torch.zeros_like(lavish), cost(lavish)
        for _ in range(_CUTS):
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
        return mixed / norms
