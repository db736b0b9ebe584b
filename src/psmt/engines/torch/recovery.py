"""Step 7 in torch: `psmt.recovery.Recovery` on a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from psmt.engines.torch.atoms import unit_columns
from psmt.engines.torch.graphs import Recorded
from psmt.engines.torch.lasso import Bound, pose, solve
from psmt.recovery import PARALLEL
from psmt.validation import check_real

_FEW = 16
"""Points up to this number are recovered by recorded work: they come again and again, as many as before."""


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
        self.activity = torch.as_tensor(activity, dtype=torch.float64, device=embedding.device)
        self._settings = {"tol": tol, "dtype": dtype}

    def __call__(self, point: Tensor, current: Tensor | None = None) -> Tensor:
        """Code (n_features,) of a point (n_components,), given the current code (zero for None)."""
        code = point.new_zeros(self.embedding.shape[1]) if current is None else current
        n = len(self.lam)
        return self.many(point.expand(n, -1), code.expand(n, -1)).view(*self._several, -1)

    def many(self, points: Tensor, currents: Tensor) -> Tensor:
        """Codes (n, n_features) of points (n, n_components), given the current codes (n, n_features).

        There is one lam, or one for each point.
        """
        work = _RECOVER if len(points) <= _FEW else _recover
        return work(self.embedding, self.lam, self.activity, points, currents, **self._settings)[0]

    def change(self, shift: Tensor, current: Tensor | None = None) -> Tensor:
        """Signed change (n_features,) of the current code that moves its point by `shift` (n_components,)."""
        code = shift.new_zeros(self.embedding.shape[1]) if current is None else current
        changes = _CHANGE(self.embedding, self.lam, self.activity, shift, code, **self._settings)[0]
        return changes.view(*self._several, -1)


class _Shown(NamedTuple):
    """What an embedding shows of the atoms."""

    atoms: Tensor
    """Which (n_features,)."""
    first: Tensor
    """The first (n_features,) of the atoms whose columns are parallel."""
    columns: Tensor
    """Unit columns (n_features, n_components). Of parallel ones the first stands for all; the others, and those of
    atoms that are not shown, are zero, and no solution uses them: so all embeddings of one size pose problems of one
    shape."""
    share: Tensor
    """Activity of each atom (n_features,) for a unit of the column that it shares."""
    total: Tensor
    """Activity of all atoms that share a column (n_features,), for a unit of it."""


def _look(embedding: Tensor) -> _Shown:
    unit, norms = unit_columns(embedding.T)
    shown, first = norms > 0, _first_parallel(unit)
    is_first = first == torch.arange(len(unit), device=unit.device)
    squares = torch.zeros_like(norms).index_add_(0, first, norms**2)[first]
    share = torch.where(shown, norms / squares, 0.0)
    return _Shown(shown, first, unit * is_first[:, None], share, torch.zeros_like(norms).index_add_(0, first, share))


def _recover(
    embedding: Tensor,
    lam: Tensor,
    activity: Tensor,
    points: Tensor,
    currents: Tensor,
    *,
    tol: float,
    dtype: torch.dtype,
) -> tuple[Tensor]:
    """Codes (n, n_features): see `TorchRecovery.many`."""
    shown = _look(embedding)
    hidden = torch.where(shown.atoms, 0.0, currents)
    start = torch.zeros_like(hidden).index_add_(1, shown.first, currents - hidden)
    left = (activity - hidden.sum(1)).clamp_min(0.0)
    prices = (0.5 * lam[:, None]).expand(-1, len(shown.total))
    columns = shown.columns.to(dtype)
    problems = pose(columns, points.to(dtype), (prices[0] if len(lam) == 1 else prices).to(dtype))
    found = solve(problems, tol=tol, start=start, bound=Bound(shown.total.to(dtype), left.to(dtype))).coef
    return (hidden + found[:, shown.first] * shown.share,)


def _change(
    embedding: Tensor, lam: Tensor, activity: Tensor, shift: Tensor, current: Tensor, *, tol: float, dtype: torch.dtype
) -> tuple[Tensor]:
    """Changes (n_lam, n_features): see `TorchRecovery.change`."""
    shown = _look(embedding)
    columns = torch.cat([shown.columns, -shown.columns]).to(dtype)
    n = len(lam)
    left = (activity - current.abs().sum()).clamp_min(0.0).expand(n)
    prices = (0.5 * lam[:, None]).expand(-1, len(columns))
    problems = pose(columns, shift.expand(n, -1).to(dtype), (prices[0] if n == 1 else prices).to(dtype))
    total = torch.cat([shown.total, shown.total])
    found = solve(problems, tol=tol, bound=Bound(total.to(dtype), left.to(dtype))).coef
    rise, fall = found.view(n, 2, -1).unbind(1)
    return ((rise - fall)[:, shown.first] * shown.share,)


_RECOVER, _CHANGE = Recorded(_recover), Recorded(_change)


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
