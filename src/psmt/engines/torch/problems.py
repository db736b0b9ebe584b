"""Non-negative lassos, posed for the solvers of `psmt.engines.torch.lasso`: by inner products alone."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Problems(NamedTuple):
    """What the solver needs to know of n problems."""

    gram: Tensor
    """Inner products of the columns: (n_columns, n_columns) if all have the same, else (n, n_columns, n_columns)."""
    corr: Tensor
    """(n, n_columns): inner products of columns and targets."""
    square: Tensor
    """(n,): squared norms of the targets."""
    penalty: Tensor
    """(n_columns,) or (n, n_columns): of a unit of each coefficient, >= 0."""
    rank: int
    """How many columns can be independent."""


def pose(columns: Tensor, targets: Tensor, penalty: Tensor, gram: Tensor | None = None) -> Problems:
    """Problems of unit-norm or zero columns (.., n_columns, n_features) and targets (n, n_features).

    The columns, one per row, and the penalty (.., n_columns) are those of all problems, or each problem has its own.
    `gram` are the inner products of the columns if they are known.
    """
    shared = columns.dim() == 2
    return Problems(
        columns @ columns.mT if gram is None else gram,
        targets @ columns.mT if shared else (columns @ targets[..., None])[..., 0],
        targets.square().sum(1),
        penalty,
        min(columns.shape[-2:]),
    )
