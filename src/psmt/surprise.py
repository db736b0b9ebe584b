"""How unexpected a frame is, and whether it begins something new: sharp changes of films and series.

`CutDetector` holds the errors of expecting a frame against what they usually are, whoever expects it.
`FrameWatch` expects the frames of a series by itself, at the price of a few sums, for models whose own prediction costs
much more or was never asked for. `Aftermath` tells when predictions are as good as none again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.numerics.linalg import robust_peak
from psmt.persistence.schema import LARGEST_SQUARE, Field, Size, counter
from psmt.types import Array
from psmt.utils.disk_series import mean_of
from psmt.utils.validation import LARGEST


class CutDetector:
    """Outlier test on the errors of predicting and of copying, against their exponentially weighted means.

    `surprise` is the error of the last prediction in units of the usual one, 1 where there is none to compare with;
    `cut` says whether the scene is taken to have changed sharply.

    Parameters
    ----------
    unlike : float
        A frame begins something new only if it differs from the one before by this much of the picture's variance: what
        a jolt, a stutter or one step of a fade leaves of a picture is more like it than that.
    n_recent : int
        How many of the last errors the prediction must have failed worse than, by the factor of `worst`: for frames of
        few features, whose errors scatter so much that a mean does not tell what is usual. Cuts are not among them.
    worst : float
        By how much worse, for a frame that has nothing in common with the one before. The more like it it is, the
        larger: this, over the share of the picture's variance by which the two differ.
    """

    _MEMORY = 30.0
    """Frames after which old errors have faded to 1/e."""

    _CUT = 6.0
    """A sharp change is a prediction that fails this much worse than usual .."""

    _LEAP = 2.0
    """... and a frame that differs this much more than usual from the one before, and is unlike it."""

    _EXPLAINED = 0.25
    """... and that motion does not explain: it leaves more than this of the difference. In the built-in film a pan of
    up to 16 pixels per frame leaves 0.01 to 0.08, a cut 0.37 to 0.77."""

    _CAP = 3.0
    """An error enters the usual ones as at most this multiple of them: one flash must not make all that follows
    usual."""

    _FLOOR = 1e-4
    """Errors below this fraction of the variance over the picture are no scale to measure others by."""

    _FORGOTTEN = 0.1
    """Frames that a record counts for after a sharp change: the next errors decide what is usual."""

    def __init__(self, *, unlike: float = 0.2, n_recent: int = 0, worst: float = 1.0) -> None:
        self.unlike = unlike
        self.worst = worst
        self.recent = np.zeros(n_recent)
        self.surprise = 1.0
        self.cut = False
        # Usual errors of predicting and of copying, and the frames that they are known from.
        self.usual = np.zeros(2)
        self.frames = 0.0
        self._cuts_in_a_row = 0

    def get_state(self) -> dict[str, Array]:
        """All that is known, as numbers."""
        figures = np.array([self.surprise, self.cut, *self.usual, self.frames, self._cuts_in_a_row])
        return {"figures": figures} | ({"recent": self.recent} if len(self.recent) else {})

    @classmethod
    def schema(cls, n_recent: int = 0) -> dict[str, Field]:
        """What `get_state` gives."""
        most = (np.inf, 1.0, LARGEST_SQUARE, LARGEST_SQUARE, LARGEST, np.inf)
        recent = {"recent": Field((n_recent,), low=0.0, high=LARGEST_SQUARE)} if n_recent else {}
        return {"figures": Field((6,), low=0.0, high=most)} | recent

    def set_state(self, state: Mapping[str, Array]) -> None:
        """Go on from what `get_state` gave."""
        self.recent = np.array(state.get("recent", self.recent))
        value, cut, *usual, frames, cuts = state["figures"]
        self.surprise, self.cut, self.usual = float(value), bool(cut), np.array(usual)
        self.frames, self._cuts_in_a_row = float(frames), int(cuts)

    def observe(self, error: float, copy_error: float, contrast: float, unexplained: float = np.inf) -> None:
        """Take in the mean squared errors of a prediction and of copying, and the variance over the picture.

        `unexplained` is the error that is left where the frame is explained by the last one as well as motion can.
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
            # A flash is two sharp changes; more than that in a row is a film where every frame is new.
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


