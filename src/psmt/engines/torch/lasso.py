"""Exact non-negative lasso for many problems at once, in torch.

The problems and the method are those of `psmt.engines.numba.lasso`: a primal active-set method that adds columns by
their KKT violations and stops by the duality gap. On a GPU, one kernel (`active_set.cu`) solves each problem in one
block of threads. On other devices, `ActiveSets` takes the steps of all problems together.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from psmt.engines.contract import Bound, LassoResult, bounded_optimum
from psmt.engines.torch.cuda import Kernel, kernel

# The kernel
_THREADS = ((264, 512), (4096, 256))  # (n, threads per problem) for up to n problems: fewer problems get more threads
_FEWEST_THREADS = 64  # threads per problem for more problems than in `_THREADS`
_NEAR = 40  # size up to which a support's inverse is in shared memory, if there are too many problems to use all of it
_SCRATCH = 1 << 27  # numbers that all blocks together may keep in device memory
_BATCH = 1 << 17  # most problems that are posed together

# Active sets without the kernel
_JOINING = 0.7  # a column joins the support if its violation is at least this fraction of the largest violation
_ROUNDING = 45.0  # smaller KKT violations, in units of eps times the largest correlation, are rounding
_STALLED = 3  # a problem ends after this many steps without a column to add, because only rounding is left
_SLOTS = 16  # first number of slots of a support; it doubles when a problem needs more
_LENGTHS = (1.0, 0.5, 0.25, 0.125)  # fractions of the way to the optimum of a support that are tried
_SPARSE = 0.6  # finished problems are removed when at most this fraction of problems is unfinished
_STEPS = 2000  # largest number of steps; problems usually take a few dozen

_RIDGE = 450.0
"""Added to the squared norm of each column on a support, in units of eps. It gives a column in the span of the others
a direction of almost no curvature. The walk along this direction ends where a member reaches zero, so that the column
replaces this member. Solutions are not biased, because each step solves for the remaining residual."""


class Problems(NamedTuple):
    """The data of n problems, as inner products of columns and targets."""

    gram: Tensor  # of the columns: (n_columns, n_columns) if shared by all problems, else (n, n_columns, n_columns)
    corr: Tensor  # of columns and targets: (n, n_columns)
    square: Tensor  # squared norms (n,) of the targets
    penalty: Tensor  # (n_columns,) or (n, n_columns), >= 0
    rank: int  # largest number of independent columns


def pose(columns: Tensor, targets: Tensor, penalty: Tensor, gram: Tensor | None = None) -> Problems:
    """Return problems with unit-norm or zero columns (.., n_columns, n_features) and targets (n, n_features).

    The columns, one per row, and the penalty (.., n_columns) are either shared by all problems or given for each.
    `gram` are the inner products of the columns; they are computed if they are not given.
    """
    shared = columns.dim() == 2
    return Problems(
        columns @ columns.mT if gram is None else gram,
        targets @ columns.mT if shared else (columns @ targets[..., None])[..., 0],
        targets.square().sum(1),
        penalty,
        min(columns.shape[-2:]),
    )


def solve(problems: Problems, *, tol: float, start: Tensor | None = None, bound: Bound | None = None) -> LassoResult:
    """Return solutions with gaps below ``tol * square / 2``; the supports of `start` (n, n_columns) are tried first."""
    corr = problems.corr
    compiled = kernel("active_set.cu", "active_set", corr.dtype, corr.device, _THREADS[0][1])
    if compiled is None:
        return _solve_together(problems, tol, start, bound)
    return _solve_by_kernel(compiled, problems, tol, start, bound)


def solve_many(
    columns: Tensor, targets: Tensor, penalty: Tensor, *, tol: float, gram: Tensor | None = None
) -> LassoResult:
    """Return the coefficients (n, n_columns) and duality gaps (n,) of any number of targets (n, n_features).

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


