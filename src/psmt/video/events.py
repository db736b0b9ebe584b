"""Events of a film as it runs: cuts, flashes, and frames that surprise more than a stated rate explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import mse
from psmt.surprise import SurpriseAlarm
from psmt.types import Levels, Result

Kind = Literal["cut", "flash", "surprise"]


class EventDetector:
    """Tells which frames of a film are events.

    A cut is what the model takes for one. It was a flash if the picture is back within a few frames. Other surprises
    count only beyond `SurpriseAlarm`'s threshold, and not in the first frames of a new scene, in which nothing is usual
    yet. Alarms in a row are one event.

    Parameters
    ----------
    rate : float
        Of false alarms per frame.
    """

    _FLASH = 4
    """Frames within which the picture is back after a flash."""

    _ALIKE = 0.2
    """Difference to the picture before, relative to its variance, up to which it is back."""

    _SETTLING = 10
    """First frames of a scene, whose surprises say nothing."""

    def __init__(self, rate: float = 1e-3) -> None:
        self._alarm = SurpriseAlarm(rate)
        self._alarmed = False
        self._since_cut = self._SETTLING
        self._before: Levels = np.zeros((0, 0), np.float32)

    def observe(self, last: Levels, frame: Levels, surprise: float, cut: bool) -> Kind | None:
        """Return what a frame is an event of, with the one before it (height, width); None where it is none.

        'flash' is told when the picture is back: the last 'cut' was one.
        """
        self._since_cut += 1
        if self._since_cut <= self._FLASH and len(self._before) and self._is_back(frame):
            self._before = self._before[:0]
            self._since_cut = 0
            return "flash"
        if cut:
            # Frames within a flash are no cuts of their own.
            if self._since_cut > self._FLASH or not len(self._before):
                self._before = np.array(last)
                self._since_cut = 0
                return "cut"
        elif self._since_cut > self._SETTLING and np.isfinite(surprise):
            self._before = self._before[:0]
            alarmed, self._alarmed = self._alarmed, self._alarm.observe(surprise)
            if self._alarmed and not alarmed:
                return "surprise"
        return None

    def _is_back(self, frame: Levels) -> bool:
        """Whether a frame (height, width) shows what was there before the last cut."""
        return float(mse(frame, self._before, axes=2)) < self._ALIKE * float(np.var(self._before))

    def get_state(self) -> Result:
        """All that goes on from frame to frame, as arrays."""
        since_cut = np.array([self._since_cut, self._alarmed])
        return {**self._alarm.get_state(), "since_cut": since_cut, "before": self._before}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` gave."""
        self._alarm.set_state(state)
        self._since_cut, self._alarmed = int(state["since_cut"][0]), bool(state["since_cut"][1])
        self._before = state["before"]
