"""How predictions turned out: running figures against copying, surprise, and what stood out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from psmt.evaluation.metrics import error_ratio

RECENT = 50
"""Predictions that the running figure is made of."""

HISTORY = 600
"""Points that a curve shows."""

N_EVENTS = 40
"""Events that are kept for who comes later."""

EVENT = 3.0
"""A frame this many times as surprising as usual is an event, if it is no cut."""

_APART = 12
"""Frames between two events: one jolt surprises for a while."""


class Point(NamedTuple):
    """One frame of the curves."""

    step: int
    ratio: float | None
    """Running MSE / copying; None while nothing was scored, or the film stands still."""
    surprise: float
    mark: str
    """'cut', 'event' or nothing."""


@dataclass(frozen=True)
class Moment:
    """A frame that stood out, as it was shown."""

    number: int
    step: int
    kind: str
    surprise: float
    seconds: float
    """Since the beginning."""
    strip: bytes


@dataclass
class Scores:
    """What is known so far; each frame adds a `Point`."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=HISTORY))
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=N_EVENTS))
    n_cuts: int = 0
    n_events: int = 0
    _recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=RECENT))
    _last: int = -_APART

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

    def add(self, step: int, surprise: float, cut: bool) -> str:
        """Add a point to the curves; return what the frame is marked as."""
        mark = ""
        if cut:
            mark, self.n_cuts, self._last = "cut", self.n_cuts + 1, step
        elif surprise > EVENT and step - self._last >= _APART:
            mark, self.n_events, self._last = "event", self.n_events + 1, step
        self.points.append(Point(step, self.ratio, surprise, mark))
        return mark

    def keep(self, step: int, kind: str, surprise: float, seconds: float, strip: bytes) -> None:
        """Keep what a frame that stood out looked like."""
        number = self.moments[-1].number + 1 if self.moments else 0
        self.moments.append(Moment(number, step, kind, surprise, seconds, strip))