class ActiveSets:
    """Problems that take their steps together until every gap is below ``tol * square / 2``.

    In one step, each problem that is optimal on its support adds the columns that violate the Karush-Kuhn-Tucker (KKT)
    conditions most. Then every problem walks towards the optimum of its support, which a new Cholesky factor gives. A
    member of the support that reaches zero on the way leaves. Supports are rows of slots, so that all problems have
    arrays of the same shape. Empty slots hold the index of the last column, which is zero.
    """

    STATE = ("support", "values", "gap", "moved", "solved", "done", "support_full", "stalled")

    def __init__(self, problems: Problems, tol: float, *, slots: int = _SLOTS) -> None:
        self.problems, self.tol = problems, tol
        corr, penalty = problems.corr, problems.penalty
        n, n_columns = corr.shape
        self._empty = n_columns - 1
        self._columns = torch.arange(n_columns, device=corr.device)
        self._inverse = torch.where(penalty > 0, 1.0 / penalty, 0.0)
        self._free = (penalty == 0).any(-1)
        unit = torch.finfo(corr.dtype).eps
        self._ridge, self._rounding = _RIDGE * unit, _ROUNDING * unit * corr.abs().amax(1)
        self._lengths = corr.new_tensor(_LENGTHS)
        self.support = torch.full((n, slots), self._empty, device=corr.device)
        self.values = corr.new_zeros(n, slots)
        self.gap = corr.new_full((n,), torch.inf)
        self.moved = torch.ones(n, dtype=torch.bool, device=corr.device)
        self.solved = torch.zeros_like(self.moved)
        self.done = torch.zeros_like(self.moved)
        self.support_full = torch.zeros_like(self.moved)
        self.stalled = torch.zeros_like(self.moved, dtype=torch.int64)

    @property
    def coef(self) -> Tensor:
        """Return the coefficients (n, n_columns)."""
        return torch.zeros_like(self.problems.corr).scatter_(1, self.support, self.values)

    def start_from(self, coef: Tensor) -> None:
        """Start from the supports of given solutions (n, n_columns); entries beyond the number of slots are dropped."""
        most, columns = coef.topk(min(self.support.shape[1], coef.shape[1]), dim=1)
        self.support[:, : columns.shape[1]] = columns.masked_fill(most <= 0, self._empty)
        self.moved.zero_()

    def widen(self) -> None:
        """Double the number of slots."""
        self.support = pad(self.support, (0, self.support.shape[1]), value=self._empty)
        self.values = pad(self.values, (0, self.values.shape[1]))
        self.support_full.zero_()

    def rows(self, index: Tensor) -> ActiveSets:
        """Return new active sets with some of the problems, in their present state."""
        gram, corr, square, penalty, rank = self.problems
        own = gram if gram.dim() == 2 else gram[index], penalty if penalty.dim() == 1 else penalty[index]
        part = ActiveSets(Problems(own[0], corr[index], square[index], own[1], rank), self.tol)
        for name in self.STATE:
            setattr(part, name, getattr(self, name)[index])
        return part

    def step(self) -> None:
        """Take one step in all problems that are not done."""
        violation = self._measure()
        count = self._add_violators(violation.clone())
        self._walk(violation, count)

    def _measure(self) -> Tensor:
        """Update the gaps and `done`. Return the KKT violations (n, n_columns), which are gradient minus penalty."""
        gram, corr, square, penalty, _ = self.problems
        if gram.dim() == 2:
            grad = torch.addmm(corr, self.coef, gram, alpha=-1.0)
        else:
            grad = torch.baddbmm(corr[:, None], self.coef[:, None], gram, alpha=-1.0)[:, 0]
        # The residual is dual feasible once it is scaled so that no correlation exceeds its penalty.
        ratio = (grad * self._inverse).amax(1)
        violation = grad - penalty
        largest = violation.amax(1)
        scale = torch.where(self._free & (largest > 0), 0.0, 1.0 / ratio.clamp_min(1.0))
        cost = (self.values * penalty.expand_as(corr).gather(1, self.support)).sum(1)
        fitted = (self.values * corr.gather(1, self.support)).sum(1)
        rest = (square - fitted - (self.values * grad.gather(1, self.support)).sum(1)).clamp_min(0.0)
        gap = 0.5 * rest + cost - scale * (square - fitted) + 0.5 * scale**2 * rest
        self.gap.copy_(torch.where(self.done, self.gap, gap))
        # One more step than the gap requires removes the effect of the ridge.
        open_ = (self.values * violation.gather(1, self.support)).abs().amax(1)
        solved = (gap <= self.tol * 0.5 * square) | (torch.maximum(largest, open_) <= self._rounding)
        self.done |= (self.solved & solved) | (self.stalled >= _STALLED)
        self.solved.copy_(solved)
        return violation

    def _add_violators(self, violation: Tensor) -> Tensor:
        """Put the columns that violate the KKT conditions most into empty slots, and return their number (n,)."""
        # Columns are added only after a step that lowered the objective, so that none is added and removed forever.
        ready = self.moved & ~self.solved & ~self.done
        violation.scatter_(1, self.support, -torch.inf)
        least = torch.maximum(_JOINING * violation.amax(1), self._rounding)
        wanted = (violation > least[:, None]) & ready[:, None]
        # Columns and empty slots are numbered from 1; a column goes into the slot with its number.
        number = wanted.cumsum(1)
        column = torch.full_like(number, self._empty).scatter_(1, number * wanted, self._columns.expand_as(number))
        empty = self.support == self._empty
        place = empty.cumsum(1)
        count = number[:, -1]
        filled = empty & (place <= count[:, None])
        self.support.copy_(torch.where(filled, column.gather(1, place.clamp_max(self._empty)), self.support))
        self.support_full.copy_((count > 0) & ~empty.any(1))
        return count

    def _walk(self, violation: Tensor, count: Tensor) -> None:
        """Walk towards the optimum of the support. Members that reach zero on the way leave the support."""
        held = self.support != self._empty
        (n, n_columns), gram = violation.shape, self.problems.gram
        rows = self.support * n_columns
        if gram.dim() == 3:
            rows = rows + torch.arange(n, device=rows.device)[:, None] * n_columns**2
        inner = gram.take(rows[:, :, None] + self.support[:, None, :])
        inner.diagonal(dim1=1, dim2=2).copy_(1.0 + self._ridge * held.to(inner.dtype))
        missing = torch.where(held, violation.gather(1, self.support), 0.0)
        factor = torch.linalg.cholesky_ex(inner).L
        halfway = torch.linalg.solve_triangular(factor, missing[..., None], upper=False)
        change = torch.linalg.solve_triangular(factor.mT, halfway, upper=True)[..., 0]
        # The path bends where a member reaches zero. The walk goes at least to the first of these points.
        falling = held & (self.values + change <= 0)
        reach = torch.where(falling & (change < 0), -self.values / change, torch.where(falling, 0.0, torch.inf))
        first = reach.amin(1).clamp_max(1.0)
        lengths = torch.cat([first[:, None], self._lengths.expand(len(first), -1)], 1)
        moves = (self.values[:, None] + lengths[..., None] * change[:, None]).clamp_min(0.0) - self.values[:, None]
        gain = (moves * (missing[:, None] - 0.5 * (moves @ inner))).sum(2)
        length = lengths.gather(1, gain.argmax(1, keepdim=True))
        values = self.values + length * change
        # A member that reaches zero leaves even if rounding keeps it slightly positive, or it would block every later
        # step.
        gone = falling & ((values <= 0) | (reach <= length))
        going = ~self.done[:, None]
        self.values.copy_(torch.where(going, values.clamp_min(0.0).masked_fill(gone, 0.0), self.values))
        self.support.masked_fill_(gone & going, self._empty)
        self.moved.copy_(length[:, 0] > 0)
        whole = (length[:, 0] == 1) & ~gone.any(1)
        self.stalled.copy_(torch.where(whole & (count == 0), self.stalled + 1, 0))


