"""What came out of a film's prediction: its course, maps, a few stills, and all lines in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from psmt.evaluation import FrameRow, RolloutRow
from psmt.experiments.predict_video.course import Course
from psmt.experiments.predict_video.events import Event, EventStill
from psmt.experiments.predict_video.lines import Lines
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.video.events import Kind


class Still(NamedTuple):
    """A frame worth looking at, in luma (height, width)."""

    row: FrameRow
    last: NDArray[np.floating]
    frame: NDArray[np.floating]
    predicted: NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class VideoResult:
    """All that came out but the film itself.

    Lines are there until `clear_checkpoints` removes them; all else is small, and stays.
    """

    name: str
    settings: VideoSettings
    start: int
    n_past: int
    """Frames that were learned from: the last ones before the start."""
    shape: tuple[int, int]
    every: int
    """Frames from the beginning of one rollout to that of the next."""
    rows: Lines[FrameRow]
    """A line per frame and method."""
    rollouts: Lines[RolloutRow]
    course: Course
    """What these lines come to."""
    stills: dict[str, Still]
    """The frames with the lowest ('best') and highest ('worst') ratio of PSMT's error to copying, and the 'last'."""
    error_maps: dict[str, NDArray[np.float64]]
    """Mean squared error (height, width) of each pixel, by method."""
    seconds: dict[str, float]
    """Per frame, by method: to predict it and to learn from it."""
    learning: float
    """Seconds that fitting took."""
    events: Lines[Event]
    event_counts: Mapping[Kind, int] = field(default_factory=dict)
    largest_events: Sequence[Event] = ()
    """In order."""
    event_stills: Sequence[EventStill] = ()
    """Of the largest of these, in order."""
    segments: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Files that make a film, one after the other, by the name of the film."""

    @property
    def horizon(self) -> int:
        """Frames that were predicted."""
        return self.course.n

    def of(self, method: str) -> Iterator[FrameRow]:
        """Lines of one method, in order."""
        return (row for row in self.rows if row.method == method)

    def place_ratios(self) -> NDArray[np.float64]:
        """PSMT's error divided by that of copying around each pixel, (height, width).

        Where next to nothing happens both are next to nothing, and the ratio is drawn to 1.
        """
        blur = 0.01 * max(self.shape)
        ours, copied = (gaussian_filter(self.error_maps[name], blur) for name in ("psmt", "copy"))
        floor = max(0.1 * float(copied.mean()), np.finfo(float).tiny)
        ratios: NDArray[np.float64] = (ours + floor) / (copied + floor)
        return ratios
