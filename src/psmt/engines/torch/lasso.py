"""Exact non-negative lasso for many problems at once, in torch.

The problems are those of `psmt.engines.numba.lasso`, and so is the method: a primal active set, grown by KKT
violations and stopped by the duality gap. On a GPU one kernel solves them (`active_set.cu`), each by one block of
threads from start to end. Elsewhere they take their steps together (`active_sets`).
"""

from __future__ import annotations

from math import isqrt

import torch
from torch import Tensor

from psmt.engines.contract import Bound, LassoResult
from psmt.engines.torch import active_sets
from psmt.engines.torch.nvrtc import Kernel, kernel
from psmt.engines.torch.problems import Problems, pose

_THREADS = ((264, 512), (4096, 256))
"""Threads for each problem, where there are up to so many: few problems do not keep a GPU busy otherwise."""

_FEWEST_THREADS = 64
"""Threads for each problem where there are more."""

_NEAR = 40
"""Members of a support whose inverse stays in shared memory where problems are many; few of them take what there is."""

_SCRATCH = 1 << 27
"""Numbers that all blocks together may keep in device memory."""

_BATCH = 1 << 17
"""Problems that are posed together at the most."""


def solve(problems: Problems, *, tol: float, start: Tensor | None = None, bound: Bound | None = None) -> LassoResult:
    """Solutions to a gap of ``tol * square / 2``, begun with the supports of `start` (n, n_columns) if it is given."""
    corr = problems.corr
    compiled = kernel("active_set.cu", "active_set", corr.dtype, corr.device, _THREADS[0][1])
    if compiled is None:
        return active_sets.solve(problems, tol=tol, start=start, bound=bound)
    return _solve_by_kernel(compiled, problems, tol, start, bound)


def solve_many(
    columns: Tensor, targets: Tensor, penalty: Tensor, *, tol: float, gram: Tensor | None = None
) -> LassoResult:
    """Coefficients (n, n_columns) and duality gaps (n,) of any number of targets (n, n_features).

    The columns (n_columns, n_features) have unit norm or are zero; the penalty is (n_columns,).
    """
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
    gram, corr, square, penalty = (part.contiguous() for part in problems[:4])
    n, n_columns = corr.shape
    threads = next((threads for most, threads in _THREADS if n <= most), _FEWEST_THREADS)
    limit, size = max(problems.rank, 1), corr.element_size()
    # Sums over the block; a number for each thread; vectors, if there is room; and the inverse.
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
        compiled(
            blocks,
            threads,
            shared,
            gram,
            corr,
            square,
            penalty,
            worth,
            limits,
            coef,
            gap,
            corr.new_empty(blocks * scratch_size),
            torch.zeros(1, dtype=torch.int32, device=corr.device),
            n,
            n_columns,
            limit,
            int(gram.dim() == 2),
            n_columns * (penalty.dim() == 2),
            n_columns * (worth.dim() == 2),
            int(start is not None),
            int(bound is not None),
            near,
            int(roomy),
            float(tol),
        )
    return LassoResult(coef, gap)
