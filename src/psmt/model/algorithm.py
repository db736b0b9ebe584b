"""`PSMT`: Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from psmt.changes import FrameWatch
from psmt.embedding.moments import WindowMoments
from psmt.errors import NotEnoughFramesError
from psmt.model.fitting import Learning
from psmt.model.intervals import CALIBRATED, FEWEST, ForecastErrors, Interval
from psmt.model.online_estimator import as_small_work
from psmt.model.tables import TableForm, as_table
from psmt.numerics.arrays import array_namespace, drawn_back
from psmt.recovery import Recovery, activity_limit, recover_next
from psmt.types import Array
from psmt.utils.constraints import check_horizon, choice, each
from psmt.utils.validation import as_array, check_frame, check_series, check_size


class PSMT(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learning):
    """Predict the next frames of a film or series by the Predictive Sparse Manifold Transform.

    A frame is one row of X. `fit` learns a dictionary from the past frames and turns the latest `window` frames into
    sparse codes. Then, frame by frame, `update` receives a frame (steps 1 to 4 of Algorithm 1) and `predict` returns
    the next frame (steps 5 to 8). Where the paper's method is unstable or undefined, the defaults depart from it. Each
    departure is a parameter. `PSMT.literal` makes no departures.

    Parameters
    ----------
    n_atoms : int or 'auto', default 512
        Size of the dictionary, M in the paper. 'auto' takes ``window / 7`` atoms, at least 16 and at most 512.
    window : int or 'auto', default 1536
        Number H of latest codes from which the embedding is computed. The paper requires more codes than atoms, H > M.
        H <= M is allowed: the covariance V of the codes is then singular, and the embedding is restricted to the
        directions that occur in the window. But a short sequence is straight in some directions by chance, so the
        leading directions then say little about the scene. Atoms that are inactive in the whole window are predicted to
        stay inactive. 'auto' takes all frames of `fit`, at most 4096.
    n_components : int, None or 'auto', default 'auto'
        Dimension of the embedding, f in the paper, at most the rank of V. None takes all directions. 'auto' takes the
        value with the smallest walk-forward error on validation frames at the end of the past. The dictionary learns
        from these frames only after the choice. With 'auto', `fit` takes about 1.5 times as long if the past is several
        windows long, and longer if it is hardly more than one window.
    alpha : float or 'auto', default 1.0
        Sparsity (L1) penalty of layer 1, > 0. 'auto' adapts to the units of X, as in `SparseCoder`.
    lam : float or 'auto', default 'auto'
        Sparsity (L1) penalty (>= 0) of step 7, which recovers a code from a point of the embedding. 'auto' is chosen
        together with `n_components`.
    extrapolation : {'linear', 'hold', 'gain', 'phase', 'dynamics'}, default 'linear'
        Rule of step 6, which predicts the next point of the embedding. 'linear' is the paper's rule. 'dynamics'
        predicts frames and points together, by a matrix that is learned from the window; see
        `psmt.extrapolation.Dynamics` and docs/explanation/dynamics.md.
    standardise : bool, default False
        If True, each feature is standardised by its mean and standard deviation in the past, and predictions are
        converted back. Use it for features of different units or far from zero. Film patches are already standardised.
    on_cut : {'hold', 'ignore'}, default 'hold'
        What to predict after a cut, that is, after a frame that began a new scene (`cut_`). With 'hold', the prediction
        repeats the last code for 25 frames, or until no code of the old scene is left in the window. The reasons are
        that a straight line across the cut has no meaning, and that the embedding does not know the new scene yet.
        Extrapolations do not learn from steps across a cut. With 'ignore' (the paper), cuts have no effect.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    embedding_tol : float, default 3e-7
        Largest error of the embedding, which is updated from frame to frame. The error is the sine of the angle between
        the subspace of the embedding and the exact subspace. With the default, predictions differ from exact
        predictions by at most 1e-5 of the patch's contrast. With 0, the exact embedding (the paper's closed form) is
        computed for every frame. It is also computed for every frame in two other cases: there are fewer codes than
        atoms, or there are at most 512 atoms and fewer than two codes per atom.
    activity_bound : float or None, default 2.0
        Bound on predictions, > 0. The sum of a predicted code is at most this multiple of the largest sum of a code in
        the window. The norm of the difference between the predicted and the last frame is at most this multiple of the
        largest norm of a frame in the window. Outliers do not count in either maximum. None sets no bounds.
    merge_parallel : bool, default True
        If True, atoms whose columns in the embedding matrix P are parallel are recovered together; see `psmt.recovery`.
    dictionary_from : {'past', 'window'}, default 'past'
        Frames from which `fit` learns the dictionary: all frames, or the last `window` frames.
    coder : SparseCoder or None
        A fitted coder is used as it is. An unfitted coder is cloned and fitted. In both cases, `n_atoms`, `alpha` and
        `random_state` have no effect.
    random_state : int, RandomState or None
        Seed of the dictionary.
    device : str, default 'cpu'
        Where to compute: 'cpu', or 'cuda' for a GPU (docs/how-to/gpu.md). A saved model can be loaded on any device.
    dtype : {'float64', 'float32'}, default 'float64'
        Precision of coding and recovery. 'float32' needs a GPU. Predictions then have relative errors of up to 0.01.

    Attributes
    ----------
    dictionary_ : (n_atoms, n_features) array
    codes_ : (window, n_atoms) array
        The latest codes, oldest first.
    embedding_ : (n_components, n_atoms) array
        The embedding matrix P of the present window.
    n_components_, lam_, window_ : int or None, float, int
        The given or chosen values.
    followed_ : FollowedEmbedding
        Object that updates the embedding. Its `error_` is the present error of the embedding.
    choice_ : Choice
        Walk-forward errors of the candidates for 'auto'; empty if nothing was chosen.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features of a frame, and their names if `fit` was given a table with column names. Then a table with
        other columns, or with columns in another order, is refused.
    surprise_ : float
        Surprise of the last frame: the squared error of a simple prediction of this frame, divided by the usual error.
        The simple prediction is a copy of the frame before, or the continuation of the line through the two frames
        before, whichever is closer. It is not the prediction of the model. The usual value is about 1.
    cut_ : bool
        Whether the last frame began a new scene: it was far more surprising than usual, and unlike the frame before.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt import PSMT
    >>> t = np.arange(340)
    >>> X = np.cos(t[:, None] / 15 + np.arange(8)) + 0.3 * np.sin(t[:, None] / 9 + np.arange(8) ** 2)
    >>> model = PSMT(n_atoms=24, window=200, n_components=8, alpha=0.05, lam=0.01, random_state=0).fit(X[:300])
    >>> errors = []
    >>> for x, x_next in zip(X[300:-1], X[301:]):
    ...     predicted = model.update(x).predict()
    ...     errors.append(np.mean((predicted - x_next) ** 2))
    >>> bool(np.mean(errors) < 0.1 * np.var(X))
    True
    """

    static_window: ClassVar[bool] = False
    """If True, the window keeps the codes of the training frames, and new frames do not enter it."""
    static_embedding: ClassVar[bool] = False
    """If True, the embedding stays that of the training window, while the codes of new frames enter the window."""
    uses_embedding: ClassVar[bool] = True
    """If False, the embedding is solved on demand instead of being tracked."""
    extrapolates: ClassVar[bool] = True
    """If False, predictions do not continue the motion of the last frames. `on_cut` then has no effect on them."""

    # Steps 1 to 5: receive

    @as_small_work
    def update(self, x: ArrayLike) -> Self:
        """Receive the next frame (n_features,): its code enters the window. Return the model.

        ValueError is raised if the features differ from those given to `fit`, or if a value is not finite.
        """
        check_is_fitted(self, "moments_")
        given = self._scaling.standardise(self._frame(x))
        check_size(given, name="x, standardised,")
        frame = self._engine.array(given)
        code = self.coder_.transform_next(frame, self.moments_.latest(1)[0])
        self._undo = self._keep()
        self._receive(given, frame, code)
        self._undo = None
        return self

    def _receive(self, given: Array, frame: Array, code: Array) -> None:
        """Update the state with a code and its frame: `given` is the frame in NumPy, and `frame` is on the device."""
        if self._intervals.n_ahead:
            self._intervals.observe(self._ahead(self._intervals.n_ahead), given)
        if self._table is not None:
            self._table = replace(self._table, received=self._table.received + 1)
        self._forecast = None
        self._watch.observe(given)
        if self._extrapolation.adaptive and (self.on_cut == "ignore" or self._watch.scene_length >= 3):
            latest = array_namespace(code).stack([*self.moments_.latest(2), code])
            points, pictures = self._points(latest), self.coder_.decode(latest)
            self._extrapolation.observe(self._engine.numpy(points), self._engine.numpy(pictures))
        if not self.static_window:
            (self.moments_.slide if len(self.moments_) >= self.window_ else self.moments_.update)(code)
            if not self.static_embedding:
                self._embedding = None
                if self.uses_embedding and self.followed_.is_following:
                    self._embed()
            self._extrapolation.receive(
                given,
                lambda: self._engine.numpy(code),
                None if self.static_embedding else lambda: (self.codes_, self.embedding_),
                begins=self._watch.cut and self.on_cut == "hold",
            )
        self._keep_residual(frame)

    def _points(self, codes: Array) -> Array:
        """Return the points (n, n_components) of codes (n, n_atoms) in the present embedding."""
        return codes @ self._embed().matrix.T

    # Steps 6 to 8: predict

    def predict(self, horizon: int | ArrayLike | None = None, *, interval: float | None = None) -> Any:
        """Return the next frame, the next `horizon` frames, or the frame that follows each of the given rows.

        Parameters
        ----------
        horizon : int, (time, n_features) array or table, optional
            None predicts the next frame (n_features,). A number predicts that many frames (horizon, n_features), each
            from the predictions before it. Given an array, as scikit-learn passes to `predict`, a copy of the model
            receives its rows one by one. It predicts row i + 1 after row i, so the result is (time, n_features).
        interval : float, optional
            Coverage of prediction intervals, such as 0.9. The result is then an `Interval` with the fields
            ``predicted``, ``lower`` and ``upper``. The coverage holds for each feature and each step separately. Bounds
            are the prediction plus quantiles of past prediction errors. The quantile levels adapt to each new frame,
            which keeps the coverage while the series changes; see `psmt.model.intervals`. The first call measures up to
            100 errors at the end of the past, which takes as long as 100 updates. Each later `update` adds an error.

        Returns
        -------
        array, pandas Series or data frame, or `Interval` of these
            A model that was fitted to a data frame returns data frames, and a single frame as a Series. Their index
            continues the index given to `fit` if that has a constant step; otherwise it counts steps ahead.
            ``set_output`` chooses another container.
        """
        if interval is None:
            return self._predicted(horizon, ())[0]
        _fraction("interval", interval)
        tail = round((1 - float(interval)) / 2, 12)  # so that it equals the same quantile of `predict_quantiles`
        return Interval(*self._predicted(horizon, (tail, round(1 - tail, 12))))

    def predict_quantiles(
        self, quantiles: Sequence[float] = (0.05, 0.5, 0.95), horizon: int | ArrayLike | None = None
    ) -> dict[float, Any]:
        """Return a mapping from each of `quantiles` (between 0 and 1) to that quantile of the next frames.

        Each value is the prediction plus a quantile of past prediction errors, in the shape that `predict` returns.
        """
        each(_fraction)("quantiles", quantiles)
        ordered = sorted(set(map(float, quantiles)))
        found = dict(zip(ordered, self._predicted(horizon, ordered)[1:], strict=True))
        return {one: found[one] for one in map(float, quantiles)}

    @as_small_work
    def _predicted(self, horizon: int | ArrayLike | None, quantiles: Sequence[float]) -> list[Any]:
        """Return the prediction and then its quantiles, each as the array or table that `predict` returns."""
        check_is_fitted(self, "moments_")
        form = self._table
        if horizon is not None and (horizon if hasattr(horizon, "ndim") else as_array(horizon, name="horizon")).ndim:
            frames, walker, form = self.check_next(horizon), deepcopy(self), TableForm.of(horizon, form)
            walked = [PSMT._with_quantiles(walker.update(frame), 1, quantiles)[:, 0] for frame in frames]
            found, single = np.swapaxes(walked, 0, 1), False
            index = form and form.following(horizon)
        else:
            single = horizon is None
            found = self._with_quantiles(1 if single else check_horizon(horizon), quantiles)
            index = form and form.after(found.shape[1])
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        library = choice("default", "pandas", "polars")("transform", own or get_config()["transform_output"])
        if library == "default":
            library = form.library if form is not None and own is None else ""
        if not library:
            return [one[0] if single else one for one in found]
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return [as_table(one, names, library, index, single=single) for one in found]

    def _with_quantiles(self, steps: int, quantiles: Sequence[float]) -> Array:
        """Return an array (1 + n_quantiles, steps, n_features): first the predicted frames, then their quantiles."""
        if quantiles and self._intervals.n_ahead < steps:
            self._intervals = self._calibrate(steps)
        predicted = self._ahead(steps)
        bounds = self._intervals.bounds(quantiles, steps) if quantiles else np.zeros((0, *predicted.shape))
        return self._scaling.restore(np.concatenate([predicted[None], predicted + bounds]))

    def _calibrate(self, n_ahead: int) -> ForecastErrors:
        """Return prediction errors for the latest frames, measured on a copy of the model without these frames."""
        n_known, window = len(self._watch.frames), len(self.moments_)
        # The copy begins with two thirds of the window where it can: with less, it predicts worse than the model.
        n = min(CALIBRATED + n_ahead - 1, n_known - 3, window // 2, max(window // 3, FEWEST + n_ahead - 1))
        if n - n_ahead + 1 < FEWEST:
            raise NotEnoughFramesError(
                f"intervals for {n_ahead} steps need a window of at least {2 * (FEWEST + n_ahead - 1)} frames, and "
                f"{FEWEST + n_ahead + 2} that are kept, but window is {window} and {n_known} are kept (at most 151); "
                f"use a longer window, more frames, or a shorter horizon (at most {max(n - FEWEST + 1, 0)} here)"
            )
        return PSMT._receive_again(copy(self), n, n_ahead)

    def _receive_again(self, n: int, n_ahead: int) -> ForecastErrors:
        """Remove the last `n` frames, receive them again as the window grows back, and return the errors."""
        frames, codes, begins = self._watch.frames, self.codes_, self.moments_.begins
        self.moments_ = WindowMoments.of(self._engine.array(codes[:-n]), self._engine, begins=begins[:-n])
        self.followed_, self._embedding, self._forecast = self._start_following(), None, None
        self._watch = FrameWatch(frames[:-n], self.window_)
        self._extrapolation = deepcopy(self._extrapolation)
        if self._extrapolation.n_folds:
            self._extrapolation.rewind(n, codes[:-n], self.embedding_)
        self._keep_residual(self._engine.array(frames[-n - 1]))
        self._intervals = ForecastErrors(n_ahead, self.n_features_in_)
        for frame, code in zip(frames[-n:], self._engine.array(codes[-n:]), strict=True):
            self._receive(frame, self._engine.array(frame), code)
        return self._intervals

    def _ahead(self, steps: int) -> Array:
        """Return the predicted next frames (steps, n_features) in standardised units."""
        if self._forecast is not None and len(self._forecast) >= steps:
            return self._forecast[:steps]
        predicted = None if self._holds else self._extrapolation.predict_frames(steps)
        if predicted is None:
            frames = self._engine.numpy(self.coder_.decode(self.predict_codes(steps)) + self._residual)
        else:  # the distance from the last frame has the same bound as in `_own_codes`
            last = self._engine.numpy(self.coder_.decode(self.moments_.latest(1))[0] + self._residual)
            moved = np.linalg.norm(predicted - last, axis=1, keepdims=True)
            frames = drawn_back(predicted, last, moved, activity_limit(self.activity_bound, self._watch.peak_norm))
        if self._intervals.n_ahead:
            self._forecast = frames
        return frames

    @as_small_work
    def predict_codes(self, horizon: int) -> Array:
        """Return the next codes (horizon, n_atoms), by steps 6 and 7 of the paper, as an array on the device."""
        return self.moments_.latest(1)[[0] * horizon] if self._holds else self._own_codes(horizon)

    @property
    def _holds(self) -> bool:
        """Return whether the prediction repeats the last code, because a new scene began a few frames ago."""
        return self.on_cut == "hold" and self._watch.is_new and self.extrapolates

    def _own_codes(self, horizon: int) -> Array:
        """Return the next codes (horizon, n_atoms) by Algorithm 1, even if a new scene has just begun."""
        previous, latest = self.moments_.latest(2)
        follow, reach = self._rule(horizon), activity_limit(self.activity_bound, self._watch.peak_norm)
        current, codes = latest, []
        for step in range(horizon):
            following = follow(step, previous, current)
            # Step 7 bounds the activity. But atoms can cancel each other, so codes of equal activity may decode to
            # frames of very different size. If the predicted frame is too far from the latest one, the code is moved
            # back towards the latest code. The straight line through two frames of the window, continued by one step,
            # moves by at most twice their largest norm.
            length = array_namespace(following).linalg.vector_norm(self.coder_.decode((following - latest)[None]))
            previous, current = current, drawn_back(following, latest, length, reach)
            codes.append(current)
        return array_namespace(current).stack(codes)

    def _rule(self, horizon: int) -> Callable[[int, Array, Array], Array]:
        """Return a function of (step, previous code, last code) that predicts the next code. Steps count from 0."""
        recover, points = self._recovery(), self._extrapolation.predict_points(horizon)
        if points is None:
            return lambda _, *last: recover_next(recover, self._extrapolation, *last)
        return lambda step, _, current: recover(self._engine.array(points[step]), current)

    def _recovery(self) -> Recovery:
        embedding = self._embed().matrix
        if self._extrapolation.embedding is not None:
            embedding = self._engine.array(self._extrapolation.embedding)
        return Recovery(
            embedding,
            self.lam_,
            activity=activity_limit(self.activity_bound, self.moments_.peak_activity),
            merge_parallel=self.merge_parallel,
            engine=self._engine,
        )

    # The two layers as a transform

    def transform(self, X: ArrayLike) -> Array:
        """Return the points (time, n_components) of successive frames (time, n_features) in the present embedding."""
        check_is_fitted(self, "moments_")
        frames = self._scaling.standardise(self.check_next(X))
        return self._codes_by(self.coder_, frames) @ self.embedding_.T

    def inverse_transform(self, points: ArrayLike) -> Array:
        """Return frames (time, n_features) recovered from points (time, n_components) by steps 7 and 8 of the paper."""
        check_is_fitted(self, "moments_")
        given = check_series(points, name="points")
        if given.shape[1] != len(self.embedding_):
            raise ValueError(f"points have {given.shape[1]} columns, but there are {len(self.embedding_)} components")
        recover = self._recovery()
        codes = [recover(point) for point in self._engine.array(given)]
        frames = self.coder_.decode(array_namespace(codes[0]).stack(codes))
        return self._scaling.restore(self._engine.numpy(frames))

    @property
    def _n_features_out(self) -> int:
        return len(self.embedding_)

    def _frame(self, x: ArrayLike) -> Array:
        """Validate a frame and return it (n_features,). The names in a pandas Series must be those given to `fit`."""
        if hasattr(self, "feature_names_in_") and hasattr(x, "index") and hasattr(x, "to_frame"):
            validate_data(self, x.to_frame().T, skip_check_array=True, reset=False)
        return check_frame(x, self.n_features_in_, largest=self._largest)


def _fraction(name: str, value: object) -> None:
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name}={value!r} is out of range; use a number between 0 and 1, such as 0.9")
