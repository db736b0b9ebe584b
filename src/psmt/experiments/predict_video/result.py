"""Result of predicting a film: tables on disk, their summary, error maps and a few pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from psmt.evaluation import FrameRow, Interval, RolloutRow, mean_interval
from psmt.experiments.predict_video.recording import CsvLog, Event, Recorder, Snapshot, row_dtype
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.report import TIE
from psmt.types import Array
from psmt.video import FRAME_BASELINES
from psmt.video.events import Kind

FRAME_METHODS = {"psmt": "PSMT", **{name: entry.label for name, entry in FRAME_BASELINES.items()}}
"""Methods by their name in files, with the name for people."""

MOST_BINS = 8192
"""Maximal number of bins over time; up to this many frames, a bin is one frame."""

BLOCK = 25
"""Block length of the bootstrap in frames: errors are correlated over about a second."""

MOST_LOSSES = 3
"""Stretches in which copying was better that are listed one by one."""

MOST_EVENTS = 50
"""Events that are listed: the largest ones."""


class FrameSummary(NamedTuple):
    """Means of a method over all predicted frames, or over one step of all rollouts."""

    method: str
    mse: float
    psnr: float
    ssim: float
    ratio: float
    """Mean MSE divided by that of copying; below 1 is better than copying."""
    wins: float
    """Fraction of frames in which it was better than copying."""


def summarise_frames(rows: Iterable[FrameRow] | Iterable[RolloutRow]) -> dict[str, FrameSummary]:
    """Means by method, lowest error first. PSNR and SSIM are computed frame by frame, then averaged."""
    listed = list(rows)
    return _summaries(_group_sums([np.array(listed, dtype=row_dtype(type(listed[0])))], "method"))


class Loss(NamedTuple):
    """Frames from `start` to `stop` (inclusive) in which copying was better."""

    start: int
    stop: int
    excess: float
    """Difference of the errors, summed over the frames."""


class Losses(NamedTuple):
    """All stretches in which copying was better."""

    worst: Sequence[Loss]
    """Those with the largest excess, in descending order."""
    n_frames: int
    n: int
    n_with_cut: int
    """Number of stretches in which a scene begins."""


class TimeBins(NamedTuple):
    """Scores over time in bins of equal length; in most films a bin is one frame."""

    length: int
    """Frames per bin; the last bin may have fewer."""
    frames: NDArray[np.int64]
    """(n,): first frame of each bin."""
    mse: dict[str, Array]
    """(n,) by method: sum over the bin divided by `length`."""
    copy_mse: Array
    """(n,): the same for copying."""
    surprise: Array
    """(n,): the largest of the bin; NaN if there is none."""
    cuts: Array
    """First cut of each bin that has one."""


@dataclass(frozen=True, kw_only=True)
class FilmScores:
    """Summary of all scores of a film. Its size does not grow with the film."""

    n: int
    """Number of predicted frames."""
    summaries: dict[str, FrameSummary]
    """One frame ahead, by method, lowest error first."""
    rollouts: dict[int, dict[str, FrameSummary]]
    """The same by step of the rollouts."""
    n_rollouts: int
    losses: Losses
    bins: TimeBins

    @classmethod
    def of(cls, rows: CsvLog[FrameRow], rollouts: CsvLog[RolloutRow]) -> Self:
        """Summarise the tables of a film."""
        sums = _group_sums(rows.blocks(), "method")
        steps = _group_sums(rollouts.blocks(), "step", "method")
        n = int(sums[("psmt",)][0])
        return cls(
            n=n,
            summaries=_summaries(sums),
            rollouts={
                step: _summaries({key: own for key, own in steps.items() if key[0] == step})
                for step in sorted({step for step, _ in steps})
            },
            n_rollouts=int(steps[1, "psmt"][0]) if steps else 0,
            losses=_losses(row for row in rows if row.method == "psmt"),
            bins=_bins(rows.blocks(), n),
        )

    def excess(self, method: str) -> Interval:
        """Error of PSMT minus that of a method, relative to the latter; NaN if that is zero."""
        own, other = self.bins.mse["psmt"], self.bins.mse[method]
        scale = float(other.mean())
        if scale <= 0:
            return Interval(np.nan, -np.inf, np.inf)
        # A short film has eight blocks, as an interval needs at least three.
        block = max(min(-(-BLOCK // self.bins.length), len(own) // 8), 1)
        return mean_interval((own - other) / scale, block=block)


def _group_sums(blocks: Iterable[NDArray[Any]], *by: str) -> dict[tuple[Any, ...], Array]:
    """Number, wins, and sums of MSE, MSE of copying, PSNR and SSIM of the rows of each group."""
    sums: dict[tuple[Any, ...], Array] = {}
    for block in blocks:
        _, first, group = np.unique(block[[*by]], return_index=True, return_inverse=True)
        for k in np.argsort(first):
            rows = block[group == k]
            totals = [rows[name].sum() for name in ("mse", "copy_mse", "psnr", "ssim")]
            wins = np.count_nonzero(rows["mse"] < rows["copy_mse"])
            key = rows[[*by]][0].item()
            sums[key] = sums.get(key, 0.0) + np.array([len(rows), wins, *totals])
    return sums


def _summaries(sums: Mapping[tuple[Any, ...], Array]) -> dict[str, FrameSummary]:
    summaries = []
    for (*_, method), own in sums.items():
        n, wins, error, copied, psnr, ssim = own.tolist()
        ratio = error / copied if copied > 0 else float("nan")
        summaries.append(FrameSummary(method, error / n, psnr / n, ssim / n, ratio, wins / n))
    return {summary.method: summary for summary in sorted(summaries, key=lambda summary: summary.mse)}


def _losses(rows: Iterable[FrameRow]) -> Losses:
    """Stretches of successive frames in which copying was better, from the rows of PSMT."""
    worst: list[Loss] = []
    n_frames = n = n_with_cut = 0
    for lost, stretch in groupby(rows, key=lambda row: row.mse > (1 + TIE) * row.copy_mse):
        if not lost:
            continue
        first = next(stretch)
        excess, cut = 0.0, 0
        for row in chain([first], stretch):
            excess, cut = excess + (row.mse - row.copy_mse), cut | row.cut
            n_frames += 1
        worst = nlargest(MOST_LOSSES, [*worst, Loss(first.frame, row.frame, excess)], key=lambda loss: loss.excess)
        n, n_with_cut = n + 1, n_with_cut + cut
    return Losses(worst, n_frames, n, n_with_cut)


def _bins(blocks: Iterable[NDArray[Any]], n: int) -> TimeBins:
    """Bins of a film of `n` predicted frames, from the rows of all methods."""
    length = max(-(-n // MOST_BINS), 1)
    n_bins = -(-n // length)
    sums: dict[str, Array] = {}
    first, copied = None, np.zeros(n_bins)
    surprise, cuts = np.full((2, n_bins), np.nan)
    for block in blocks:
        first = int(block["frame"][0]) if first is None else first
        places = (block["frame"] - first) // length
        for method in np.unique(block["method"]).tolist():
            own = block["method"] == method
            np.add.at(sums.setdefault(method, np.zeros(n_bins)), places[own], block["mse"][own])
        own, cut = block["method"] == "psmt", (block["method"] == "psmt") & (block["cut"] != 0)
        np.add.at(copied, places[own], block["copy_mse"][own])
        np.fmax.at(surprise, places[own], block["surprise"][own])
        np.fmin.at(cuts, places[cut], block["frame"][cut])
    frames = (first or 0) + length * np.arange(n_bins)
    errors = {name: own / length for name, own in sums.items()}
    return TimeBins(length, frames, errors, copied / length, surprise, cuts[np.isfinite(cuts)])


@dataclass(frozen=True, kw_only=True)
class VideoResult:
    """Everything but the film itself. The tables exist until `clear_checkpoints` removes their files."""

    name: str
    settings: VideoSettings
    start: int
    n_past: int
    """Number of frames that were learned from: the last ones before the start."""
    shape: tuple[int, int]
    every: int
    """Frames from the start of one rollout to the start of the next."""
    rows: CsvLog[FrameRow]
    """A row per frame and method."""
    rollouts: CsvLog[RolloutRow]
    scores: FilmScores
    """Summary of these tables."""
    stills: dict[str, Snapshot]
    """Frames with the lowest ('best') and highest ('worst') ratio of PSMT's error to copying, and the 'last' frame."""
    error_maps: dict[str, NDArray[np.float64]]
    """Mean squared error (height, width) of each pixel, by method."""
    seconds: dict[str, float]
    """Time per frame, to predict it and to learn from it, by method."""
    learning: float
    """Seconds that fitting took."""
    events: CsvLog[Event]
    event_counts: Mapping[Kind, int] = field(default_factory=dict)
    largest_events: Sequence[Event] = ()
    """In the order of the film."""
    event_stills: Mapping[Event, Snapshot] = field(default_factory=dict)
    """The largest of these, in the order of the film."""
    segments: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Files that make up a painted film, in order, by the name of the film."""

    @classmethod
    def from_recorder(cls, recorder: Recorder, **known: Any) -> Self:
        """Result of a finished recording and the other fields."""
        recorder.finish()
        stills = {still.row.frame: still for still in recorder.event_stills}
        return cls(
            rows=recorder.rows,
            rollouts=recorder.rollouts,
            scores=FilmScores.of(recorder.rows, recorder.rollouts),
            stills=recorder.stills,
            error_maps={name: total / recorder.n for name, total in recorder.errors.items()},
            seconds={name: total / recorder.n for name, total in recorder.seconds.items()},
            learning=recorder.learning,
            events=recorder.events,
            event_counts=Counter(event.kind for event in recorder.events),
            largest_events=sorted(nlargest(MOST_EVENTS, recorder.events, key=lambda event: event.size)),
            event_stills={event: stills[event.frame] for event in recorder.events if event.frame in stills},
            **known,
        )

    @property
    def horizon(self) -> int:
        """Number of predicted frames."""
        return self.scores.n

    def of(self, method: str) -> Iterator[FrameRow]:
        """Rows of one method, in order."""
        return (row for row in self.rows if row.method == method)

    def place_ratios(self) -> NDArray[np.float64]:
        """PSMT's error divided by that of copying around each pixel, (height, width).

        Where almost nothing changes, both errors are close to zero, and the ratio is shrunk towards 1.
        """
        blur = 0.01 * max(self.shape)
        ours, copied = (gaussian_filter(self.error_maps[name], blur) for name in ("psmt", "copy"))
        floor = max(0.1 * float(copied.mean()), np.finfo(float).tiny)
        ratios: NDArray[np.float64] = (ours + floor) / (copied + floor)
        return ratios