class FrameWatch:
    """What came of a series so far, as far as sharp changes are concerned.

    A frame (n_features,) is expected to be the last one, or to lie on the straight line through the last two: whichever
    comes closer. So motion does not surprise while it goes on, and a film that stands still does not when it stays. The
    prediction of a model plays no part: `surprise` is the same whether one was asked for or not.

    `CutDetector` needs the picture's own scale, below which no change is sharp: it is the energy of the frames about
    the mean of the past. A past that stood perfectly still has none: whatever begins to move then is new.

    Parameters
    ----------
    past : (time, n_features) array
        Frames that came before; what is usual is learned from the last of them.
    window : int
        How many of the latest frames `peak_norm` looks at.

    Attributes
    ----------
    surprise, cut : float, bool
        Of the last frame, see `CutDetector`.
    scene_length : int
        Frames since the last sharp change, the one that it came with included.
    """

    _LEARNED = 100
    """Frames of the past that tell what is usual: older ones would have faded."""

    _UNLIKE = 0.3
    """Frames of equal energy that correlate by less than 0.85 are unlike. A patch holds less of a scene than a picture
    does: what moves leaves it within a few frames, and these are no cuts."""

    _WORST, _SCATTER, _WORST_OF_FEW = 1.2, 1.5, 2.0
    """A cut is worse than all recent frames by the first factor, and by so much more the fewer features there are, as
    the mean of n squares scatters by 1 / sqrt(n) of itself; but by no more than the last."""

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
        """Take in the frame (n_features,) that came."""
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

    def get_state(self) -> dict[str, NDArray[Any]]:
        """All that goes on from frame to frame, as arrays."""
        own = {"centre": self._centre, "norms": self._norms, "last": self._last}
        return own | {"scene_length": np.array(self.scene_length)} | self._detector.get_state()

    @classmethod
    def schema(cls, n_features: Size) -> dict[str, Field]:
        """What `get_state` gives. There are fewer norms than the window has codes while a series is shorter than it."""
        return {
            "centre": Field((n_features,)),
            "norms": Field(("n_norms",), low=0.0),
            "last": Field((2, n_features)),
            "scene_length": counter(1),
            **CutDetector.schema(cls._LEARNED),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` gave."""
        self._centre, self._norms, self._last = (np.array(state[name]) for name in ("centre", "norms", "last"))
        if len(self._norms) > self._window:
            raise ValueError(f"{len(self._norms)} norms, but a window of {self._window}")
        self.scene_length = int(state["scene_length"])
        self._detector.set_state(state)


def _mean_square(difference: Array) -> float:
    """The mean of the squares (n_features,): by a product, as each frame needs four of them."""
    return float(difference @ difference) / len(difference)


class Aftermath:
    """The time after a cut, until a model's own predictions have done better than holding still, or it is long ago.

    The window is still full of the old scene, and what it shows of the new one is little: how little depends on both,
    so it is measured. Errors are faded sums over the frames since the cut, of which some must have come. On many films
    holding still is better at any time, cut or not: that must not turn every model into one that copies.
    """

    _MEMORY = 5.0
    """Frames after which old errors have faded to 1/e."""

    _FEWEST = 5
    """Frames before which nothing is decided."""

    _MOST = 25
    """Frames after which it is over in any case: about a second of film."""

    def __init__(self) -> None:
        self.is_over = True
        self._errors = np.zeros(2)
        self._frames = 0

    def begin(self) -> None:
        """A cut has come."""
        self.is_over, self._errors, self._frames = False, np.zeros(2), 0

    def end(self) -> None:
        """The old scene is gone from the window."""
        self.is_over = True

    def observe(self, own: float, held: float) -> None:
        """Take in the squared errors of what the model would have predicted, and of holding still."""
        self._errors = np.exp(-1.0 / self._MEMORY) * self._errors + [own, held]
        self._frames += 1
        does_better = self._frames >= self._FEWEST and self._errors[0] <= self._errors[1]
        self.is_over = bool(does_better or self._frames >= self._MOST)

    def get_state(self) -> dict[str, Array]:
        """All that is known, as numbers."""
        return {"figures": np.array([self.is_over, *self._errors, self._frames])}

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """What `get_state` gives."""
        return {"figures": Field((4,), low=0.0, high=(1.0, LARGEST_SQUARE, LARGEST_SQUARE, cls._MOST))}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` gave."""
        is_over, own, held, frames = state["figures"].tolist()
        self.is_over, self._errors, self._frames = bool(is_over), np.array([own, held]), int(frames)


class SurpriseAlarm:
    """Alarm on surprises that a film which goes on as it did exceeds at a stated rate.

    The tail of the latest surprises is taken for a power law, with Hill's estimate of its exponent, which tells how
    high a value is that comes once in so many frames, also if fewer have come (Weissman, 1978). Where the tail is
    lighter than that, alarms are rarer than stated. A value enters as at most the threshold that it was held against,
    so that one absurd value does not raise it for a thousand frames.

    Parameters
    ----------
    rate : float
        Share of frames with a false alarm, 0 < rate < 0.05.
    """

    _KEPT = 1000
    """Surprises that the tail is known from, at the most .."""

    _FEWEST = 100
    """... and at the least: before, there is no alarm."""

    _TAIL = 0.1
    """Share of the surprises that are taken for the tail."""

    def __init__(self, rate: float = 1e-3) -> None:
        if not 0 < rate < 0.05:
            raise ValueError(f"a rate of {rate!r} false alarms per frame is out of range; use 0 < rate < 0.05")
        self.rate = rate
        self._logs = np.zeros(0)

    def get_state(self) -> dict[str, Array]:
        """Logarithms of the latest surprises."""
        return {"logs": self._logs}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` gave."""
        self._logs = np.array(state["logs"])

    @property
    def threshold(self) -> float:
        """The surprise that is exceeded at the stated rate; infinite while too little is known."""
        n = len(self._logs)
        if n < self._FEWEST:
            return np.inf
        k = int(self._TAIL * n)
        top = np.sort(self._logs)[-k - 1 :]
        hill = float(np.mean(top[1:] - top[0]))
        return float(np.exp(top[0] + hill * np.log(k / (n * self.rate))))

    def observe(self, surprise: float) -> bool:
        """Return whether a surprise exceeds the threshold of those before it, and take it in."""
        threshold = self.threshold
        log = float(np.log(max(min(surprise, threshold), 1e-12)))
        self._logs = np.append(self._logs, log)[-self._KEPT :]
        return surprise > threshold
