"""Events of a film that is predicted, as lines of a table and as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import Step
from psmt.experiments.predict_video.lines import Lines, from_columns, to_columns
from psmt.persistence.model_file import part
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
    """Keeps what `EventDetector` finds in the steps of a film, as it runs: all events as lines, the largest at hand.

    Parameters
    ----------
    fps : float or None
        Frames per second.
    rate : float
        Of false alarms per frame.
    lines : Lines of Event
        Where events go, once it is known what they are.
    """

    MOST_LISTED = 50
    """Events that are kept at hand: those of the largest size."""
    MOST_STILLS = 6
    """Of these, the ones that are kept in pictures."""

    def __init__(self, fps: float | None, rate: float, lines: Lines[Event]) -> None:
        self.lines = lines
        """All events but the last, until `finish`."""
        self.counts: dict[Kind, int] = dict.fromkeys(get_args(Kind), 0)
        self.largest: list[Event] = []
        """In the order of the film, as the stills are."""
        self.stills: list[EventStill] = []
        self._last: Event | None = None
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

    def finish(self) -> None:
        """Nothing comes any more: the last event is what it is."""
        self.lines.add([] if self._last is None else [self._last])
        self._last = None

    def _note(self, step: Step, kind: Kind) -> None:
        self.finish()
        row = step.rows["psmt"]
        event = Event(row.frame, row.frame / self._fps if self._fps else float("nan"), kind, row.surprise)
        self._last = event
        self.counts[kind] += 1
        self.largest = sorted(nlargest(self.MOST_LISTED, [*self.largest, event], key=lambda event: event.size))
        stills = [*self.stills, EventStill(event, step.last, step.frame, step.predicted["psmt"])]
        stills = nlargest(self.MOST_STILLS, stills, key=lambda still: still.event.size)
        self.stills = sorted(stills, key=lambda still: still.event.frame)

    def _rename_last(self, kind: Kind) -> None:
        known = cast(Event, self._last)
        self._last = known._replace(kind=kind)
        self.counts[known.kind] -= 1
        self.counts[kind] += 1
        self.largest = [self._last if event.frame == known.frame else event for event in self.largest]
        self.stills = [
            still._replace(event=self._last) if still.event.frame == known.frame else still for still in self.stills
        ]

    def get_state(self) -> Result:
        """All of it as arrays."""
        state = to_columns("largest", Event, self.largest)
        state |= to_columns("last", Event, [] if self._last is None else [self._last])
        state |= {"counts": np.array([*self.counts.values()])} | self._detector.get_state()
        state |= {f"lines/{name}": value for name, value in self.lines.get_state().items()}
        state["stills"] = np.array([still.event.frame for still in self.stills], dtype=np.int64)
        for still in self.stills:
            for picture in ("last", "frame", "predicted"):
                state[f"still/{still.event.frame}/{picture}"] = getattr(still, picture)
        return state

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on as the one that gave this state."""
        self.largest = from_columns("largest", Event, state)
        self._last = next(iter(from_columns("last", Event, state)), None)
        self.counts = dict(zip(self.counts, state["counts"].tolist(), strict=True))
        self._detector.set_state(state)
        self.lines.set_state(part(state, "lines/"))
        by_frame = {event.frame: event for event in self.largest}
        self.stills = [
            EventStill(by_frame[frame], *(state[f"still/{frame}/{name}"] for name in ("last", "frame", "predicted")))
            for frame in state["stills"].tolist()
        ]
