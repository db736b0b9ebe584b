"""Exact non-negative lasso for many problems at once, in torch.

The problems are those of `psmt.lasso`, and so is the method: a primal active set that stops by the duality gap. Here
all problems take their steps together. In one step, a problem that is optimal on its support lets in the columns that
violate the optimality conditions most; then every problem walks towards the optimum of its support, as far as the first
member that reaches zero, which leaves. Supports are rows of slots, some of them empty, so that all problems have arrays
of one shape, and a step is a fixed sequence of operations that never looks at a result: on a GPU it is recorded once as
a CUDA graph and replayed.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor

from psmt.engines.torch_graphs import recorded

_NEAR = 0.7
"""Columns join whose violation is at least this fraction of the largest."""

_RIDGE = 1e-13
"""Added to the squared norm of each column on a support. A column in the span of the others is then a direction of
almost no curvature: the walk along it ends where a member reaches zero, which is the exchange that is needed there.
Solutions are not biased: each step solves for what the last one left."""

_ROUNDING = 1e-14
"""Violations of optimality below this fraction of the largest correlation are rounding."""

_IDLE = 3
"""Steps without a column to let in, after which nothing but rounding is left."""

_SLOTS = 16
"""Size of the supports at first; doubled when a problem needs more."""

_BATCH = 1 << 17
"""Problems that take their steps together at the most: 8 GB at 512 columns."""

_RECORDED = 1 << 10
"""Problems whose steps are recorded at the most; more of them keep a GPU busy without."""

_ROUND = 64
"""Recorded problems come in multiples of so many."""

_LENGTHS = (1.0, 0.5, 0.25, 0.125)
"""Shares of the way to the optimum of a support that are tried."""

_SPARSE = 0.6
"""Problems that are done are sorted out when no more than this fraction is still open."""

_LOOK = 2
"""Steps between two looks at whether repeated problems are done: a look waits for the device."""

_STEPS = 2000
"""Steps at the most; problems take a few dozen."""


class LassoResult(NamedTuple):
    """Coefficients (n, n_columns) and the duality gaps (n,) that vouch for them."""

    coef: Tensor
    gap: Tensor


class Problems(NamedTuple):
    """What the solver needs to know of n problems.

    Columns of zeros fill the last of the columns up to a multiple of 8, which matrix products like; there is at least
    one, which empty slots name.
    """

    columns: Tensor
    """(n, n_columns, n_features), one per row, or their inner products (n_columns, n_columns) if all have the same."""
    corr: Tensor
    """(n, n_columns): inner products of columns and targets."""
    square: Tensor
    """(n,): squared norms of the targets."""
    penalty: Tensor
    """(1, n_columns) or (n, n_columns): price of a unit of each coefficient, >= 0."""

    def rows(self, index: Tensor) -> Problems:
        """Some of the problems."""
        return Problems(
            self.columns if self.columns.dim() == 2 else self.columns[index],
            self.corr[index],
            self.square[index],
            self.penalty if len(self.penalty) == 1 else self.penalty[index],
        )


def padded(columns: Tensor) -> Tensor:
    """Columns (.., n_columns, n_features), one per row, with the rows of zeros that `Problems` asks for."""
    return torch.nn.functional.pad(columns, (0, 0, 0, 8 - columns.shape[-2] % 8))


def pose(columns: Tensor, targets: Tensor, penalty: Tensor, gram: Tensor | None = None) -> Problems:
    """Problems of padded columns (n_columns, n_features) or (n, n_columns, n_features), with targets (n, n_features).

    The penalty is (n_columns,) or (n, n_columns), without those of the padding. Where the columns are those of all
    problems, `gram` are their inner products if they are known.
    """
    corr = targets @ columns.mT if columns.dim() == 2 else (columns @ targets[..., None])[..., 0]
    prices = torch.nn.functional.pad(penalty, (0, columns.shape[-2] - penalty.shape[-1]), value=1.0)
    return Problems(
        columns if columns.dim() == 3 else columns @ columns.mT if gram is None else gram,
        corr,
        targets.square().sum(1),
        prices if penalty.dim() == 2 else prices[None],
    )


class ActiveSets:
    """Problems that take their steps together until the gap is below ``tol * square / 2``."""

    STATE = ("support", "values", "gap", "moved", "solved", "done", "crowded", "idle")

    def __init__(self, problems: Problems, tol: float, *, slots: int = _SLOTS) -> None:
        self.problems, self.tol = problems, tol
        n, n_columns = problems.corr.shape
        self._empty = n_columns - 1
        self._columns = torch.arange(n_columns, device=problems.corr.device)
        self._inverse = torch.zeros_like(problems.penalty)
        self._free = torch.zeros(len(problems.penalty), dtype=torch.bool, device=problems.corr.device)
        self._rounding = torch.zeros_like(problems.square)
        self._prepare()
        self._lengths = problems.corr.new_tensor(_LENGTHS)
        self.support = torch.full((n, slots), self._empty, device=problems.corr.device)
        self.values = problems.corr.new_zeros(n, slots)
        self.gap = problems.corr.new_full((n,), torch.inf)
        self.moved = torch.ones(n, dtype=torch.bool, device=problems.corr.device)
        self.solved = torch.zeros_like(self.moved)
        self.done = torch.zeros_like(self.moved)
        self.crowded = torch.zeros_like(self.moved)
        self.idle = torch.zeros_like(self.moved, dtype=torch.int64)

    def _prepare(self) -> None:
        """What all steps need of the problems."""
        penalty = self.problems.penalty
        self._inverse.copy_(torch.where(penalty > 0, 1.0 / penalty, 0.0))
        self._free.copy_((penalty == 0).any(1))
        self._rounding.copy_(_ROUNDING * self.problems.corr.abs().amax(1))

    @property
    def coef(self) -> Tensor:
        """Coefficients (n, n_columns)."""
        return torch.zeros_like(self.problems.corr).scatter_(1, self.support, self.values)

    def start_from(self, coef: Tensor) -> None:
        """Begin with the problems as they are now and the supports of other solutions (n, n_columns).

        Supports are taken as far as there are slots.
        """
        self._prepare()
        most, columns = coef.topk(min(self.support.shape[1], coef.shape[1]), dim=1)
        self.support.fill_(self._empty)
        self.support[:, : columns.shape[1]] = columns.masked_fill(most <= 0, self._empty)
        for state in (self.values, self.moved, self.solved, self.done, self.crowded, self.idle):
            state.zero_()

    def widen(self) -> None:
        """Twice as many slots."""
        self.support = torch.nn.functional.pad(self.support, (0, self.support.shape[1]), value=self._empty)
        self.values = torch.nn.functional.pad(self.values, (0, self.values.shape[1]))
        self.crowded.zero_()

    def rows(self, index: Tensor) -> ActiveSets:
        """Some of the problems, as they stand."""
        part = ActiveSets(self.problems.rows(index), self.tol)
        for name in self.STATE:
            setattr(part, name, getattr(self, name)[index])
        return part

    def step(self) -> None:
        """One step of all problems that are not done."""
        excess = self._measure()
        count = self._let_in(excess.clone())
        self._walk(excess, count)

    def _measure(self) -> Tensor:
        """Excess (n, n_columns) of the gradient over the penalty; renews the gaps, and says who is done."""
        columns, corr, square, penalty = self.problems
        coef = self.coef
        if columns.dim() == 2:
            grad = torch.addmm(corr, coef, columns, alpha=-1.0)
        else:
            grad = torch.baddbmm(corr[..., None], columns, (coef[:, None] @ columns).mT, alpha=-1.0)[..., 0]
        # The residual, scaled until no column correlates with it by more than its penalty, is dual feasible.
        ratio = (grad * self._inverse).amax(1)
        excess = grad - penalty
        violation = excess.amax(1)
        scale = torch.where(self._free & (violation > 0), 0.0, 1.0 / ratio.clamp_min(1.0))
        cost = (self.values * penalty.expand_as(corr).gather(1, self.support)).sum(1)
        fitted = (self.values * corr.gather(1, self.support)).sum(1)
        rest = (square - fitted - (self.values * grad.gather(1, self.support)).sum(1)).clamp_min(0.0)
        gap = 0.5 * rest + cost - scale * (square - fitted) + 0.5 * scale**2 * rest
        self.gap.copy_(torch.where(self.done, self.gap, gap))
        # One step more than the gap asks for takes the ridge out of the solution.
        open_ = (self.values * excess.gather(1, self.support)).abs().amax(1)
        solved = (gap <= self.tol * 0.5 * square) | (torch.maximum(violation, open_) <= self._rounding)
        self.done |= (self.solved & solved) | (self.idle >= _IDLE)
        self.solved.copy_(solved)
        return excess

    def _let_in(self, excess: Tensor) -> Tensor:
        """Put the columns that violate optimality most into empty slots; return how many there were (n,)."""
        # Only after a step that lowered the objective: nothing is let in and sent away again for ever.
        ready = self.moved & ~self.solved & ~self.done
        excess.scatter_(1, self.support, -torch.inf)
        least = torch.maximum(_NEAR * excess.amax(1), self._rounding)
        wanted = (excess > least[:, None]) & ready[:, None]
        # Columns and empty slots are numbered from 1, and those with the same number find each other.
        number = wanted.cumsum(1)
        column = torch.full_like(number, self._empty).scatter_(1, number * wanted, self._columns.expand_as(number))
        empty = self.support == self._empty
        place = empty.cumsum(1)
        count = number[:, -1]
        filled = empty & (place <= count[:, None])
        self.support.copy_(torch.where(filled, column.gather(1, place.clamp_max(self._empty)), self.support))
        self.crowded.copy_((count > 0) & ~empty.any(1))
        return count

    def _walk(self, excess: Tensor, count: Tensor) -> None:
        """Go towards the optimum of the support; what reaches zero on the way leaves."""
        held = self.support != self._empty
        columns = self.problems.columns
        if columns.dim() == 2:
            inner = columns.take(self.support[:, :, None] * excess.shape[1] + self.support[:, None, :])
        else:
            chosen = columns.gather(1, self.support[..., None].expand(-1, -1, columns.shape[2]))
            inner = chosen @ chosen.mT
        inner.diagonal(dim1=1, dim2=2).copy_(1.0 + _RIDGE * held.to(inner.dtype))
        missing = torch.where(held, excess.gather(1, self.support), 0.0)
        factor = torch.linalg.cholesky_ex(inner).L
        halfway = torch.linalg.solve_triangular(factor, missing[..., None], upper=False)
        change = torch.linalg.solve_triangular(factor.mT, halfway, upper=True)[..., 0]
        # The line is bent where a member reaches zero. It is followed to the first such place at least.
        falling = held & (self.values + change <= 0)
        first = torch.where(falling & (change < 0), -self.values / change, torch.where(falling, 0.0, 1.0)).amin(1)
        lengths = torch.cat([first[:, None], self._lengths.expand(len(first), -1)], 1)
        moves = (self.values[:, None] + lengths[..., None] * change[:, None]).clamp_min(0.0) - self.values[:, None]
        gain = (moves * (missing[:, None] - 0.5 * (moves @ inner))).sum(2)
        length = lengths.gather(1, gain.argmax(1, keepdim=True))
        values = self.values + length * change
        gone = falling & (values <= 0)
        going = ~self.done[:, None]
        self.values.copy_(torch.where(going, values.clamp_min(0.0), self.values))
        self.support.masked_fill_(gone & going, self._empty)
        self.moved.copy_(length[:, 0] > 0)
        whole = (length[:, 0] == 1) & ~gone.any(1)
        self.idle.copy_(torch.where(whole & (count == 0), self.idle + 1, 0))


def solve(problems: Problems, *, tol: float) -> LassoResult:
    """Coefficients (n, n_columns), those of the padding included, and duality gaps (n,)."""
    coef, gap = torch.zeros_like(problems.corr), torch.zeros_like(problems.square)
    index = torch.arange(len(gap), device=gap.device)
    sets = ActiveSets(problems, tol)
    for _ in range(_STEPS):
        sets.step()
        n_open, crowded = torch.stack([(~sets.done).sum(), sets.crowded.sum()]).tolist()
        if crowded:
            sets.widen()
        # Those that are done stand in the way of the others, but to sort them out has its price.
        if n_open <= _SPARSE * len(index):
            done, still = sets.done.nonzero()[:, 0], (~sets.done).nonzero()[:, 0]
            coef[index[done]], gap[index[done]] = sets.coef[done], sets.gap[done]
            index, sets = index[still], sets.rows(still)
        if n_open == 0:
            break
    coef[index], gap[index] = sets.coef, sets.gap
    return LassoResult(coef, gap)


class Repeated:
    """Problems of one shape, solved again and again with other numbers and a good guess, their steps recorded.

    Parameters
    ----------
    problems : Problems
        The first ones; only their shapes and device matter.
    """

    def __init__(self, problems: Problems, tol: float) -> None:
        self._sets = ActiveSets(Problems(*(part.clone() for part in problems)), tol, slots=2 * _SLOTS)
        self._busy = Lock()
        self._record()

    def _record(self) -> None:
        def steps() -> None:
            for _ in range(_LOOK):
                self._sets.step()

        self._steps = recorded(steps, self._sets.gap.device)

    def solve(self, problems: Problems, start: Tensor | None = None) -> LassoResult:
        """Solution of other problems of the same shapes, begun with the supports of `start` (n, n_columns)."""
        with self._busy:
            for own, given in zip(self._sets.problems, problems, strict=True):
                own.copy_(given)
            self._sets.start_from(torch.zeros_like(problems.corr) if start is None else start)
            for _ in range(_STEPS // _LOOK):
                self._steps()
                done, crowded = torch.stack([self._sets.done.all(), self._sets.crowded.any()]).tolist()
                if done:
                    break
                if crowded:
                    self._widen()
            return LassoResult(self._sets.coef, self._sets.gap.clone())

    def _widen(self) -> None:
        self._sets.widen()
        state = [getattr(self._sets, name).clone() for name in ActiveSets.STATE]
        self._record()
        for name, value in zip(ActiveSets.STATE, state, strict=True):
            getattr(self._sets, name).copy_(value)


class Solvers:
    """Solvers by shape, kept because to record one takes longer than many solutions do."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], Repeated] = {}

    def solve(self, problems: Problems, tol: float, start: Tensor | None = None) -> LassoResult:
        """Solution of some problems, begun with the supports of `start` (n, n_columns)."""
        key = (tol, *(part.shape for part in problems))
        if key not in self._kept:
            self._kept[key] = Repeated(problems, tol)
        return self._kept[key].solve(problems, start)

    def solve_many(
        self, columns: Tensor, targets: Tensor, penalty: Tensor, *, tol: float, gram: Tensor | None = None
    ) -> LassoResult:
        """Coefficients (n, n_columns) and duality gaps (n,) of any number of targets (n, n_features).

        The columns (n_columns, n_features) are padded and have unit norm or are zero; the penalty is (n_columns,),
        without that of the padding.
        """
        n, n_columns = len(targets), len(penalty)
        gram = columns @ columns.mT if gram is None else gram
        if targets.is_cuda and n <= _RECORDED:
            # Few launches matter more than few operations. Targets of zero fill up to a shape that comes again.
            full = torch.nn.functional.pad(targets, (0, 0, 0, -n % _ROUND))
            found = self.solve(pose(columns, full, penalty, gram), tol)
            return LassoResult(found.coef[:n, :n_columns], found.gap[:n])
        coef, gap = targets.new_empty(n, n_columns), targets.new_empty(n)
        for first in range(0, n, _BATCH):
            part = slice(first, first + _BATCH)
            found = solve(pose(columns, targets[part], penalty, gram), tol=tol)
            coef[part], gap[part] = found.coef[:, :n_columns], found.gap
        return LassoResult(coef, gap)
