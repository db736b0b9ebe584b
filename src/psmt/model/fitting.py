"""How `PSMT` learns from the past: dictionary, window of codes, and 'auto' parameters."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from psmt.changes import FrameWatch
from psmt.coding import SparseCoder
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_name
from psmt.errors import NotEnoughFramesError, SilentCodesError
from psmt.extrapolation import make_extrapolation
from psmt.model.intervals import ForecastErrors
from psmt.model.online_estimator import as_small_work
from psmt.model.state import LARGEST_UNIT, FittedState
from psmt.model.tables import TableForm
from psmt.selection import Choice, choose_by_folds, held_out, walk_forward
from psmt.series import Scaling, check_lengths, first_frames
from psmt.types import Array, Mask, Progress, silent
from psmt.utils.transactions import all_or_nothing
from psmt.utils.validation import LARGEST, check_series, check_time_index, warn_of_mistakes

_LONGEST_WINDOW = 4096  # longest window that window='auto' takes, because all its codes are kept in memory


class Learning(FittedState):
    """Base class of `PSMT` with `fit` and `begin`."""

    @as_small_work
    @all_or_nothing
    def fit(
        self, X: ArrayLike, y: object = None, *, lengths: Sequence[int] | None = None, progress: Progress = silent
    ) -> Self:
        """Learn the dictionary, the window of codes and the 'auto' parameters from the past frames (time, n_features).

        X may hold several series (subjects, sessions), one after the other. `lengths` then gives the number of frames
        of each series. `psmt.series.join_series` returns X and `lengths`. Nothing is learned from the step between two
        series. With `standardise`, each series is standardised separately. `update` continues the last series.

        Parameters
        ----------
        X : (time, n_features) array
            Frames in order of time, without gaps. `NotEnoughFramesError` is raised if there are fewer than `window`.
            `SilentCodesError` is raised if all codes are zero because `alpha` is too large.
        y : object
            Ignored.
        lengths : sequence of int, optional
            Number of frames of each series in X; by default X is one series.
        progress : callable, optional
            Called with the name of a stage ('dictionary', 'choice', 'window'), the amount of work done, and the total
            amount. The stage 'dictionary' may occur again after 'choice', when the dictionary learns further.
        """
        self._check_parameters()
        given = self.check_next(X, reset=True)
        parts = check_lengths(lengths, len(given))
        if self.half_stencils and len(parts) > 1:
            raise ValueError(
                f"half_stencils=True is for one series, and lengths has {len(parts)}; use half_stencils=False"
            )
        self.window_ = min(len(given), _LONGEST_WINDOW) if isinstance(self.window, str) else self.window
        if len(given) < 3:
            raise NotEnoughFramesError(f"X has {len(given)} frames (n_samples={len(given)}); motion needs at least 3")
        if len(given) < self.window_:
            raise NotEnoughFramesError(
                f"X has {len(given)} frames, fewer than window={self.window_}; use window <= {len(given)}, "
                "window='auto', more frames, or PSMT.for_series() for a series other than a film"
            )
        check_time_index(X, parts)
        warn_of_mistakes(X, given)
        self._scaling, past = self._standardised(given, parts)
        begins = first_frames(parts) if len(parts) > 1 else np.zeros(len(past), dtype=bool)
        self._extrapolation = make_extrapolation(self.extrapolation)
        self.choice_, learned = self._choose_parameters(past, begins, progress)
        self.coder_ = self.fit_coder(past, learned, progress=progress)
        progress("window", 0, 1)
        codes = self._codes_by(self.coder_, past[-self.window_ :])
        self._check_activity(codes, past)
        self.moments_ = WindowMoments.of(self._engine.array(codes), self._engine, begins=begins[-self.window_ :])
        self._keep_residual(self._engine.array(past[-1]))
        self._watch = FrameWatch(past[-parts[-1] :], self.window_)
        self.n_components_, self.lam_ = self.choice_.n_components, self.choice_.lam
        self._embedding = self._forecast = None
        self._intervals, self._table = ForecastErrors(0, given.shape[1]), TableForm.of(X)
        self.followed_ = self._start_following()
        rank = len(self._embed())
        if isinstance(self.n_components, Integral) and self.n_components > rank:
            raise ValueError(
                f"n_components={self.n_components} is more than the rank {rank} of the window's codes; "
                f"use n_components <= {rank}, n_components='auto', a longer window, or one with more motion"
            )
        recent, seams = np.array(past[-self.window_ :]), begins[-self.window_ :]
        if self.on_cut == "hold" and self._extrapolation.n_folds:  # the matrix must not learn from steps across a cut
            seams = seams | FrameWatch.cuts_in(recent, self.window_)
        self._extrapolation.learn_window(recent, codes, self.embedding_, seams)
        progress("window", 1, 1)
        return self

    @as_small_work
    def begin(self, X: ArrayLike) -> Self:
        """Continue with another series, given three or more first frames of it (time, n_features). Return the model.

        Everything learned so far is kept. The codes of the new series enter the window. The step from the old series to
        the new one is not used. With `standardise`, the new series is standardised separately.
        """
        check_is_fitted(self, "moments_")
        given = self.check_next(X, minimum=3)
        if self.half_stencils:
            raise ValueError("half_stencils=True is for one series; use half_stencils=False to begin another")
        scaling, past = self._standardised(given, [len(given)])
        codes = self._codes_by(self.coder_, past[-self.window_ :])
        self._check_activity(codes, past)
        self._undo = self._keep()
        self._scaling = scaling
        for i, code in enumerate(self._engine.array(codes)):
            self.moments_.slide(code, begins=i == 0)
        self._embedding = self._forecast = None
        self._intervals.begin()
        self._table = TableForm.of(X)
        self._embed()
        self._keep_residual(self._engine.array(past[-1]))
        self._watch = FrameWatch(past, self.window_)
        self._extrapolation.continue_series(past, self.codes_, self.embedding_)
        self._undo = None
        return self

    def _standardised(self, given: Array, parts: Sequence[int]) -> tuple[Scaling, Array]:
        """Standardise each series. Return the scaling of the last series, and all frames. `parts` are the lengths."""
        if not self.standardise:
            return Scaling.none(given.shape[1]), given
        series = np.split(given, np.cumsum(parts)[:-1])
        scalings = [Scaling.of(one) for one in series]
        return scalings[-1], np.concatenate(
            [scaling.standardise(one) for scaling, one in zip(scalings, series, strict=True)]
        )

    def _check_activity(self, codes: Array, frames: Array) -> None:
        """Raise an error if all codes (n, n_atoms) are zero although the frames are not zero."""
        largest = float(np.linalg.norm(frames[-len(codes) :], axis=1).max(initial=0.0))
        if largest > 0 and not codes.any():
            raise SilentCodesError(
                f"all {len(codes)} codes of the window are zero: alpha={self.coder_.alpha_:g} outweighs frames whose "
                f"largest norm is {largest:.3g}; use alpha='auto', standardise=True, or alpha < {largest:.3g}"
            )

    def _choose_parameters(self, past: Array, begins: Mask, progress: Progress) -> tuple[Choice, SparseCoder | None]:
        """Return the chosen n_components and lam, and a coder or None.

        Values that are 'auto' are chosen by walk-forward errors on held-out frames. An extrapolation with ``n_folds >
        0`` also chooses its own parameters. The coder has not learned from the held-out frames, and can learn further
        from them. If it is None, the dictionary must be learned from scratch.
        """
        names = ("n_components", "lam", "centred", "rank_tol", "activity_bound", "merge_parallel", "half_stencils")
        how: dict[str, Any] = {name: getattr(self, name) for name in names} | {
            "device": engine_name(self.device, self.dtype),
            "begins": begins[-self.window_ :],
            "progress": progress,
        }
        # Codes of frames that the dictionary was learned from are smoother than codes of future frames.
        n_held, recent, rule = held_out(self.window_), past[-self.window_ :], self._extrapolation
        if rule.n_folds:
            coder = self.fit_coder(past[: len(past) - rule.n_folds * n_held], progress=progress)
            return choose_by_folds(rule, recent, self._codes_by(coder, recent), coder.dictionary_, **how), None
        if not isinstance(self.n_components, str) and not isinstance(self.lam, str) and not rule.adaptive:
            return Choice(self.n_components, float(self.lam), scores={}), None
        coder = self.fit_coder(past[: len(past) - n_held], progress=progress)
        choice = walk_forward(self._codes_by(coder, recent), coder.dictionary_, rule, **how)
        # With given values, every extrapolation has the same dictionary, learned from the whole past at once.
        return choice, coder if "auto" in (self.n_components, self.lam) else None

    def fit_coder(
        self, samples: Array, learned: SparseCoder | None = None, *, progress: Progress = silent
    ) -> SparseCoder:
        """Return the parameter `coder` if it is fitted, or else a coder fitted to the samples (n, n_features).

        The coder `learned` was fitted to all samples except those held out. With `dictionary_from='past'`, a copy of it
        learns further from the held-out samples, which is faster than a new fit. With 'window', a new coder is fitted
        to the last `window` samples. A subclass may return a coder that another model has fitted.
        """
        place: dict[str, Any] = {"device": self.device, "dtype": self.dtype}
        if self.coder is None:
            n_atoms = min(max(self.window_ // 7, 16), 512) if isinstance(self.n_atoms, str) else self.n_atoms
            coder = SparseCoder(n_atoms=n_atoms, alpha=self.alpha, random_state=self.random_state, **place)
        elif hasattr(self.coder, "dictionary_"):
            same = (self.coder.device, self.coder.dtype) == (self.device, self.dtype)
            return self.coder if same else self.coder.to(**place)
        else:
            coder = clone(self.coder).set_params(**place)
        if learned is not None and self.dictionary_from == "past":
            return learned.fit_further(samples[-held_out(self.window_) :])
        shown = samples[-self.window_ :] if self.dictionary_from == "window" else samples
        return coder.fit(shown, progress=progress)

    @staticmethod
    def _codes_by(coder: SparseCoder, frames: Array) -> Array:
        """Return the codes (time, n_atoms) of frames as an array, even if scikit-learn is set to return tables."""
        return np.asarray(coder.transform(frames))

    def check_next(self, X: ArrayLike, *, reset: bool = False, minimum: int = 1) -> Array:
        """Return validated frames (time, n_features). Unless `reset` is True, feature names must be those of `fit`."""
        frames = check_series(X, minimum=minimum, largest=self._largest)
        validate_data(self, X, skip_check_array=True, reset=reset)
        return frames

    @property
    def _largest(self) -> float:
        """Return the largest absolute value that a frame may contain."""
        return LARGEST_UNIT if self.standardise else LARGEST

    def _keep_residual(self, frame: Array) -> None:
        """Store the frame minus its decoded code if the extrapolation uses this residual, and zero otherwise."""
        self._residual = 0.0 * frame
        if self._extrapolation.keeps_residual:
            self._residual = frame - self.coder_.decode(self.moments_.latest(1))[0]
