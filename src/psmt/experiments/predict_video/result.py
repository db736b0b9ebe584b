"""Result of `psmt predict-video`: tables on disk, their summary, and pictures of events."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import FrameRow, Interval, RolloutRow, ratio_interval
from psmt.experiments.predict_video.recording import MOST_EVENTS, CsvLog, Event, Recorder, row_dtype
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.types import Array
from psmt.video import FRAME_BASELINES
from psmt.video.events import Kind

FRAME_METHODS = {"frame_predictor": "frame predictor", **{name: entry.label for name, entry in FRAME_BASELINES.items()}}
"""Names of the methods in reports, by their names in files."""

MOST_BINS = 8192
"""Largest number of bins over time. In films with at most this many frames, a bin is one frame."""

BLOCK = 25
"""Number of successive frames (about a second) whose errors count as correlated in intervals."""


class FrameSummary(NamedTuple):
    """Mean scores of a method over all predicted frames, or over all rollouts at a given number of frames ahead."""

    method: str
    mse: float
    psnr: float
    ssim: float
    ratio: float
    """Mean MSE divided by the mean MSE of copying. Below 1, the method is better than copying."""
    wins: float
    """Fraction of frames in which the method was better than copying."""
    colour_mse: float | None = None
    """Mean squared error over red, green and blue, or None without colour."""
    colour_ratio: float | None = None
    """``colour_mse`` divided by that of copying, or None without colour."""


def summarise_frames(rows: Iterable[FrameRow] | Iterable[RolloutRow]) -> dict[str, FrameSummary]:
    """Return the mean scores by method, lowest error first. PSNR and SSIM are averaged over frames."""
    listed = list(rows)
    return _summaries(_group_sums([np.array(listed, dtype=row_dtype(type(listed[0])))], "method"))


class TimeBins(NamedTuple):
    """Scores over time, in `n` bins of equal length. A bin is one frame, or several in a long film (`MOST_BINS`)."""

    length: int
    """Number of frames per bin. The last bin may have fewer."""
    frames: NDArray[np.int64]
    """(n,): first frame of each bin."""
    mse: dict[str, Array]
    """(n,) by method: sum of the errors over the bin, divided by `length`."""
    copy_mse: Array
    """(n,): sum of the errors of copying over the bin, divided by `length`."""
    surprise: Array
    """(n,): largest surprise in the bin, or NaN if there is none."""
    cuts: Array
    """(n_cuts,): frame of the first cut of each bin that has a cut."""


@dataclass(frozen=True, kw_only=True)
class FilmScores:
    """Summary of the scores of all methods on a film. Its size does not depend on the length of the film."""

    n: int
    """Number of predicted frames."""
    summaries: dict[str, FrameSummary]
    """Scores one frame ahead, by method, lowest error first."""
    rollouts: dict[int, dict[str, FrameSummary]]
    """Scores of rollouts, by step ahead and method."""
    n_rollouts: int
    bins: TimeBins

    @classmethod
    def of(cls, rows: CsvLog[FrameRow], rollouts: CsvLog[RolloutRow]) -> Self:
        """Return the summary of two tables: scores one frame ahead, and scores of rollouts."""
        sums = _group_sums(rows.blocks(), "method")
        steps = _group_sums(rollouts.blocks(), "step", "method")
        n = int(sums[("frame_predictor",)][0])
        return cls(
            n=n,
            summaries=_summaries(sums),
            rollouts={
                step: _summaries({key: own for key, own in steps.items() if key[0] == step})
                for step in sorted({step for step, _ in steps})
            },
            n_rollouts=int(steps[1, "frame_predictor"][0]) if steps else 0,
            bins=_bins(rows.blocks(), n),
        )

    def excess(self, method: str) -> Interval:
        """Return (error of the frame predictor / error of `method`) - 1 and its interval. NaN if the divisor is 0."""
        own, other = self.bins.mse["frame_predictor"], self.bins.mse[method]
        if not other.any():
            return Interval(np.nan, -np.inf, np.inf)
        # A short film has eight blocks, as an interval needs at least three.
        block = max(min(-(-BLOCK // self.bins.length), len(own) // 8), 1)
        return Interval(*np.expm1(ratio_interval(own, other, block=block)).tolist())


_SUMMED = ("mse", "copy_mse", "psnr", "ssim", "colour_mse", "colour_copy_mse")


def _group_sums(blocks: Iterable[NDArray[Any]], *by: str) -> dict[tuple[Any, ...], Array]:
    """Group rows by the fields `by`. Return, for each group, an array of counts and sums.

    They are the number of rows, the number of rows with a lower MSE than copying, and the sums of the fields `_SUMMED`.
    """
    sums: dict[tuple[Any, ...], Array] = {}
    for block in blocks:
        _, first, group = np.unique(block[[*by]], return_index=True, return_inverse=True)
        for k in np.argsort(first):
            rows = block[group == k]
            totals = [rows[name].sum() for name in _SUMMED if name in rows.dtype.names]
            wins = np.count_nonzero(rows["mse"] < rows["copy_mse"])
            key = rows[[*by]][0].item()
            sums[key] = sums.get(key, 0.0) + np.array([len(rows), wins, *totals])
    return sums


def _summaries(sums: Mapping[tuple[Any, ...], Array]) -> dict[str, FrameSummary]:
    summaries = []
    for (*_, method), own in sums.items():
        n, wins, error, copied, psnr, ssim, *colour = own.tolist()
        ratio = error / copied if copied > 0 else float("nan")
        scores: tuple[float, ...] = error / n, psnr / n, ssim / n, ratio, wins / n
        if colour and colour[1] > 0:
            scores += colour[0] / n, colour[0] / colour[1]
        summaries.append(FrameSummary(method, *scores))
    return {summary.method: summary for summary in sorted(summaries, key=lambda summary: summary.mse)}


def _bins(blocks: Iterable[NDArray[Any]], n: int) -> TimeBins:
    """Return the scores over time of `n` predicted frames, from the rows of all methods in `blocks`."""
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
        own = block["method"] == "frame_predictor"
        cut = own & (block["cut"] != 0)
        np.add.at(copied, places[own], block["copy_mse"][own])
        np.fmax.at(surprise, places[own], block["surprise"][own])
        np.fmin.at(cuts, places[cut], block["frame"][cut])
    frames = (first or 0) + length * np.arange(n_bins)
    errors = {name: own / length for name, own in sums.items()}
    return TimeBins(length, frames, errors, copied / length, surprise, cuts[np.isfinite(cuts)])


@dataclass(frozen=True, kw_only=True)
class VideoResult:
    """All results of `psmt predict-video`. The tables and pieces of film are on disk until `clear_checkpoints`."""

    name: str
    settings: VideoSettings
    start: int
    n_past: int
    """Number of frames before the start that were learned from."""
    shape: tuple[int, int]
    """Height and width of the predicted frames."""
    film_shape: tuple[int, int]
    """Height and width of the frames of the film."""
    colour: bool
    """Whether the frames were predicted in colour."""
    every: int
    """Number of frames from the start of one rollout to the start of the next."""
    rows: CsvLog[FrameRow]
    """Table with one row per frame and method."""
    rollouts: CsvLog[RolloutRow]
    scores: FilmScores
    """Summary of the tables."""
    seconds: dict[str, float]
    """Seconds per frame, to predict it and to learn from it, by method."""
    learning: float
    """Seconds that fitting took."""
    events: CsvLog[Event]
    event_counts: Mapping[Kind, int] = field(default_factory=dict)
    largest_events: Sequence[Event] = ()
    """The largest events, in the order of the film."""
    event_strips: Mapping[int, bytes] = field(default_factory=dict)
    """A JPEG file of each of the largest events, by its frame: the frame before, what was expected, and what came."""
    duration: float = 0.0
    """Seconds that the whole run took."""
    segments: Sequence[Path] = ()
    """Files that make up the painted film, in order."""

    @classmethod
    def from_recorder(cls, recorder: Recorder, **known: Any) -> Self:
        """Return the result of a recorder after the last frame. The keywords are the other fields."""
        recorder.finish()
        return cls(
            rows=recorder.rows,
            rollouts=recorder.rollouts,
            scores=FilmScores.of(recorder.rows, recorder.rollouts),
            seconds={name: total / recorder.n for name, total in recorder.seconds.items()},
            learning=recorder.learning,
            events=recorder.events,
            event_counts=Counter(event.kind for event in recorder.events),
            largest_events=sorted(nlargest(MOST_EVENTS, recorder.events, key=lambda event: event.size)),
            event_strips={frame: jpeg.tobytes() for frame, _, jpeg in recorder.event_strips},
            **known,
        )

    @property
    def horizon(self) -> int:
        """Number of predicted frames."""
        return self.scores.n