def _solve_together(problems: Problems, tol: float, start: Tensor | None, bound: Bound | None) -> LassoResult:
    n_columns = problems.corr.shape[1]
    gram, corr, square, penalty, rank = problems
    # Append the column of zeros for empty slots, and more up to a multiple of 8, which makes matrix products faster.
    more = 8 - n_columns % 8
    gram, corr, penalty = pad(gram, (0, more, 0, more)), pad(corr, (0, more)), pad(penalty, (0, more), value=1.0)
    wide = Problems(gram, corr, square, penalty, rank)
    start = None if start is None else pad(start, (0, more))
    if bound is None:
        found = _solve_free(wide, tol, start)
    else:
        found = _solve_bounded(wide, tol, start, Bound(pad(bound.worth, (0, more)), bound.limit))
    return LassoResult(found.coef[:, :n_columns], found.gap)


def _solve_free(problems: Problems, tol: float, start: Tensor | None) -> LassoResult:
    coef, gap = torch.zeros_like(problems.corr), torch.zeros_like(problems.square)
    index = torch.arange(len(gap), device=gap.device)
    sets = ActiveSets(problems, tol)
    if start is not None:
        sets.start_from(start)
    for _ in range(_STEPS):
        sets.step()
        n_open, n_full = torch.stack([(~sets.done).sum(), sets.support_full.sum()]).tolist()
        if n_full:
            sets.widen()
        # Finished problems slow the others down, but removing them takes time too.
        if n_open <= _SPARSE * len(index):
            done, still = sets.done.nonzero()[:, 0], (~sets.done).nonzero()[:, 0]
            coef[index[done]], gap[index[done]] = sets.coef[done], sets.gap[done]
            index, sets = index[still], sets.rows(still)
        if n_open == 0:
            break
    coef[index], gap[index] = sets.coef, sets.gap
    return LassoResult(coef, gap)


def _solve_bounded(problems: Problems, tol: float, start: Tensor | None, bound: Bound) -> LassoResult:
    """Solve all problems together, with an upper bound on a weighted sum of the coefficients of each problem.

    The Lagrange multipliers of the bounds are found by cutting planes. The returned duality gaps are those of the
    problems without bounds.
    """
    gram, corr, square, penalty, _ = problems
    free = _solve_free(problems, tol, start)
    last = free.coef

    def solve(multiplier: Tensor) -> Tensor:
        nonlocal last
        last = _solve_free(problems._replace(penalty=penalty + multiplier[:, None] * bound.worth), tol, last).coef
        return last

    def cost(coef: Tensor) -> Tensor:
        images = coef @ gram if gram.dim() == 2 else (coef[:, None] @ gram)[:, 0]
        return 0.5 * square + (coef * (0.5 * images - corr + penalty)).sum(1)

    found = bounded_optimum(free.coef, solve, cost, bound, tol * 0.5 * square)
    return LassoResult(found, free.gap)
