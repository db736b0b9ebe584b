"""Batched active-set method: the solver of `torch.lasso` where there is no kernel for the device.

All problems take their steps together. In one step, a problem that is optimal on its support adds the columns that
violate the Karush-Kuhn-Tucker (KKT) conditions most; then every problem walks towards the optimum of its support, by a
fresh Cholesky factor, as far as the first member that reaches zero, which leaves. A problem ends by its duality gap.
Supports are rows of slots, some of them empty, so that all problems have arrays of one shape.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from psmt.engines.contract import Bound, LassoResult
from psmt.engines.torch.problems import Problems
from psmt.numerics.cutting_planes import bounded

_NEAR = 0.7
"""Columns join whose violation is at least this fraction of the largest."""

_RIDGE = 450.0
"""Added to the squared norm of each column on a support, in units of the rounding of 1. A column in the span of the
others is then a direction of almost no curvature: the walk along it ends where a member reaches zero, which is the
exchange that is needed there. Solutions are not biased: each step solves for what the last one left."""

_ROUNDING = 45.0
"""KKT violations below this fraction of the largest correlation are rounding, in units of that of 1."""

_STALLED = 3
"""Steps without a column to add, after which nothing but rounding is left."""

_SLOTS = 16
"""Size of the supports at first; doubled when a problem needs more."""

_LENGTHS = (1.0, 0.5, 0.25, 0.125)
"""Shares of the way to the optimum of a support that are tried."""

_SPARSE = 0.6
"""Problems that are done are sorted out when no more than this fraction is still open."""

_STEPS = 2000
"""Steps at the most; problems take a few dozen."""


class ActiveSets:
    """Problems that take their steps together until the gap is below ``tol * square / 2``.

    Empty slots of a support name the last column, which is zero.
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
        """Coefficients (n, n_columns)."""
        return torch.zeros_like(self.problems.corr).scatter_(1, self.support, self.values)

    def start_from(self, coef: Tensor) -> None:
        """Begin with the supports of other solutions (n, n_columns), as far as there are slots."""
        most, columns = coef.topk(min(self.support.shape[1], coef.shape[1]), dim=1)
        self.support[:, : columns.shape[1]] = columns.masked_fill(most <= 0, self._empty)
        self.moved.zero_()

    def widen(self) -> None:
        """Twice as many slots."""
        self.support = pad(self.support, (0, self.support.shape[1]), value=self._empty)
        self.values = pad(self.values, (0, self.values.shape[1]))
        self.support_full.zero_()

    def rows(self, index: Tensor) -> ActiveSets:
        """Some of the problems, as they stand."""
        gram, corr, square, penalty, rank = self.problems
        own = gram if gram.dim() == 2 else gram[index], penalty if penalty.dim() == 1 else penalty[index]
        part = ActiveSets(Problems(own[0], corr[index], square[index], own[1], rank), self.tol)
        for name in self.STATE:
            setattr(part, name, getattr(self, name)[index])
        return part

    def step(self) -> None:
        """One step of all problems that are not done."""
        violation = self._measure()
        count = self._add_violators(violation.clone())
        self._walk(violation, count)

    def _measure(self) -> Tensor:
        """KKT violations (n, n_columns), gradient less penalty; renews the duality gaps, and says who is done."""
        gram, corr, square, penalty, _ = self.problems
        if gram.dim() == 2:
            grad = torch.addmm(corr, self.coef, gram, alpha=-1.0)
        else:
            grad = torch.baddbmm(corr[:, None], self.coef[:, None], gram, alpha=-1.0)[:, 0]
        # The residual, scaled until no column correlates with it by more than its penalty, is dual feasible.
        ratio = (grad * self._inverse).amax(1)
        violation = grad - penalty
        largest = violation.amax(1)
        scale = torch.where(self._free & (largest > 0), 0.0, 1.0 / ratio.clamp_min(1.0))
        cost = (self.values * penalty.expand_as(corr).gather(1, self.support)).sum(1)
        fitted = (self.values * corr.gather(1, self.support)).sum(1)
        rest = (square - fitted - (self.values * grad.gather(1, self.support)).sum(1)).clamp_min(0.0)
        gap = 0.5 * rest + cost - scale * (square - fitted) + 0.5 * scale**2 * rest
        self.gap.copy_(torch.where(self.done, self.gap, gap))
        # One step more than the gap asks for takes the ridge out of the solution.
        open_ = (self.values * violation.gather(1, self.support)).abs().amax(1)
        solved = (gap <= self.tol * 0.5 * square) | (torch.maximum(largest, open_) <= self._rounding)
        self.done |= (self.solved & solved) | (self.stalled >= _STALLED)
        self.solved.copy_(solved)
        return violation

    def _add_violators(self, violation: Tensor) -> Tensor:
        """How many columns (n,) violate the KKT conditions most; they are put into empty slots."""
        # Only after a step that lowered the objective: nothing is added and sent away again for ever.
        ready = self.moved & ~self.solved & ~self.done
        violation.scatter_(1, self.support, -torch.inf)
        least = torch.maximum(_NEAR * violation.amax(1), self._rounding)
        wanted = (violation > least[:, None]) & ready[:, None]
        # Columns and empty slots are numbered from 1, and those with the same number find each other.
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
        """Go towards the optimum of the support; what reaches zero on the way leaves."""
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
        # The line is bent where a member reaches zero. It is followed to the first such place at least.
        falling = held & (self.values + change <= 0)
        reach = torch.where(falling & (change < 0), -self.values / change, torch.where(falling, 0.0, torch.inf))
        first = reach.amin(1).clamp_max(1.0)
        lengths = torch.cat([first[:, None], self._lengths.expand(len(first), -1)], 1)
        moves = (self.values[:, None] + lengths[..., None] * change[:, None]).clamp_min(0.0) - self.values[:, None]
        gain = (moves * (missing[:, None] - 0.5 * (moves @ inner))).sum(2)
        length = lengths.gather(1, gain.argmax(1, keepdim=True))
        values = self.values + length * change
        # Who is reached leaves, even if rounding left a little of it: else it would be in the way for ever.
        gone = falling & ((values <= 0) | (reach <= length))
        going = ~self.done[:, None]
        self.values.copy_(torch.where(going, values.clamp_min(0.0).masked_fill(gone, 0.0), self.values))
        self.support.masked_fill_(gone & going, self._empty)
        self.moved.copy_(length[:, 0] > 0)
        whole = (length[:, 0] == 1) & ~gone.any(1)
        self.stalled.copy_(torch.where(whole & (count == 0), self.stalled + 1, 0))


