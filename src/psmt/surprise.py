"""How unexpected a frame is, and whether it begins something new: sharp changes of films and series.

`CutDetector` compares the errors of expecting a frame with their usual size, whatever the expectation is.
`FrameWatch` makes a cheap expectation of its own, for models whose prediction is expensive or was never computed.
`Aftermath` decides when a model's predictions can be used again after a cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.numerics.arrays import robust_peak
from psmt.persistence.schema import LARGEST_SQUARE, AttributeState, Field, Size, State, counter
from psmt.types import Array
from psmt.utils.disk_series import mean_of
from psmt.utils.validation import LARGEST


class CutDetector(AttributeState):
    """Outlier test on the errors of predicting and of copying, against their exponentially weighted means.

    `surprise` is the error of the last prediction in units of the usual one, 1 where none is known; `cut` is whether
    the last frame was a sharp change.

    Parameters
    ----------
    unlike : float
        A cut is a frame that differs from the one before by at least this share of the picture's variance. After a
        jolt, a stutter or one step of a fade, a picture is more similar to the last one than that.
    n_recent : int
        Number of recent errors, cuts excluded, that the error of a cut must exceed by the factor `worst`: for frames
        of few features, whose errors scatter so much that their mean does not show what is usual.
    worst : float
        That factor for a frame that has nothing in common with the one before. It is divided by the share of the
        picture's variance by which the two differ.
    """

    _MEMORY = 30.0
    """Frames after which old errors have faded to 1/e."""

    _CUT = 6.0
    """A cut has an error of this multiple of the usual one .."""

    _LEAP = 2.0
    """... and differs from the frame before by this multiple of the usual difference .."""

    _EXPLAINED = 0.25
    """... of which motion leaves more than this share. In the built-in film a pan of up to 16 pixels per frame leaves
    0.01 to 0.08, a cut 0.37 to 0.77."""

    _CAP = 3.0
    """An error enters the usual ones as at most this multiple of them, so that one flash does not change them much."""

    _FLOOR = 1e-4
    """Usual errors are at least this fraction of the variance over the picture."""

    _FORGOTTEN = 0.1
    """Frames that the record counts for after a cut: the next errors decide what is usual."""

    state_figures = ("surprise", "cut", "usual", "frames", "_cuts_in_a_row")

    def __init__(self, *, unlike: float = 0.2, n_recent: int = 0, worst: float = 1.0) -> None:
        self.unlike = unlike
        self.worst = worst
        self.recent = np.zeros(n_recent)
        self.state_arrays = ("recent",) if n_recent else ()
        self.surprise = 1.0
        self.cut = False
        # Usual errors of predicting and of copying, and the number of frames that they are known from.
        self.usual = np.zeros(2)
        self.frames = 0.0
        self._cuts_in_a_row = 0

    @classmethod
    def schema(cls, n_recent: int = 0) -> dict[str, Field]:
        """Declaration of the state."""
        most = (np.inf, 1.0, LARGEST_SQUARE, LARGEST_SQUARE, LARGEST, np.inf)
        recent = {"recent": Field((n_recent,), low=0.0, high=LARGEST_SQUARE)} if n_recent else {}
        return {"figures": Field((6,), low=0.0, high=most)} | recent

    def observe(self, error: float, copy_error: float, contrast: float, unexplained: float = np.inf) -> None:
        """Receive the mean squared errors of a prediction and of copying, and the variance over the picture.

        `unexplained` is the error that is left after the best motion from the last frame to this one.
        """
        errors = np.array([error, copy_error])
        scale, copy_scale = np.maximum(self.usual, self._FLOOR * contrast)
        known = self.frames > 0 and scale > 0
        self.surprise = error / float(scale) if known else 1.0
        limit = self.worst * self.recent.max(initial=0.0)
        self.cut = bool(
            known
            and self.surprise > self._CUT
            and error * min(contrast, copy_error) > limit * contrast
            and copy_error > max(self._LEAP * copy_scale, self.unlike * contrast)
            and unexplained > self._EXPLAINED * copy_error
            # A flash is two sharp changes; with more than that in a row, every frame of the film is new.
            and self._cuts_in_a_row < 2
        )
        if self.cut:
            self._cuts_in_a_row += 1
            self.frames = self._FORGOTTEN
            return
        self._cuts_in_a_row = 0
        self.recent = np.append(self.recent, error)[1:]
        if known and self.frames >= 1:
            errors = np.minimum(errors, self._CAP * np.array([scale, copy_scale]))
        before = np.exp(-1.0 / self._MEMORY) * self.frames
        self.frames = before + 1.0
        self.usual = (before * self.usual + errors) / self.frames


class FrameWatch(AttributeState):
    """Surprise and cuts of a series, without a model.

    A frame (n_features,) is expected to equal the last one, or to lie on the straight line through the last two,
    whichever is closer. So steady motion is not surprising, and neither is a film that stands still. `surprise` does
    not depend on whether a model was asked for a prediction.

    The contrast of `CutDetector` is the energy of the frames about the mean of the past. A past that stood perfectly
    still has none: whatever begins to move then is new.

    Parameters
    ----------
    past : (time, n_features) array
        Frames that came before; the last of them define what is usual.
    window : int
        Number of latest frames that `peak_norm` is taken from.

    Attributes
    ----------
    surprise, cut : float, bool
        Of the last frame, see `CutDetector`.
    scene_length : int
        Frames since the last cut, including the cut itself.
    """

    _LEARNED = 100
    """Frames of the past that define what is usual: older ones would have faded."""

    _UNLIKE = 0.3
    """Frames of equal energy that correlate by less than 0.85 are unlike. A patch shows less of a scene than a picture
    does: a moving object leaves it within a few frames, which is not a cut."""

    _WORST, _SCATTER, _WORST_OF_FEW = 1.2, 1.5, 2.0
    """A cut has a larger error than all recent frames by the first factor. For n features the second over sqrt(n) is
    added, as a mean of n squares scatters by 1 / sqrt(n) of itself. The last is the upper bound of the factor."""

    state_arrays = ("_centre", "_norms", "_last", "scene_length")

    def __init__(self, past: Array, window: int) -> None:
        worst = min(self._WORST + self._SCATTER / np.sqrt(past.shape[1]), self._WORST_OF_FEW)
        self._detector = CutDetector(unlike=self._UNLIKE, n_recent=self._LEARNED, worst=worst)
        self._centre = mean_of(past)
        self._window = window
        self._norms = np.linalg.norm(np.asarray(past[-window:]), axis=1)
        recent = np.asarray(past[-self._LEARNED :])
        self.scene_length = len(past) - len(recent) + 1
        self._last = recent[[0, 0]]
        for frame in recent[1:]:
            self._expect(frame)

    @property
    def surprise(self) -> float:
        """The error of expecting the last frame, in units of the usual one."""
        return self._detector.surprise

    @property
    def cut(self) -> bool:
        """Whether the last frame began something new."""
        return self._detector.cut

    @property
    def peak_norm(self) -> float:
        """The largest norm of the latest frames, without outliers."""
        return float(robust_peak(self._norms))

    def observe(self, frame: Array) -> None:
        """Receive the next frame (n_features,)."""
        self._expect(frame)
        self._norms = np.append(self._norms, np.linalg.norm(frame))[-self._window :]

    def _expect(self, frame: Array) -> None:
        before, last = self._last
        copied = _mean_square(frame - last)
        continued = _mean_square(frame - 2.0 * last + before)
        energy = max(_mean_square(shown - self._centre) for shown in (last, frame))
        self._detector.observe(min(copied, continued), copied, energy)
        self.scene_length = 1 if self.cut else self.scene_length + 1
        self._last = np.stack([last, frame])

    def get_state(self) -> State:
        """Return copies of all arrays that a copy needs to continue alike."""
        return super().get_state() | self._detector.get_state()

    @classmethod
    def schema(cls, n_features: Size) -> dict[str, Field]:
        """Declaration of the state. There are fewer norms than the window has codes while the series is shorter."""
        return {
            "centre": Field((n_features,)),
            "norms": Field(("n_norms",), low=0.0),
            "last": Field((2, n_features)),
            "scene_length": counter(1),
            **CutDetector.schema(cls._LEARNED),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Continue from a state that `get_state` returned."""
        super().set_state(state)
        if len(self._norms) > self._window:
            raise ValueError(f"{len(self._norms)} norms, but a window of {self._window}")
        self._detector.set_state(state)


