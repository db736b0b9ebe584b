"""How predictions turned out: running figures against copying, surprise, and what stood out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from psmt.evaluation.metrics import error_ratio
from psmt.types import Levels
from psmt.video.events import EventDetector, Kind

RECENT = 50
"""Predictions that the running figure is made of."""

HISTORY = 600
"""Points that a curve shows."""

N_EVENTS = 40
"""Events that are kept for who comes later."""


class Point(NamedTuple):
    """One frame of the curves."""

    step: int
    ratio: float | None
    """Running MSE / copying; None while nothing was scored, or the film stands still."""
    surprise: float
    """NaN while nothing was expected."""
    mark: Kind | None


@dataclass(frozen=True)
class Moment:
    """A frame that stood out, as it was shown."""

    number: int
    step: int
    kind: Kind
    surprise: float
    seconds: float
    """Since the beginning."""
    strip: bytes


@dataclass
class Scores:
    """What is known so far; each frame adds a `Point`."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=HISTORY))
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=N_EVENTS))
    _recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=RECENT))
    _detector: EventDetector = field(default_factory=EventDetector)

    def judge(self, mse: float, copy_mse: float) -> None:
        """Take in a prediction's squared error, and that of the frame that it was made from."""
        self._recent.append((mse, copy_mse))

    def forget_errors(self) -> None:
        """Begin the running figure anew: what comes is of another kind."""
        self._recent.clear()

    @property
    def n_recent(self) -> int:
        """Predictions that the running figure is made of."""
        return len(self._recent)

    @property
    def ratio(self) -> float | None:
        """MSE / copying over the recent predictions; None where there is nothing to divide by."""
        own, copied = (sum(errors) for errors in zip(*self._recent, strict=True)) if self._recent else (0.0, 0.0)
        return error_ratio(own, copied) if copied > 0 else None

    @property
    def n_events(self) -> int:
        """Events so far, those included that are no longer kept."""
        return self.moments[-1].number + 1 if self.moments else 0

    def add(self, step: int, last: Levels, frame: Levels, surprise: float, cut: bool) -> Kind | None:
        """Add a point to the curves; return what the frame, after the last one (size, size), begins, if anything.

        A cut whose picture is back becomes a flash, in the curves and among the moments.
        """
        kind = self._detector.observe(last, frame, surprise, cut)
        self.points.append(Point(step, self.ratio, surprise, None if kind == "flash" else kind))
        if kind != "flash":
            return kind
        self.moments[-1] = flash = replace(self.moments[-1], kind="flash")
        for back, point in enumerate(reversed(self.points), 1):
            if point.step == flash.step:
                self.points[-back] = point._replace(mark="flash")
                break
        return None

    def keep(self, step: int, kind: Kind, surprise: float, seconds: float, strip: bytes) -> None:
        """Keep what a frame that stood out looked like."""
        self.moments.append(Moment(self.n_events, step, kind, surprise, seconds, strip))
