"""Report the unexpected frames of a film or camera: cuts, flashes, and surprises.

>>> import numpy as np
>>> from psmt.surprise import SurpriseDetector
>>> x, detector = np.arange(32), SurpriseDetector()
>>> frames = [np.add.outer(np.sin(x / 3), np.sin((x - t) / 2)) for t in range(50)]
>>> frames += [np.add.outer(np.cos(x), np.sin((x - t) / 5)) for t in range(10)]
>>> [(event.frame, event.kind) for event in map(detector.update, frames) if event is not None]
[(50, 'cut')]
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psmt.types import Levels
from psmt.utils.constraints import by_name, check_real
from psmt.video.events import EventDetector, Kind
from psmt.video.frames import check_next_frame
from psmt.video.model import FramePredictor

__all__ = ["SurpriseDetector", "SurpriseEvent"]

N_FIRST = 8
"""Number of frames that a new model is fitted to, which is about a third of a second."""

N_RECORD = 30
"""Number of predicted frames that must be known before a frame can be an event."""


class StepClock:
    """Measures the time between successive frames that a model receives, and detects uneven steps.

    A large change after dropped frames or a jump in the film must not count as an event.
    """

    _QUIET = 5  # frames after an uneven step that are not events either
    _LONGEST = 2.0  # seconds; a longer step is a jump
    _UNEVEN = 1.4  # a step that is longer or shorter than the usual one by this factor is uneven

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=15)
        self._last: float | None = None
        self._n_quiet = 0

    @property
    def seconds(self) -> float | None:
        """Return the median of the last times between frames, in seconds. It is None before the third frame."""
        return float(np.median(self._steps)) if len(self._steps) > 1 else None

    def is_even(self, position: float) -> bool:
        """Receive the time of the next frame in seconds. Return whether the last few steps had the usual length."""
        step, usual = 0.0 if self._last is None else position - self._last, self.seconds
        self._last = position
        if 0 < step < self._LONGEST:
            self._steps.append(step)
        even = usual is not None and usual < self._UNEVEN * step < self._UNEVEN**2 * usual
        self._n_quiet = max(self._n_quiet - 1, 0) if even else self._QUIET
        return not self._n_quiet


class SurpriseEvent(NamedTuple):
    """An unexpected frame, the frame before it, and the prediction of the unexpected frame, each (height, width)."""

    frame: int
    """Number of the frame, counted from 0."""
    time: float
    """Time of the frame in seconds."""
    kind: Kind
    """'cut' (a new scene), 'flash' (the scene before the last cut is back) or 'surprise' (anything else)."""
    surprise: float
    """Error of the prediction, relative to the usual error."""
    before: Levels
    expected: Levels
    came: Levels


@by_name
class SurpriseDetector:
    """Detects unexpected frames of a film or camera, while a model learns what is usual there.

    A `FramePredictor` predicts each frame from the frames before it. A frame is an event if a new scene begins, or if
    the error of its prediction exceeds a threshold. The threshold is set by the errors of the last thousand frames, so
    that false alarms occur at the rate `alarms_per_hour`. There are no events among the first 38 frames, and no
    surprises among the first 138 frames.

    Parameters
    ----------
    alarms_per_hour : float, default 1
        Expected number of false alarms per hour while nothing unusual happens. A larger number detects smaller events.
    fps : float, default 25
        Frames per second.
    device : str, default 'cpu'
        Where to compute: 'cpu' or 'cuda'.

    Attributes
    ----------
    surprise : float
        Error of the last prediction, relative to the usual error. It is NaN for the first frames.
    expected : (height, width) array or None
        The prediction of the last frame, made before this frame arrived.
    """

    def __init__(self, *, alarms_per_hour: float = 1.0, fps: float = 25.0, device: str = "cpu") -> None:
        most = 180.0 * check_real("fps", fps, open_bound=True)  # one frame in twenty
        if check_real("alarms_per_hour", alarms_per_hour, open_bound=True) >= most:
            raise ValueError(
                f"alarms_per_hour={alarms_per_hour!r} is too many at {fps:g} frames per second; use less than {most:g}"
            )
        self.surprise = np.nan
        self.expected: Levels | None = None
        self._fps = fps
        self._model = FramePredictor(rollouts=False, correction=False, device=device)
        self._events = EventDetector(alarms_per_hour / (3600.0 * fps))
        self._clock = StepClock()
        self._first: list[Levels] = []
        self._n_frames = 0

    def update(self, frame: ArrayLike, time: float | None = None) -> SurpriseEvent | None:
        """Receive the next frame (height, width). Return an event if the frame was not expected, otherwise None.

        If frames may be missing, as from a camera, give the `time` of each frame in seconds. Changes where frames are
        missing are then not reported. Without `time`, frames are assumed to come at `fps`.
        """
        received = check_next_frame(frame, self._first[-1].shape if self._first else np.shape(frame)).copy()
        number, self._n_frames = self._n_frames, self._n_frames + 1
        at = number / self._fps if time is None else time
        even = self._clock.is_even(at) or time is None
        if number < N_FIRST:
            self._first.append(received)
            if number == N_FIRST - 1:
                self._model.fit(np.stack(self._first))
            return None
        last, self._first, self.expected = self._first[-1], [received], self._model.predict()
        self._model.update(received)
        self.surprise, counts = self._model.surprise_, even and number >= N_FIRST + N_RECORD
        surprise = self.surprise if counts else np.nan
        kind = self._events.observe(last, received, surprise, self._model.cut_ and counts)
        if kind is None:
            return None
        return SurpriseEvent(number, at, kind, self.surprise, last, self.expected, received)