def _mean_square(difference: Array) -> float:
    """Mean of the squares (n_features,), by a product: each frame needs four of them."""
    return float(difference @ difference) / len(difference)


class Aftermath(AttributeState):
    """The time after a cut, until the model has predicted better than holding still, or 25 frames have passed.

    The window is still full of the old scene. How soon predictions are useful again depends on both scenes, so it is
    measured, by weighted sums of the errors since the cut. On many films holding still is always better; the limit of
    25 frames keeps the model from copying for ever.
    """

    _MEMORY = 5.0
    """Frames after which old errors have faded to 1/e."""

    _FEWEST = 5
    """Frames before a decision."""

    _MOST = 25
    """Frames after which it is over in any case: about a second of film."""

    state_figures = ("is_over", "_errors", "_frames")

    def __init__(self) -> None:
        self.is_over = True
        self._errors = np.zeros(2)
        self._frames = 0

    def begin(self) -> None:
        """Start at a cut."""
        self.is_over, self._errors, self._frames = False, np.zeros(2), 0

    def end(self) -> None:
        """Stop: the old scene has left the window."""
        self.is_over = True

    def observe(self, own: float, held: float) -> None:
        """Receive the squared errors of the model's own prediction, and of holding still."""
        self._errors = np.exp(-1.0 / self._MEMORY) * self._errors + [own, held]
        self._frames += 1
        does_better = self._frames >= self._FEWEST and self._errors[0] <= self._errors[1]
        self.is_over = bool(does_better or self._frames >= self._MOST)

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """Declaration of the state."""
        return {"figures": Field((4,), low=0.0, high=(1.0, LARGEST_SQUARE, LARGEST_SQUARE, cls._MOST))}


