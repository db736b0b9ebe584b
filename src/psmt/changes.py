"""Surprise of a frame, and detection of cuts, which are sharp changes of a film or series.

`CutDetector` receives the errors of any predictor, and compares each error with the usual error. `FrameWatch` receives
frames and predicts them itself by simple rules. Models use it if their own predictions are expensive.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.numerics.arrays import robust_peak
from psmt.persistence.schema import LARGEST_SQUARE, AttributeState, Field, Size, counter
from psmt.types import Array, Mask
from psmt.utils.jit import njit
from psmt.utils.validation import LARGEST

_MEMORY = 30.0  # frames after which old errors have faded to 1/e
_LEAP = 2.0  # a cut differs from the frame before it by at least this multiple of the usual difference
_CAP = 3.0  # larger errors count as this multiple of the usual error, so that one flash hardly changes the usual error
_FLOOR = 1e-4  # usual errors are at least this fraction of the contrast
_FORGOTTEN = 0.1  # weight of all earlier errors after a cut, in frames: the next errors decide what is usual

_EXPLAINED = 0.25
"""A frame is a cut only if ``unexplained / copy_error`` exceeds this value (see `CutDetector.observe`). In the built-in
film, this ratio is 0.01 to 0.08 for a pan of up to 16 pixels per frame, and 0.37 to 0.77 for a cut."""


@njit(cache=True)
def _detect(
    errors: Array, figures: Array, recent: Array, sharp: float, unlike: float, worst: float, fewest: int
) -> Mask:
    """Return a mask (n,) of the frames that are cuts. Rows of `errors` (n, 4) are arguments of `CutDetector.observe`.

    `figures` and `recent` are the state of a `CutDetector`, and are changed in place. The other arguments are its
    parameters. The first `fewest` of the n frames are never cuts.
    """
    cuts = np.zeros(len(errors), dtype=np.bool_)
    fade = np.exp(-1.0 / _MEMORY)
    usual, usual_copy, frames, in_a_row = figures[2], figures[3], figures[4], figures[5]
    surprise = 1.0
    for i in range(len(errors)):
        error, copy_error, contrast, unexplained = errors[i, 0], errors[i, 1], errors[i, 2], errors[i, 3]
        scale, copy_scale = max(usual, _FLOOR * contrast), max(usual_copy, _FLOOR * contrast)
        known = frames > 0 and scale > 0
        surprise = error / scale if known else 1.0
        limit = 0.0
        for k in range(len(recent)):  # loops compile in a fraction of the time of functions on whole arrays
            limit = max(limit, worst * recent[k])
        share = min(copy_error / contrast, 1.0) if contrast > 0 else 1.0
        cuts[i] = (
            known
            and i >= fewest
            and surprise > sharp
            and error * share**2 > limit
            and copy_error > max(_LEAP * copy_scale, unlike * contrast)
            and unexplained > _EXPLAINED * copy_error
            # A flash is two sharp changes; with more than that in a row, every frame of the film is new.
            and in_a_row < 2
        )
        if cuts[i]:
            in_a_row += 1
            frames = _FORGOTTEN
            continue
        in_a_row = 0
        if len(recent):
            for k in range(len(recent) - 1):
                recent[k] = recent[k + 1]
            recent[-1] = error
        if known and frames >= 1:
            error, copy_error = min(error, _CAP * scale), min(copy_error, _CAP * copy_scale)
        before = fade * frames
        frames = before + 1.0
        usual = (before * usual + error) / frames
        usual_copy = (before * usual_copy + copy_error) / frames
    cut = 1.0 if len(cuts) and cuts[-1] else 0.0
    figures[0], figures[1], figures[2] = surprise, cut, usual
    figures[3], figures[4], figures[5] = usual_copy, frames, in_a_row
    return cuts


class CutDetector(AttributeState):
    """Detects cuts by comparing each error with the usual error, an exponentially weighted mean of earlier errors.

    The attribute `surprise` is the error of the last prediction divided by the usual error. It is 1 if the usual error
    is not known yet. The attribute `cut` says whether the last frame was a sharp change.

    Parameters
    ----------
    sharp : float
        The error of a cut is larger than this multiple of the usual error.
    unlike : float
        A cut differs from the frame before it by at least this fraction of the picture's variance. After a jolt, a
        stutter or one step of a fade, the difference is smaller.
    n_recent : int
        The error of a cut must also exceed ``worst / d**2 * m``, where m is the largest of this many recent errors
        (errors of cuts excluded). Use it for frames of few features: their errors vary so much that a mean says little.
    worst : float
        Factor in the formula of `n_recent`. There d (at most 1) is the mean squared difference from the frame before,
        divided by the picture's variance.
    fewest : int
        The first `fewest` frames of each call are never cuts. Use 0 with `observe`, which passes one frame per call.
    """

    state_figures = ("figures",)

    def __init__(
        self, *, sharp: float = 6.0, unlike: float = 0.2, n_recent: int = 0, worst: float = 1.0, fewest: int = 0
    ) -> None:
        self.unlike = unlike
        self._options = sharp, unlike, worst, fewest
        self.recent = np.zeros(n_recent)
        self.state_arrays = ("recent",) if n_recent else ()
        # Surprise and cut of the last frame, usual errors of predicting and of copying, the number of frames from which
        # these were computed, and the number of successive cuts.
        self.figures = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    @property
    def surprise(self) -> float:
        """Return the error of the last prediction divided by the usual error."""
        return float(self.figures[0])

    @property
    def cut(self) -> bool:
        """Return whether the last frame was a sharp change."""
        return bool(self.figures[1])

    @classmethod
    def schema(cls, n_recent: int = 0) -> dict[str, Field]:
        """Return the shapes and bounds that the saved arrays must have, by name."""
        most = (np.inf, 1.0, LARGEST_SQUARE, LARGEST_SQUARE, LARGEST, np.inf)
        recent = {"recent": Field((n_recent,), low=0.0, high=LARGEST_SQUARE)} if n_recent else {}
        return {"figures": Field((6,), low=0.0, high=most)} | recent

    def observe(self, error: float, copy_error: float, contrast: float, unexplained: float = np.inf) -> None:
        """Receive a frame's mean squared errors (of its prediction, and of a copy), and its contrast (pixel variance).

        `unexplained` is the mean squared error that remains when the frame before is moved to match this frame best.
        """
        self.observe_all(np.array([[error, copy_error, contrast, unexplained]]))

    def observe_all(self, errors: Array) -> Mask:
        """Receive n frames. Rows of `errors` (n, 4) are arguments of `observe`. Return a mask (n,) of cuts."""
        figures, recent = self.figures.copy(), self.recent.copy()
        cuts = _detect(errors, figures, recent, *self._options)
        self.figures, self.recent = figures, recent
        return cuts


class FrameWatch(AttributeState):
    """Measures surprise and detects cuts in a series, without a model.

    Each frame (n_features,) is predicted twice: by a copy of the last frame, and by the straight line through the last
    two frames. The smaller of these two errors counts. So neither steady motion nor a still picture is surprising.

    The contrast that `CutDetector` needs is the larger of two numbers: the variance over a frame's features, and the
    mean square of the frame's deviation from the mean of the latest frames. With the variance, a static camera hardly
    ever triggers cuts. The deviation is needed for series of few features.

    Whenever a frame arrives, all results are recomputed from the latest frames. So they do not depend on whether frames
    arrive one by one or several together.

    Parameters
    ----------
    past : (time, n_features) array
        Earlier frames. The latest of them determine the usual errors.
    window : int
        Largest number of latest frames on which results depend.

    Attributes
    ----------
    surprise, cut : float, bool
        Surprise of the last frame, and whether it was a cut; see `CutDetector`.
    scene_length : int
        Number of frames since the last cut, including the cut itself. Without a cut, the number of stored frames.
    is_new : bool
        Whether the last cut was less than 25 frames ago, which is about a second of film. A cut is recognised only
        while the 11 frames before it are in the window.
    """

    _KEPT = 151  # number of latest frames that are kept. All results but `peak_norm` depend only on them.
    _RECENT = 100  # value of `n_recent`
    _SHARP, _UNLIKE = 4.0, 0.3
    """Values of `sharp` and `unlike` for patches. With this `unlike`, two frames of equal energy are unlike if their
    correlation is below 0.85. An object that leaves the patch within a few frames is then not a cut."""

    _WORST, _SCATTER, _WORST_OF_FEW = 1.2, 1.5, 2.0
    """For n features, `worst` is ``min(_WORST + _SCATTER / sqrt(n), _WORST_OF_FEW)``, because the relative deviation of
    a mean of n squares is proportional to 1 / sqrt(n)."""

    _FEWEST = 10  # number of errors that must be known before a cut can be detected
    _NEW = 25
    """Number of frames for which a scene counts as new. On films, repeating the last code for this long is about as
    good as repeating it until the model predicts better."""

    state_arrays = ("_frames", "_norms")

    def __init__(self, past: Array, window: int) -> None:
        self._window, self._n_kept = window, min(self._KEPT, window)
        self._norms = np.linalg.norm(np.asarray(past[-window:]), axis=1)
        self._begin(past[-self._n_kept :])

    def _begin(self, frames: Array) -> None:
        self._frames: list[Array] = []
        self._errors = np.zeros((0, 3))
        for frame in np.array(frames):
            self._add(frame)
        self._look()

    @classmethod
    def cuts_in(cls, past: Array, window: int) -> Mask:
        """Return a mask of the frames (time, n_features) that are cuts. Each is judged only by the frames before it."""
        n_kept = min(cls._KEPT, window)
        return np.array([cls(past[max(t + 1 - n_kept, 0) : t + 1], n_kept).cut for t in range(len(past))])

    @property
    def peak_norm(self) -> float:
        """Return the largest norm of the latest frames, with outliers clipped."""
        return float(robust_peak(self._norms))

    @property
    def frames(self) -> Array:
        """Return the latest frames (time, n_features)."""
        return np.array(self._frames)

    def observe(self, frame: Array) -> None:
        """Receive the next frame (n_features,)."""
        self._add(frame)
        self._norms = np.append(self._norms, np.linalg.norm(frame))[-self._window :]
        self._look()

    def _add(self, frame: Array) -> None:
        """Store a frame, its variance, and the errors of two predictions: the copy, and the straight line."""
        before = self._frames[-2:]
        copied = _mean_square(frame - before[-1]) if before else 0.0
        continued = _mean_square(frame - 2.0 * before[-1] + before[-2]) if len(before) > 1 else copied
        errors = (copied, continued, _mean_square(frame - frame.mean()))
        self._frames = [*self._frames, frame][-self._n_kept :]
        self._errors = np.vstack([self._errors, errors])[-self._n_kept :]

    def _look(self) -> None:
        """Detect the cuts among the stored frames. Set `surprise`, `cut`, `scene_length` and `is_new`."""
        copied, continued, energies = self._errors.T
        errors = np.minimum(copied, continued)[1:]
        errors[:1] = copied[1:2]  # the frame before the first two is not known
        copied = copied[1:]
        if np.any(copied > self._UNLIKE * np.maximum(energies[1:], energies[:-1])):
            frames = np.array(self._frames)
            frames -= frames.mean(axis=0)
            energies = np.maximum(energies, np.einsum("ij,ij->i", frames, frames) / frames.shape[1])
        contrasts = np.maximum(energies[1:], energies[:-1])
        worst = min(self._WORST + self._SCATTER / np.sqrt(len(self._frames[0])), self._WORST_OF_FEW)
        detector = CutDetector(
            sharp=self._SHARP, unlike=self._UNLIKE, n_recent=self._RECENT, worst=worst, fewest=self._FEWEST
        )
        unexplained = np.full_like(copied, np.inf)
        (cuts,) = np.nonzero(detector.observe_all(np.stack([errors, copied, contrasts, unexplained], axis=1)))
        self.surprise, self.cut = detector.surprise, detector.cut
        self.scene_length = len(copied) - int(cuts[-1]) if len(cuts) else len(self._frames)
        self.is_new = bool(len(cuts) and self.scene_length <= self._NEW)

    @classmethod
    def schema(cls, n_features: Size) -> dict[str, Field]:
        """Return the shapes and bounds of the saved arrays, by name. The numbers of frames and norms may vary."""
        return {"frames": Field(("n_watched", n_features)), "norms": Field(("n_norms",), low=0.0)}

    @classmethod
    def former_schema(cls, n_features: Size) -> dict[str, Field]:
        """Return the shapes and bounds of the arrays that psmt 0.2 saved, by name."""
        return {
            "centre": Field((n_features,)),
            "norms": Field(("n_norms",), low=0.0),
            "last": Field((2, n_features)),
            "scene_length": counter(1),
            **CutDetector.schema(cls._RECENT),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Continue from a state that `get_state` returned, or from the last frames and norms in a file of psmt 0.2."""
        if "last" in state:
            frames = np.array([*self._frames[:-2], *state["last"]])
            state = {"frames": frames[-self._n_kept :], "norms": state["norms"]}
        for name, most in (("norms", self._window), ("frames", self._n_kept)):
            if len(state[name]) > most:
                raise ValueError(f"the state has {len(state[name])} {name}, more than {most} for window={self._window}")
        self._norms = np.array(state["norms"])
        self._begin(state["frames"])


