"""How `PSMT` learns from the past: dictionary, window of codes, and 'auto' parameters."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from psmt.coding import SparseCoder
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_name
from psmt.errors import NotEnoughFramesError, SilentCodesError
from psmt.extrapolation import make_extrapolation
from psmt.model.online_estimator import as_small_work
from psmt.model.state import FittedState
from psmt.selection import Choice, choose_by_folds, held_out, walk_forward
from psmt.series import Scaling, check_lengths, first_frames
from psmt.surprise import Aftermath, FrameWatch
from psmt.types import Array, Mask, Progress, silent
from psmt.utils.validation import check_series

_LONGEST_WINDOW = 4096
"""Longest window that window='auto' takes: all its codes are kept, and models are learned from it repeatedly."""


class Learning(FittedState):
    """`fit`, and what it needs."""

    @as_small_work
    def fit(
        self, X: ArrayLike, y: object = None, *, lengths: Sequence[int] | None = None, progress: Progress = silent
    ) -> Self:
        """Learn from the past frames (time, n_features): dictionary, window of codes, 'auto' parameters.

        X may be several series (subjects, sessions) one after the other, with their `lengths`, as in hmmlearn: see
        `psmt.series.join_series`. Nothing is learned from the step between two of them. With `standardise`, each is
        standardised by itself. `update` continues the last one.

        Parameters
        ----------
        X : (time, n_features) array
            Frames in order of time, without gaps. Fewer than `window` raise `NotEnoughFramesError`; if all their codes
            are zero, because `alpha` is too large, that is a `SilentCodesError`.
        y : object
            Ignored.
        lengths : sequence of int, optional
            Number of frames of each series in X; by default X is one series.
        progress : callable, optional
            Called with the name of a stage ('dictionary', 'choice', 'window'), how much of it is done, and how much
            there is. A stage may occur twice: the dictionary continues to learn after the choice.
        """
        self._check_parameters()
        given = self.check_next(X, reset=True)
        parts = check_lengths(lengths, len(given))
        if self._half_stencils and len(parts) > 1:
            raise ValueError(
                f"half_stencils=True is for one series, and lengths names {len(parts)}; use half_stencils=False"
            )
        self.window_ = min(len(given), _LONGEST_WINDOW) if isinstance(self.window, str) else self.window
        if len(given) < 3:
            raise NotEnoughFramesError(f"X has {len(given)} frames (n_samples={len(given)}); motion needs at least 3")
        if len(given) < self.window_:
            raise NotEnoughFramesError(
                f"X has {len(given)} frames, fewer than window={self.window_}; "
                f"use window <= {len(given)} or more frames"
            )
        self._scaling, past = self._standardised(given, parts)
        begins = first_frames(parts) if len(parts) > 1 else np.zeros(len(past), dtype=bool)
        self._extrapolation = make_extrapolation(self.extrapolation)
        self.choice_, learned = self._look_back(past, begins, progress)
        self.coder_ = self.fit_coder(past, learned, progress=progress)
        progress("window", 0, 1)
        codes = self._codes_by(self.coder_, past[-self.window_ :])
        self._check_activity(codes, past)
        self.moments_ = WindowMoments.of(self._engine.array(codes), self._engine, begins=begins[-self.window_ :])
        self._keep_residual(self._engine.array(past[-1]))
        self._watch, self._aftermath = FrameWatch(past[-parts[-1] :], self.window_), Aftermath()
        self.n_components_, self.lam_ = self.choice_.n_components, self.choice_.lam
        self._embedding = None
        self.followed_ = self._start_following()
        rank = len(self._embed())
        if isinstance(self.n_components, Integral) and self.n_components > rank:
            raise ValueError(
                f"n_components={self.n_components} is more than the rank {rank} of the window's codes; "
                f"use n_components <= {rank}, n_components='auto', or a longer or livelier window"
            )
        recent = np.array(past[-self.window_ :])
        self._extrapolation.learn_window(recent, codes, self.embedding_, begins[-self.window_ :])
        self.score_ = None
        progress("window", 1, 1)
        return self

    def begin(self, X: ArrayLike) -> Self:
        """Continue with another series, of which the frames (time, n_features) have come so far, three or more.

        All that was learned stays, and the codes of the new series enter the window behind a seam. With `standardise`,
        the new series is standardised by itself. Returns the model.
        """
        check_is_fitted(self, "moments_")
        given = self.check_next(X, minimum=3)
        if self._half_stencils:
            raise ValueError("half_stencils=True is for one series; use half_stencils=False to begin another")
        self._scaling, past = self._standardised(given, [len(given)])
        codes = self._codes_by(self.coder_, past[-self.window_ :])
        self._check_activity(codes, past)
        for i, code in enumerate(self._engine.array(codes)):
            self.moments_.slide(code, begins=i == 0)
        self._embedding = None
        self._embed()
        self._keep_residual(self._engine.array(past[-1]))
        self._watch, self._aftermath = FrameWatch(past, self.window_), Aftermath()
        self._extrapolation.continue_series(past, self.codes_, self.embedding_)
        return self

    def _standardised(self, given: Array, parts: Sequence[int]) -> tuple[Scaling, Array]:
        """The scaling of the last series, and all frames, each series standardised by its own mean and scale."""
        if not self.standardise:
            return Scaling.none(given.shape[1]), given
        series = np.split(given, np.cumsum(parts)[:-1])
        scalings = [Scaling.of(one) for one in series]
        return scalings[-1], np.concatenate(
            [scaling.standardise(one) for scaling, one in zip(scalings, series, strict=True)]
        )

    def _check_activity(self, codes: Array, frames: Array) -> None:
        """Raise if all codes (n, n_atoms) are zero and their frames are not: all predictions would be zero."""
        largest = float(np.linalg.norm(frames[-len(codes) :], axis=1).max(initial=0.0))
        if largest > 0 and not codes.any():
            raise SilentCodesError(
                f"all {len(codes)} codes of the window are zero: alpha={self.coder_.alpha_:g} outweighs frames whose "
                f"largest norm is {largest:.3g}; use alpha='auto', standardise=True, or alpha < {largest:.3g}"
            )

    def _look_back(self, past: Array, begins: Mask, progress: Progress) -> tuple[Choice, SparseCoder | None]:
        """The parameters as given or, where they are 'auto' or the extrapolation learns, chosen walk-forward.

        Also the coder that the choice was made with, which has not seen the held-out frames, if it can be continued.
        """
        names = ("n_components", "lam", "centred", "rank_tol", "activity_bound", "merge_parallel")
        how: dict[str, Any] = {name: getattr(self, name) for name in names} | {
            "half_stencils": self._half_stencils,
            "device": engine_name(self.device, self.dtype),
            "begins": begins[-self.window_ :],
            "progress": progress,
        }
        # Codes of frames that the dictionary was learned from are smoother than those of the future.
        n_held, recent, rule = held_out(self.window_), past[-self.window_ :], self._extrapolation
        if rule.n_folds:
            coder = self.fit_coder(past[: len(past) - rule.n_folds * n_held], progress=progress)
            return choose_by_folds(rule, recent, self._codes_by(coder, recent), coder.dictionary_, **how), None
        if not isinstance(self.n_components, str) and not isinstance(self.lam, str) and not rule.adaptive:
            return Choice(self.n_components, float(self.lam), scores={}), None
        coder = self.fit_coder(past[: len(past) - n_held], progress=progress)
        choice = walk_forward(self._codes_by(coder, recent), coder.dictionary_, rule, **how)
        # With given values the dictionary is the same for all extrapolations: learned from the whole past at once.
        return choice, coder if "auto" in (self.n_components, self.lam) else None

    def fit_coder(
        self, samples: Array, learned: SparseCoder | None = None, *, progress: Progress = silent
    ) -> SparseCoder:
        """A coder fitted to the samples (n, n_features), as `dictionary_from` says, or the given one if it is fitted.

        `learned` is a coder that was fitted to all samples except those held out. A dictionary of the whole past is
        continued from it, instead of being learned twice; one of the window only must not know earlier frames.
        A subclass may return a coder from elsewhere, such as another model that has learned from the same samples.
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
        """Codes (time, n_atoms) of the frames, as an array even if scikit-learn is configured to return tables."""
        return np.asarray(coder.transform(frames))

    def check_next(self, X: ArrayLike, *, reset: bool = False, minimum: int = 1) -> Array:
        """The frames (time, n_features) of an array or table; its columns must be those of `fit` unless `reset`."""
        frames = check_series(X, minimum=minimum)
        validate_data(self, X, skip_check_array=True, reset=reset)
        return frames

    def _keep_residual(self, frame: Array) -> None:
        """Keep the part of the frame that its code does not explain, if the extrapolation carries it along."""
        self._residual = 0.0 * frame
        if self._extrapolation.keeps_residual:
            self._residual = frame - self.coder_.decode(self.moments_.latest(1))[0]
