"""The course of a film in a bounded number of figures: what its page, its figures and its claims are made of."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from psmt.evaluation import FrameRow, Interval, RolloutRow, mean_interval
from psmt.report import TIE
from psmt.types import Array

MOST_STRETCHES = 8192
"""Stretches that a film is cut into, at the most: up to so many frames each is one."""

BLOCK = 25
"""Successive frames that depend on each other, at the most: about a second."""

MOST_LOSSES = 3
"""Losses that are told one by one."""

_BATCH = 1 << 12
"""Lines whose sums are made at once."""


class FrameSummary(NamedTuple):
    """A method over all predicted frames, or over those of one step of the rollouts."""

    method: str
    mse: float
    psnr: float
    ssim: float
    ratio: float
    """Mean MSE divided by that of copying; below 1 is better than copying."""
    wins: float
    """Share of frames in which it was better than copying."""


def summarise_frames(rows: Iterable[FrameRow] | Iterable[RolloutRow]) -> list[FrameSummary]:
    """Means by method, least error first. PSNR and SSIM are taken frame by frame, then averaged."""
    sums: dict[str, _Sums] = {}
    for row in rows:
        sums.setdefault(row.method, _Sums()).add(row)
    return _summaries(sums)


class Loss(NamedTuple):
    """Frames from `start` to `stop` (both of them) in which copying was better."""

    start: int
    stop: int
    excess: float
    """By how much, summed over the frames."""


class Losses(NamedTuple):
    """All stretches in which copying was better."""

    worst: Sequence[Loss]
    """The most costly ones, in this order."""
    n_frames: int
    n: int
    n_with_cut: int
    """Those in which a scene begins."""


class Stretches(NamedTuple):
    """A film cut into stretches of equal length, in order; in most films each is one frame."""

    length: int
    """Frames in each; the last may have fewer."""
    frames: Array
    """(n,): the first frame of each."""
    mse: dict[str, Array]
    """(n,) by method: the sum over the stretch, divided by `length`."""
    copy_mse: Array
    """(n,): the same for copying."""
    surprise: Array
    """(n,): the largest of the stretch; NaN where there is none."""
    cuts: Array
    """The first cut of each stretch that has one."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """All lines of a film, in numbers whose number does not grow with it."""

    n: int
    """Frames that were predicted."""
    summaries: Sequence[FrameSummary]
    """One frame ahead, least error first."""
    rollouts: dict[int, Sequence[FrameSummary]]
    """The same by step."""
    n_rollouts: int
    losses: Losses
    stretches: Stretches

    @classmethod
    def of(cls, rows: Iterable[FrameRow], rollouts: Iterable[RolloutRow]) -> Course:
        """The course of a film by its lines, which are read more than once."""
        n = sum(row.method == "psmt" for row in rows)
        sums: dict[str, _Sums] = {}
        losses, stretches = _LossesSoFar(), _StretchesSoFar(n)
        for row in rows:
            sums.setdefault(row.method, _Sums()).add(row)
            stretches.add(row)
            if row.method == "psmt":
                losses.add(row)
        by_step: dict[int, dict[str, _Sums]] = {}
        n_rollouts = 0
        for line in rollouts:
            by_step.setdefault(line.step, {}).setdefault(line.method, _Sums()).add(line)
            n_rollouts += (line.method, line.step) == ("psmt", 1)
        return cls(
            n=n,
            summaries=_summaries(sums),
            rollouts={step: _summaries(by_step[step]) for step in sorted(by_step)},
            n_rollouts=n_rollouts,
            losses=losses.end(),
            stretches=stretches.end(),
        )

    def summary(self, method: str) -> FrameSummary:
        """One method, one frame ahead."""
        return summary_of(self.summaries, method)

    def excess(self, method: str) -> Interval:
        """By what share of a method's mean error that of PSMT exceeds it; NaN where there is no error."""
        own, other = (self.stretches.mse[name] for name in ("psmt", method))
        scale = float(other.mean())
        if scale <= 0:
            return Interval(np.nan, -np.inf, np.inf)
        # Blocks of dependent frames, but in a short film eight of them: fewer than three tell nothing.
        block = max(min(-(-BLOCK // self.stretches.length), len(own) // 8), 1)
        return mean_interval((own - other) / scale, block=block)


def summary_of(summaries: Iterable[FrameSummary], method: str) -> FrameSummary:
    """That of one method among others."""
    return next(summary for summary in summaries if summary.method == method)


class _Sums:
    """Sums over the lines of one method, of which a batch is held."""

    def __init__(self) -> None:
        self._batch = array("d")
        self._n = self._wins = 0
        self._sums = np.zeros(4)

    def add(self, row: FrameRow | RolloutRow) -> None:
        self._batch.extend((row.mse, row.copy_mse, row.psnr, row.ssim))
        if len(self._batch) == 4 * _BATCH:
            self._reduce()

    def _reduce(self) -> None:
        values = np.array(self._batch).reshape(-1, 4).T
        self._n += values.shape[1]
        self._wins += int(np.count_nonzero(values[0] < values[1]))
        self._sums += [column.sum() for column in values]
        self._batch = array("d")

    def summary(self, method: str) -> FrameSummary:
        if self._batch:
            self._reduce()
        error, copied, psnr, ssim = self._sums.tolist()
        share = error / copied if copied > 0 else float("nan")
        return FrameSummary(method, error / self._n, psnr / self._n, ssim / self._n, share, self._wins / self._n)


def _summaries(sums: dict[str, _Sums]) -> list[FrameSummary]:
    return sorted((own.summary(method) for method, own in sums.items()), key=lambda summary: summary.mse)


class _LossesSoFar:
    """Losses while lines come."""

    def __init__(self) -> None:
        self._worst: list[Loss] = []
        self._n_frames = self._n = self._n_with_cut = 0
        self._now: Loss | None = None
        self._cut = False

    def add(self, row: FrameRow) -> None:
        """One more frame."""
        if row.mse > (1 + TIE) * row.copy_mse:
            start, _, excess = self._now or (row.frame, row.frame, 0.0)
            self._now = Loss(start, row.frame, excess + (row.mse - row.copy_mse))
            self._cut |= bool(row.cut)
            self._n_frames += 1
        elif self._now is not None:
            self._close(self._now)

    def _close(self, loss: Loss) -> None:
        self._worst = nlargest(MOST_LOSSES, [*self._worst, loss], key=lambda loss: loss.excess)
        self._n, self._n_with_cut = self._n + 1, self._n_with_cut + self._cut
        self._now, self._cut = None, False

    def end(self) -> Losses:
        """All of them."""
        if self._now is not None:
            self._close(self._now)
        return Losses(self._worst, self._n_frames, self._n, self._n_with_cut)


class _StretchesSoFar:
    """Stretches of a film of `n` predicted frames while lines come."""

    def __init__(self, n: int) -> None:
        self._length = max(-(-n // MOST_STRETCHES), 1)
        self._n = -(-n // self._length)
        self._frames, self._copied = np.zeros(self._n), np.zeros(self._n)
        self._sums: dict[str, Array] = {}
        self._surprise = np.full(self._n, np.nan)
        self._cuts: dict[int, int] = {}
        self._first: int | None = None

    def add(self, row: FrameRow) -> None:
        """One more line; frames come in order."""
        self._first = row.frame if self._first is None else self._first
        k, rest = divmod(row.frame - self._first, self._length)
        self._sums.setdefault(row.method, np.zeros(self._n))[k] += row.mse
        if row.method == "psmt":
            if rest == 0:
                self._frames[k] = row.frame
            self._copied[k] += row.copy_mse
            self._surprise[k] = np.fmax(self._surprise[k], row.surprise)
            if row.cut:
                self._cuts.setdefault(k, row.frame)

    def end(self) -> Stretches:
        """All of them."""
        return Stretches(
            self._length,
            self._frames,
            {name: sums / self._length for name, sums in self._sums.items()},
            self._copied / self._length,
            self._surprise,
            np.array([*self._cuts.values()]),
        )
