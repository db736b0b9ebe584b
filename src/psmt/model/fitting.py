"""How `PSMT` learns from the past: dictionary, window of codes, and what is 'auto'."""

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
from psmt.extrapolation import Dynamics, make_extrapolation
from psmt.model.parameters import as_small_work
from psmt.model.state import State
from psmt.selection import Choice, choose_dynamics, held_out, walk_forward
from psmt.series import Scaling, check_lengths, first_frames
from psmt.surprise import Aftermath, FrameWatch
from psmt.types import Array, Mask, Progress, silent
from psmt.utils.validation import check_series

_LONGEST_WINDOW = 4096
"""What window='auto' takes at the most: the window is kept, and a matrix is learned from it again and again."""


class Learning(State):
    """`fit`, and what it takes."""

    @as_small_work
    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        lengths: Sequence[int] | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Learn from the past frames (time, n_features): dictionary, window of codes, 'auto' parameters.

        X may be several series (subjects, sessions) one after the other, with their `lengths`, as in hmmlearn: see
        `psmt.series.join_series`. Nothing is learned from the step from one to the next. Each is standardised by
        itself, if so asked; `update` goes on with the last one.

        `progress` is called with the name of a stage ('dictionary', 'choice', 'window'), how much of it is done, and
        how much there is; a stage may come twice, as a dictionary does that goes on learning after the choice.

        Parameters
        ----------
        X : (time, n_features) array
            In the order of time, no gaps; at least `window` frames.
        y : object
            Ignored.
        lengths : sequence of int, optional
            Frames of each series in X; left out, X is one.
        progress : callable, optional
            Called with the stage, how much of it is done, and how much there is.

        Returns
        -------
        self

        Raises
        ------
        NotEnoughFramesError
            Where X has fewer frames than `window`.
        SilentCodesError
            Where all codes are zero: `alpha` is too large.
        ValueError
            Where a parameter is out of range, or X has values that are no finite numbers.
        """
        self._check_parameters()
        given = self._frames(X, reset=True)
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
        if isinstance(self._extrapolation, Dynamics):
            recent = past[-self.window_ :].copy()
            self._extrapolation.learn(recent, codes, self.embedding_, begins[-self.window_ :])
        self.score_ = None
        progress("window", 1, 1)
        return self

    def begin(self, X: ArrayLike) -> Self:
        """Go on with another series, of which the frames (time, n_features) have come so far, three or more.

        What was learned stays, and the window goes on with the new codes behind a seam. The new series is standardised
        by itself, if so asked.

        Parameters
        ----------
        X : (time, n_features) array
            In the order of time.

        Returns
        -------
        self

        Raises
        ------
        NotEnoughFramesError
            Where X has fewer than three frames.
        """
        check_is_fitted(self, "moments_")
        given = self._frames(X, minimum=3)
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
        if isinstance(self._extrapolation, Dynamics):
            self._extrapolation.go_on(past, self.codes_, self.embedding_)
        return self

    def _standardised(self, given: Array, parts: Sequence[int]) -> tuple[Scaling, Array]:
        """The frames as the model takes them, each series by its own mean and scale; and the scaling of the last."""
        if not self.standardise:
            return Scaling.none(given.shape[1]), given
        series = np.split(given, np.cumsum(parts)[:-1])
        scalings = [Scaling.of(one) for one in series]
        return scalings[-1], np.concatenate(
            [scaling.standardise(one) for scaling, one in zip(scalings, series, strict=True)]
        )

    def _check_activity(self, codes: Array, frames: Array) -> None:
        """Raise if all codes (n, n_atoms) are zero and their frames are not: zeros would be all that is predicted."""
        largest = float(np.linalg.norm(frames[-len(codes) :], axis=1).max(initial=0.0))
        if largest > 0 and not codes.any():
            raise SilentCodesError(
                f"all {len(codes)} codes of the window are zero: alpha={self.coder_.alpha_:g} outweighs frames whose "
                f"largest norm is {largest:.3g}; use alpha='auto', standardise=True, or alpha < {largest:.3g}"
            )

    def _look_back(self, past: Array, begins: Mask, progress: Progress) -> tuple[Choice, SparseCoder | None]:
        """What is given or, where something is to be chosen or learned from the past, the walk-forward choice.

        With the coder that it was chosen by, if it was, which does not know the frames that were held out.
        """
        how: dict[str, Any] = {
            "n_components": self.n_components,
            "lam": self.lam,
            "centred": self.centred,
            "half_stencils": self._half_stencils,
            "rank_tol": self.rank_tol,
            "activity_bound": self.activity_bound,
            "merge_parallel": self.merge_parallel,
            "device": engine_name(self.device, self.dtype),
            "begins": begins[-self.window_ :],
            "progress": progress,
        }
        if isinstance(self._extrapolation, Dynamics):
            recent = past[-self.window_ :]
            coder = self.fit_coder(past[: len(past) - 2 * held_out(self.window_)], progress=progress)
            codes = self._codes_by(coder, recent)
            return choose_dynamics(self._extrapolation, recent, codes, coder.dictionary_, **how), None
        if (
            not isinstance(self.n_components, str)
            and not isinstance(self.lam, str)
            and not self._extrapolation.adaptive
        ):
            return Choice(self.n_components, float(self.lam), scores={}), None
        # Codes of frames that the dictionary was learned from are smoother than those of the future.
        coder = self.fit_coder(past[: len(past) - held_out(self.window_)], progress=progress)
        codes = self._codes_by(coder, past[-self.window_ :])
        choice = walk_forward(codes, coder.dictionary_, self._extrapolation, **how)
        # With given values the dictionary is the same whatever the extrapolation: that of all the past at once.
        return choice, coder if "auto" in (self.n_components, self.lam) else None

    def fit_coder(
        self, samples: Array, learned: SparseCoder | None = None, *, progress: Progress = silent
    ) -> SparseCoder:
        """A coder that is fitted to the samples (n, n_features), as `dictionary_from` says, or the one given ready.

        `learned` is one that was fitted to all of them but those that are held out: a dictionary of all the past goes
        on from there, instead of being learned twice. That of a window has nothing from before the window in it.
        A subclass may take one from elsewhere, such as another model that has learned from the same samples.
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
        """Codes (time, n_atoms) of the frames, as an array even where scikit-learn was told to give tables."""
        return np.asarray(coder.transform(frames))

    def _frames(self, X: ArrayLike, *, reset: bool = False, minimum: int = 1) -> Array:
        """The frames (time, n_features) of an array or a table, whose columns are those of `fit` unless `reset`."""
        frames = check_series(X, minimum=minimum)
        validate_data(self, X, skip_check_array=True, reset=reset)
        return frames

    def _keep_residual(self, frame: Array) -> None:
        """Keep what the latest code does not hold of its frame, if it is to be carried along."""
        self._residual = 0.0 * frame
        if self._extrapolation.keeps_residual:
            self._residual = frame - self.coder_.decode(self.moments_.latest(1))[0]
