"""Exact non-negative lasso for many problems at once, in torch.

The problems and the method are those of `psmt.engines.numba.lasso`: a primal active-set method that adds columns by
their KKT violations and stops by the duality gap. On a GPU, the kernel `active_set.cu` solves each problem in one block
of threads. If the kernel cannot be compiled, the CPU solves the problems.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from psmt.engines.contract import Bound, LassoResult
from psmt.engines.numba.lasso import solve_bounded, solve_one
from psmt.engines.torch.cuda import Kernel, kernel
from psmt.types import Array

# The kernel
_THREADS = ((264, 512), (4096, 256))  # (n, threads per problem) for up to n problems: fewer problems get more threads
_FEWEST_THREADS = 64  # threads per problem for more problems than in `_THREADS`
_NEAR = 40  # size up to which a support's inverse is in shared memory, if there are too many problems to use all of it
_SCRATCH = 1 << 27  # numbers that all blocks together may keep in device memory
_BATCH = 1 << 17  # most problems that are posed together


class Problems(NamedTuple):
    """Data of n lassos, with the inner products of their columns and targets."""

    columns: Tensor  # unit-norm or zero columns, one per row: (n_columns, n_features), or (n, n_columns, n_features)
    targets: Tensor  # (n, n_features)
    penalty: Tensor  # (n_columns,) or (n, n_columns), >= 0
    gram: Tensor  # of the columns: (n_columns, n_columns) if shared by all problems, else (n, n_columns, n_columns)
    corr: Tensor  # of columns and targets: (n, n_columns)
    square: Tensor  # squared norms (n,) of the targets


def pose(columns: Tensor, targets: Tensor, penalty: Tensor, gram: Tensor | None = None) -> Problems:
    """Return lassos with columns (..., n_columns, n_features), one per row, and targets (n, n_features).

    Columns have unit norm or are zero. Columns and penalty (..., n_columns) are shared by all problems, or have a first
    axis of length n. `gram` are the inner products of the columns; they are computed if they are not given.
    """
    shared = columns.dim() == 2
    return Problems(
        columns,
        targets,
        penalty,
        columns @ columns.mT if gram is None else gram,
        targets @ columns.mT if shared else (columns @ targets[..., None])[..., 0],
        targets.square().sum(1),
    )


def solve(problems: Problems, *, tol: float, start: Tensor | None = None, bound: Bound | None = None) -> LassoResult:
    """Return the coefficients (n, n_columns) and duality gaps (n,) of n lassos.

    A gap is at most ``tol * ||x||^2 / 2`` for the target x. The supports of `start` (n, n_columns) are tried first.
    """
    corr = problems.corr
    compiled = kernel("active_set.cu", "active_set", corr.dtype, corr.device, _THREADS[0][1])
    if compiled is None:
        return _solve_on_host(problems, tol, start, bound)
    return _solve_by_kernel(compiled, problems, tol, start, bound)


def solve_many(
    columns: Tensor, targets: Tensor, penalty: Tensor, *, tol: float, gram: Tensor | None = None
) -> LassoResult:
    """Return the coefficients (n, n_columns) and duality gaps (n,) of any number of lassos, solved in batches."""
    gram = columns @ columns.mT if gram is None else gram
    if len(targets) <= _BATCH:
        return solve(pose(columns, targets, penalty, gram), tol=tol)
    coef, gap = targets.new_empty(len(targets), len(columns)), targets.new_empty(len(targets))
    for first in range(0, len(targets), _BATCH):
        part = slice(first, first + _BATCH)
        coef[part], gap[part] = solve(pose(columns, targets[part], penalty, gram), tol=tol)
    return LassoResult(coef, gap)


def _solve_by_kernel(
    compiled: Kernel, problems: Problems, tol: float, start: Tensor | None, bound: Bound | None
) -> LassoResult:
    penalty, gram, corr, square = (part.contiguous() for part in problems[2:])
    n, n_columns = corr.shape
    threads = next((threads for most, threads in _THREADS if n <= most), _FEWEST_THREADS)
    limit, size = max(min(problems.columns.shape[-2:]), 1), corr.element_size()
    # Shared memory holds sums over the block, a number for each thread, the inverse, and vectors if there is room.
    fixed, vectors = 512 + size * threads, size * (7 * limit + n_columns)
    roomy = fixed + vectors <= compiled.shared_bytes
    fixed += vectors * roomy
    most = isqrt((compiled.shared_bytes - fixed) // size)
    near = min(limit, most, most if n <= _THREADS[0][0] else _NEAR)
    shared = fixed + size * near**2
    scratch_size = 15 * limit + n_columns + (limit**2 if limit > near else 0)
    blocks = min(n, compiled.blocks_at_once(threads, shared), max(_SCRATCH // scratch_size, 1))
    coef = torch.empty_like(corr) if start is None else start.to(corr.dtype, copy=True).contiguous()
    gap = torch.empty_like(square)
    bounds: tuple[Tensor, Tensor] = (penalty, square) if bound is None else bound
    worth, limits = (part.contiguous() for part in bounds)
    if n:
        scratch = corr.new_empty(blocks * scratch_size)
        counter = torch.zeros(1, dtype=torch.int32, device=corr.device)
        arrays = gram, corr, square, penalty, worth, limits, coef, gap, scratch, counter
        steps = int(gram.dim() == 2), n_columns * (penalty.dim() == 2), n_columns * (worth.dim() == 2)
        how = int(start is not None), int(bound is not None), near, int(roomy), float(tol)
        compiled(blocks, threads, shared, *arrays, n, n_columns, limit, *steps, *how)
    return LassoResult(coef, gap)


def _solve_on_host(problems: Problems, tol: float, start: Tensor | None, bound: Bound | None) -> LassoResult:
    """Solve the lassos on the CPU and return tensors on the device. The gaps are those of the unbounded problems."""
    columns, targets, penalty, gram, corr, _ = map(_on_host, problems)
    coef, gaps = np.zeros(corr.shape) if start is None else _on_host(start).copy(), np.zeros(len(corr))
    penalties = np.broadcast_to(penalty, corr.shape)
    for i, target in enumerate(targets):
        own, products = (columns, gram) if gram.ndim == 2 else (columns[i], gram[i])
        coef[i], gaps[i] = solve_one(own, target, penalties[i], tol=tol, start=coef[i], gram=products)
        if bound is not None:
            worth = _on_host(bound.worth if bound.worth.ndim == 1 else bound.worth[i])
            shared = float(penalties[i].max(initial=0.0))  # all columns of a bounded problem have the same penalty
            coef[i] = solve_bounded(own, target, shared, worth, float(bound.limit[i]), tol=tol, start=coef[i])
    return LassoResult(*(torch.from_numpy(part).to(problems.corr) for part in (coef, gaps)))


def _on_host(values: Any) -> Array:
    return np.asarray(values.cpu().double().numpy())
