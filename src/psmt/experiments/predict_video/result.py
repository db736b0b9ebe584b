"""What came out of a film's prediction: a line per frame and method, maps, a few stills, and means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from psmt.evaluation import FrameRow, RolloutRow
from psmt.experiments.predict_video.events import Event, EventStill
from psmt.experiments.predict_video.settings import VideoSettings


class Still(NamedTuple):
    """A frame worth looking at, in luma (height, width)."""

    row: FrameRow
    last: NDArray[np.floating]
    frame: NDArray[np.floating]
    predicted: NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class VideoResult:
    """All that came out but the film itself."""

    name: str
    settings: VideoSettings
    start: int
    n_past: int
    """Frames that were learned from: the last ones before the start."""
    shape: tuple[int, int]
    every: int
    """Frames from the beginning of one rollout to that of the next."""
    rows: list[FrameRow]
    rollouts: list[RolloutRow]
    stills: dict[str, Still]
    """The frames with the lowest ('best') and highest ('worst') ratio of PSMT's error to copying, and the 'last'."""
    error_maps: dict[str, NDArray[np.float64]]
    """Mean squared error (height, width) of each pixel, by method."""
    seconds: dict[str, float]
    """Per frame, by method: to predict it and to learn from it."""
    learning: float
    """Seconds that fitting took."""
    events: list[Event] = field(default_factory=list)
    event_stills: list[EventStill] = field(default_factory=list)
    """Of the largest events, in order."""
    segments: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Files that make a film, one after the other, by the name of the film."""

    @property
    def horizon(self) -> int:
        """Frames that were predicted."""
        return len(self.of("psmt"))

    def of(self, method: str) -> list[FrameRow]:
        """Lines of one method, in order."""
        return [row for row in self.rows if row.method == method]

    def place_ratios(self) -> NDArray[np.float64]:
        """PSMT's error divided by that of copying around each pixel, (height, width).

        Where next to nothing happens both are next to nothing, and the ratio is drawn to 1.
        """
        blur = 0.01 * max(self.shape)
        ours, copied = (gaussian_filter(self.error_maps[name], blur) for name in ("psmt", "copy"))
        floor = max(0.1 * float(copied.mean()), np.finfo(float).tiny)
        ratios: NDArray[np.float64] = (ours + floor) / (copied + floor)
        return ratios


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
    by_method: dict[str, list[FrameRow | RolloutRow]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    summaries = []
    for method, lines in by_method.items():
        errors, copied = np.array([(row.mse, row.copy_mse) for row in lines]).T
        summaries.append(
            FrameSummary(
                method,
                float(errors.mean()),
                float(np.mean([row.psnr for row in lines])),
                float(np.mean([row.ssim for row in lines])),
                float(errors.sum() / copied.sum()) if copied.sum() > 0 else float("nan"),
                float(np.mean(errors < copied)),
            )
        )
    return sorted(summaries, key=lambda summary: summary.mse)
