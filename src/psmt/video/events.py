"""Events of a film: cuts, flashes, and surprises with a chosen rate of false alarms."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from psmt.changes import SurpriseAlarm
from psmt.data.contract import grey
from psmt.evaluation import mse
from psmt.persistence.schema import AttributeState
from psmt.types import Levels

Kind = Literal["cut", "flash", "surprise"]


class EventDetector(AttributeState):
    """Finds the frames of a film at which something happens: cuts, flashes and surprises.

    The model decides which frames are cuts. A cut turns out to be a flash if the earlier picture returns within a few
    frames. A surprise is a prediction error above the threshold of `SurpriseAlarm`. The first frames of a scene do not
    count, and successive surprises are one event. `rate` is the expected number of false alarms per frame.
    """

    state_arrays = ("_since_cut", "_alarmed", "_before")
    state_parts: ClassVar = {"_alarm": ""}

    _FLASH = 4  # frames within which the picture returns after a flash
    _ALIKE = 0.2  # largest difference to the earlier picture, relative to its variance, at which it has returned
    _SETTLING = 10  # first frames of a scene, in which surprises do not count

    def __init__(self, rate: float = 1e-3) -> None:
        self._alarm = SurpriseAlarm(rate)
        self._alarmed = False
        self._since_cut = self._SETTLING
        self._before: Levels = np.zeros((0, 0), np.float32)

    def observe(self, last: Levels, frame: Levels, surprise: float, cut: bool) -> Kind | None:
        """Return the event at a frame: 'cut', 'flash', 'surprise', or None. Frames are in grey or in colour.

        `last` is the frame before. `surprise` and `cut` are the attributes `surprise_` and `cut_` of the model. 'flash'
        is returned for the frame in which the earlier picture returns. The flash began at the last 'cut'.
        """
        last, frame = grey(last), grey(frame)
        self._since_cut += 1
        if self._since_cut <= self._FLASH and len(self._before) and self._is_back(frame):
            self._before = self._before[:0]
            self._since_cut = 0
            return "flash"
        if cut:
            # Frames within a flash are not further cuts.
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
        """Return whether a frame (height, width) shows the same picture as the frame before the last cut."""
        return float(mse(frame, self._before, axes=2)) < self._ALIKE * float(np.var(self._before))
