"""Events of a film that is predicted: cuts, flashes, and frames that surprise more than a stated rate explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import Step, mse
from psmt.surprise import SurpriseAlarm
from psmt.types import Levels, Result

Kind = Literal["cut", "flash", "surprise"]


class Event(NamedTuple):
    """A line of events.csv."""

    frame: int
    time: float
    """Seconds from the first frame of the film; NaN where nobody knows how many frames make a second."""
    kind: Kind
    size: float
    """Error of the prediction of this frame in units of what is usual."""


class EventStill(NamedTuple):
    """An event with what was shown before, what came and what had been expected, in luma (height, width)."""

    event: Event
    last: NDArray[np.floating]
    frame: NDArray[np.floating]
    predicted: NDArray[np.floating]


class EventWatch:
    """Finds events in the steps of a film, as it runs; memory grows by a line per event.

    A cut is what the model takes for one. It was a flash if the picture is back within a few frames. Other surprises
    count only beyond `SurpriseAlarm`'s threshold, and not in the first frames of a new scene, in which nothing is usual
    yet. Alarms in a row are one event.

    Parameters
    ----------
    fps : float or None
        Frames per second.
    rate : float
        Of false alarms per frame.
    """

    _FLASH = 4
    """Frames within which the picture is back after a flash."""

    _ALIKE = 0.2
    """Difference to the picture before, relative to its variance, up to which it is back."""

    _SETTLING = 10
    """First frames of a scene, whose surprises say nothing."""

    MOST_STILLS = 6
    """Events that are kept in pictures: those of the largest size."""

    def __init__(self, fps: float | None, rate: float) -> None:
        self.events: list[Event] = []
        self.stills: list[EventStill] = []
        self._fps = fps
        self._alarm = SurpriseAlarm(rate)
        self._alarmed = False
        self._since_cut = self._SETTLING
        self._before: Levels = np.zeros((0, 0), np.float32)

    def add(self, step: Step) -> None:
        """Look at one more step."""
        row = step.rows["psmt"]
        self._since_cut += 1
        if self._since_cut <= self._FLASH and len(self._before) and self._is_back(step.frame):
            self._rename_last("flash")
            self._before = self._before[:0]
            self._since_cut = 0
        elif row.cut:
            # Frames within a flash are no cuts of their own.
            if self._since_cut > self._FLASH or not len(self._before):
                self._before = np.array(step.last)
                self._note(step, "cut")
                self._since_cut = 0
        elif self._since_cut > self._SETTLING and np.isfinite(row.surprise):
            self._before = self._before[:0]
            alarmed, self._alarmed = self._alarmed, self._alarm.observe(row.surprise)
            if self._alarmed and not alarmed:
                self._note(step, "surprise")

    def _is_back(self, frame: Levels) -> bool:
        """Whether a frame (height, width) shows what was there before the last cut."""
        return float(mse(frame, self._before, axes=2)) < self._ALIKE * float(np.var(self._before))

    def _note(self, step: Step, kind: Kind) -> None:
        row = step.rows["psmt"]
        event = Event(row.frame, row.frame / self._fps if self._fps else float("nan"), kind, row.surprise)
        self.events.append(event)
        still = EventStill(event, step.last, step.frame, step.predicted["psmt"])
        largest = sorted([*self.stills, still], key=lambda still: -still.event.size)[: self.MOST_STILLS]
        self.stills = sorted(largest, key=lambda still: still.event.frame)

    def _rename_last(self, kind: Kind) -> None:
        known = self.events[-1]
        self.events[-1] = known._replace(kind=kind)
        self.stills = [
            still._replace(event=self.events[-1]) if still.event.frame == known.frame else still
            for still in self.stills
        ]

    def get_state(self) -> Result:
        """All of it as arrays."""
        columns = {name: np.array([event[k] for event in self.events]) for k, name in enumerate(Event._fields)}
        state: Result = {f"events/{name}": values for name, values in columns.items()}
        state |= {f"alarm/{name}": values for name, values in self._alarm.get_state().items()}
        state |= {"since_cut": np.array([self._since_cut, self._alarmed]), "before": self._before}
        state["stills"] = np.array([still.event.frame for still in self.stills], dtype=np.int64)
        for still in self.stills:
            for part in ("last", "frame", "predicted"):
                state[f"still/{still.event.frame}/{part}"] = getattr(still, part)
        return state

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on as the one that gave this state."""
        columns = (state[f"events/{name}"].tolist() for name in Event._fields)
        self.events = [Event(*values) for values in zip(*columns, strict=True)]
        self._alarm.set_state({"logs": state["alarm/logs"]})
        self._since_cut, self._alarmed = int(state["since_cut"][0]), bool(state["since_cut"][1])
        self._before = state["before"]
        by_frame = {event.frame: event for event in self.events}
        self.stills = [
            EventStill(by_frame[frame], *(state[f"still/{frame}/{part}"] for part in ("last", "frame", "predicted")))
            for frame in state["stills"].tolist()
        ]