def _mean_square(difference: Array) -> float:
    """Return the mean square of a vector (n_features,). An inner product is the fastest way."""
    return float(difference @ difference) / len(difference)


class SurpriseAlarm(AttributeState):
    """Alarm for large surprises, with a given rate of false alarms while nothing unusual happens.

    The tail of the latest surprises is modelled as a power law, with Hill's estimate of its exponent. The threshold is
    the value that is exceeded at the given rate under this law. It may lie beyond all observed values (Weissman, 1978).
    If the tail is lighter than a power law, alarms are rarer. A surprise above the threshold is stored as the
    threshold, so that one extreme value does not raise the threshold for a thousand frames.

    Parameters
    ----------
    rate : float
        Fraction of frames with a false alarm, 0 < rate < 0.05.
    """

    _KEPT = 1000  # number of latest surprises from which the tail is estimated
    _FEWEST = 100  # number of surprises below which no alarm is given
    _TAIL = 0.1  # fraction of the surprises that form the tail

    state_arrays = ("_logs",)

    def __init__(self, rate: float = 1e-3) -> None:
        if not 0 < rate < 0.05:
            raise ValueError(f"a rate of {rate!r} false alarms per frame is out of range; use 0 < rate < 0.05")
        self.rate = rate
        self._logs = np.zeros(0)

    @property
    def threshold(self) -> float:
        """Return the surprise that is exceeded at the given rate, or infinity if there are too few frames."""
        n = len(self._logs)
        if n < self._FEWEST:
            return np.inf
        k = int(self._TAIL * n)
        top = np.sort(self._logs)[-k - 1 :]
        hill = float(np.mean(top[1:] - top[0]))
        return float(np.exp(top[0] + hill * np.log(k / (n * self.rate))))

    def observe(self, surprise: float) -> bool:
        """Return whether a surprise exceeds the threshold set by earlier surprises. Then store the surprise."""
        threshold = self.threshold
        log = float(np.log(max(min(surprise, threshold), 1e-12)))
        self._logs = np.append(self._logs, log)[-self._KEPT :]
        return surprise > threshold
