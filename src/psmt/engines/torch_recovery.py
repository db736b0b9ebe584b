"""Step 7 in torch: `psmt.recovery.Recovery` on a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from psmt.engines.torch_atoms import unit_columns
from psmt.engines.torch_lasso import Bound, pose, solve
from psmt.recovery import PARALLEL
from psmt.validation import check_real


class TorchRecovery:
    """Codes from points of one embedding (n_components, n_features). Parameters as `psmt.recovery.Recovery`.

    dtype : torch.dtype
        Of the numbers that are solved with; all that comes in and goes out is float64.
    """

    def __init__(
        self,
        embedding: Tensor,
        lam: float | Sequence[float],
        *,
        activity: Tensor | float = torch.inf,
        tol: float = 1e-14,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.embedding = embedding
        self.lam = _on(embedding.device, *(check_real("lam", price) for price in np.ravel(lam).tolist()))
        self._several = np.shape(lam)
        self.activity = activity
        self.tol = tol
        self._dtype = dtype
        unit, norms = unit_columns(embedding.T)
        self._shown = norms > 0
        # Of parallel columns the first stands for all; the others, and atoms that P does not show, have zeros, which
        # no solution uses: so all embeddings of one size make problems of one shape.
        self._first = _first_parallel(unit)
        is_first = self._first == torch.arange(len(unit), device=unit.device)
        self._columns = (unit * is_first[:, None]).to(dtype)
        squares = torch.zeros_like(norms).index_add_(0, self._first, norms**2)[self._first]
        # Activity of each atom, and of all atoms, for a unit of the column that they share.
        self._share = torch.where(self._shown, norms / squares, 0.0)
        self._total = torch.zeros_like(norms).index_add_(0, self._first, self._share)

    @cached_property
    def _gram(self) -> Tensor:
        return self._columns @ self._columns.mT

    def __call__(self, point: Tensor, current: Tensor | None = None) -> Tensor:
        """Code (n_features,) of a point (n_components,), given the current code (zero for None)."""
        code = torch.zeros_like(self._total) if current is None else current
        return self.many(point.expand(len(self.lam), -1), code.expand(len(self.lam), -1)).view(*self._several, -1)

    def many(self, points: Tensor, currents: Tensor) -> Tensor:
        """Codes (n, n_features) of points (n, n_components), given the current codes (n, n_features).

        There is one lam, or one for each point.
        """
        hidden = torch.where(self._shown, 0.0, currents)
        start = torch.zeros_like(hidden).index_add_(1, self._first, currents - hidden)
        left = (self.activity - hidden.sum(1)).clamp_min(0.0)
        return hidden + self._spread(self._solve(self._columns, self._gram, self._total, points, start, left))

    def change(self, shift: Tensor, current: Tensor | None = None) -> Tensor:
        """Signed change (n_features,) of the current code that moves its point by `shift` (n_components,)."""
        columns, total = torch.cat([self._columns, -self._columns]), torch.cat([self._total, self._total])
        gram = torch.cat([self._gram, -self._gram])
        spent = total.new_zeros(()) if current is None else current.abs().sum()
        left = (self.activity - spent).clamp_min(0.0)
        n = len(self.lam)
        found = self._solve(columns, torch.cat([gram, -gram], 1), total, shift.expand(n, -1), None, left.expand(n))
        rise, fall = found.view(*self._several, 2, -1).unbind(-2)
        return self._spread(rise - fall)

    def _spread(self, coef: Tensor) -> Tensor:
        """Activities (.., n_features) of the atoms from coefficients (.., n_features) of the columns."""
        return coef[..., self._first] * self._share

    def _solve(
        self, columns: Tensor, gram: Tensor, total: Tensor, points: Tensor, start: Tensor | None, activity: Tensor
    ) -> Tensor:
        """Coefficients (n, n_columns) >= 0 of the columns for points (n, n_components), worth at most `activity` (n,).

        A unit of a column is worth the activity that `total` (n_columns,) says; `start` (n, n_columns) is a guess.
        """
        prices = (0.5 * self.lam[:, None]).to(self._dtype).expand(-1, len(columns))
        problems = pose(columns, points.to(self._dtype), prices[0] if len(prices) == 1 else prices, gram)
        bound = Bound(total.to(self._dtype), activity.to(self._dtype))
        return solve(problems, tol=self.tol, start=start, bound=bound).coef.to(points.dtype)


@lru_cache(maxsize=64)
def _on(device: torch.device, *values: float) -> Tensor:
    """The values on a device: to bring them there waits for the device, so that it is done once."""
    return torch.tensor(values, dtype=torch.float64, device=device)


@lru_cache
def _probe(size: int, device: torch.device) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(size)).to(device)


def _first_parallel(columns: Tensor) -> Tensor:
    """For each unit column (n, n_components) the first (n,) that is parallel to it; zero columns are their own."""
    order = (columns @ _probe(columns.shape[1], columns.device)).argsort(stable=True)
    ordered = columns[order]
    distance = (ordered[1:] - ordered[:-1]).square().sum(1)
    differs = (distance > PARALLEL) | ~ordered[1:].any(1)
    group = torch.zeros_like(order)
    group[order[1:]] = differs.cumsum(0)
    index = torch.arange(len(order), device=order.device)
    first = torch.full_like(order, len(order)).scatter_reduce_(0, group, index, "amin")
    return first[group]