def solve(problems: Problems, *, tol: float, start: Tensor | None = None, bound: Bound | None = None) -> LassoResult:
    """As `psmt.engines.torch.lasso.solve`."""
    n_columns = problems.corr.shape[1]
    gram, corr, square, penalty, rank = problems
    # The column of zeros that empty slots name, and more of them up to a multiple of 8, which matrix products like.
    more = 8 - n_columns % 8
    gram, corr, penalty = pad(gram, (0, more, 0, more)), pad(corr, (0, more)), pad(penalty, (0, more), value=1.0)
    wide = Problems(gram, corr, square, penalty, rank)
    start = None if start is None else pad(start, (0, more))
    if bound is None:
        found = _solve(wide, tol, start)
    else:
        found = _solve_bounded(wide, tol, start, Bound(pad(bound.worth, (0, more)), bound.limit))
    return LassoResult(found.coef[:, :n_columns], found.gap)


def _solve(problems: Problems, tol: float, start: Tensor | None) -> LassoResult:
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
        # Those that are done stand in the way of the others, but to sort them out costs time.
        if n_open <= _SPARSE * len(index):
            done, still = sets.done.nonzero()[:, 0], (~sets.done).nonzero()[:, 0]
            coef[index[done]], gap[index[done]] = sets.coef[done], sets.gap[done]
            index, sets = index[still], sets.rows(still)
        if n_open == 0:
            break
    coef[index], gap[index] = sets.coef, sets.gap
    return LassoResult(coef, gap)


def _solve_bounded(problems: Problems, tol: float, start: Tensor | None, bound: Bound) -> LassoResult:
    """The bounded problems, by cutting planes for all of them at once; the gaps are of the problems without bound."""
    gram, corr, square, penalty, _ = problems
    free = _solve(problems, tol, start)
    last = free.coef

    def solve(multiplier: Tensor) -> Tensor:
        nonlocal last
        last = _solve(problems._replace(penalty=penalty + multiplier[:, None] * bound.worth), tol, last).coef
        return last

    def cost(coef: Tensor) -> Tensor:
        images = coef @ gram if gram.dim() == 2 else (coef[:, None] @ gram)[:, 0]
        return 0.5 * square + (coef * (0.5 * images - corr + penalty)).sum(1)

    return LassoResult(bounded(free.coef, solve, cost, bound.worth, bound.limit, tol * 0.5 * square), free.gap)