class SurpriseAlarm(AttributeState):
    """Alarm with a stated rate of false alarms while a film continues as before.

    The tail of the latest surprises is modelled as a power law with Hill's estimate of its exponent. That gives the
    value which is exceeded at the stated rate, even if fewer frames have come than one alarm takes (Weissman, 1978).
    If the tail is lighter, alarms are rarer than stated. A value enters as at most the threshold that it was compared
    with, so that one extreme value does not raise the threshold for a thousand frames.

    Parameters
    ----------
    rate : float
        Share of frames with a false alarm, 0 < rate < 0.05.
    """

    _KEPT = 1000
    """Largest number of surprises that the tail is estimated from."""

    _FEWEST = 100
    """Smallest number of surprises: before, there is no alarm."""

    _TAIL = 0.1
    """Share of the surprises that form the tail."""

    state_arrays = ("_logs",)

    def __init__(self, rate: float = 1e-3) -> None:
        if not 0 < rate < 0.05:
            raise ValueError(f"a rate of {rate!r} false alarms per frame is out of range; use 0 < rate < 0.05")
        self.rate = rate
        self._logs = np.zeros(0)

    @property
    def threshold(self) -> float:
        """The surprise that is exceeded at the stated rate; infinite while too few frames have come."""
        n = len(self._logs)
        if n < self._FEWEST:
            return np.inf
        k = int(self._TAIL * n)
        top = np.sort(self._logs)[-k - 1 :]
        hill = float(np.mean(top[1:] - top[0]))
        return float(np.exp(top[0] + hill * np.log(k / (n * self.rate))))

    def observe(self, surprise: float) -> bool:
        """Return whether a surprise exceeds the threshold of those before it, and add it to them."""
        threshold = self.threshold
        log = float(np.log(max(min(surprise, threshold), 1e-12)))
        self._logs = np.append(self._logs, log)[-self._KEPT :]
        return surprise > threshold
