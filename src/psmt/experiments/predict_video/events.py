"""Events of a film that is predicted, as lines of a table and as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import Step
from psmt.types import Result
from psmt.video.events import EventDetector, Kind


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
    """Keeps what `EventDetector` finds in the steps of a film, as it runs; memory grows by a line per event.

    Parameters
    ----------
    fps : float or None
        Frames per second.
    rate : float
        Of false alarms per frame.
    """

    MOST_STILLS = 6
    """Events that are kept in pictures: those of the largest size."""

    def __init__(self, fps: float | None, rate: float) -> None:
        self.events: list[Event] = []
        self.stills: list[EventStill] = []
        self._fps = fps
        self._detector = EventDetector(rate)

    def add(self, step: Step) -> None:
        """Look at one more step."""
        row = step.rows["psmt"]
        kind = self._detector.observe(step.last, step.frame, row.surprise, bool(row.cut))
        if kind == "flash":
            self._rename_last(kind)
        elif kind is not None:
            self._note(step, kind)

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
        state |= self._detector.get_state()
        state["stills"] = np.array([still.event.frame for still in self.stills], dtype=np.int64)
        for still in self.stills:
            for part in ("last", "frame", "predicted"):
                state[f"still/{still.event.frame}/{part}"] = getattr(still, part)
        return state

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on as the one that gave this state."""
        columns = (state[f"events/{name}"].tolist() for name in Event._fields)
        self.events = [Event(*values) for values in zip(*columns, strict=True)]
        self._detector.set_state(state)
        by_frame = {event.frame: event for event in self.events}
        self.stills = [
            EventStill(by_frame[frame], *(state[f"still/{frame}/{part}"] for part in ("last", "frame", "predicted")))
            for frame in state["stills"].tolist()
        ]
