"""`PSMT`: Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from psmt.model.forecasting import Forecasting
from psmt.model.online_estimator import as_small_work
from psmt.numerics.arrays import array_namespace, drawn_back
from psmt.recovery import Recovery, activity_limit, recover_next
from psmt.types import Array
from psmt.utils.validation import check_frame, check_series, check_size


class PSMT(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Forecasting):
    """Predict the next frames of a film or series by the Predictive Sparse Manifold Transform.

    `fit` learns the dictionary from the past and codes its latest `window` frames. Then, frame by frame, `update`
    receives a frame (steps 1 to 4 of Algorithm 1) and `predict` returns the next one (steps 5 to 8). The defaults
    depart from the paper where its method is unstable or undefined. Each departure is a parameter, and `PSMT.literal`
    has none of them.

    Parameters
    ----------
    n_atoms : int or 'auto', default 512
        Size of the dictionary, M in the paper. 'auto' takes one atom for every 7 codes of the window, from 16 to 512.
    window : int or 'auto', default 1536
        Number H of latest codes from which the embedding is computed. The paper needs more codes than atoms, H > M. If
        H <= M, which is allowed, the covariance V of the codes has a rank below H, and the embedding is restricted to
        the directions in the window. With so few codes, *any* sequence is straight in some directions, so the leading
        directions reflect chance rather than the scene. Atoms that the window does not use are predicted to stay
        inactive. 'auto' takes all frames of `fit`, at most 4096.
    n_components : int, None or 'auto', default 'auto'
        Dimension of the embedding, f in the paper, at most the rank of V. None takes all directions. 'auto' chooses by
        walk-forward error inside the past window, with a dictionary that was not learned from the scored frames. Then
        the dictionary learns from these frames too. `fit` takes about 1.5 times as long with 'auto' if the past is
        several windows long, and longer if it is hardly more than one window.
    alpha : float or 'auto', default 1.0
        Sparsity (L1) penalty of layer 1, > 0. 'auto' is chosen as in `SparseCoder`, independent of units.
    lam : float or 'auto', default 'auto'
        Sparsity (L1) penalty of step 7, >= 0. 'auto' is chosen together with `n_components`.
    extrapolation : {'linear', 'hold', 'gain', 'phase', 'dynamics'}, default 'linear'
        Rule of step 6. 'linear' is the paper's. 'dynamics' predicts frames and points together by a matrix that is
        learned from the window; see `psmt.extrapolation.Dynamics` and docs/explanation/dynamics.md.
    standardise : bool, default False
        If True, each feature is standardised by its mean and standard deviation in the past given to `fit`, and
        predictions are converted back. Use it for features of different units or far from zero. Film patches are
        already standardised.
    on_cut : {'hold', 'ignore'}, default 'hold'
        What happens after a frame that began something new (`cut_`). With 'hold', the last code is predicted for 25
        frames, or until the window has lost the old scene: the straight line through the last two codes would cross
        the cut, and the embedding does not know the new scene yet. Extrapolations that learn skip the steps across a
        cut. 'ignore' does nothing, as in the paper. Without cuts both are the same.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    embedding_tol : float, default 3e-7
        Largest error of the embedding while it is tracked from frame to frame: the sine of the angle between its
        subspace and that of the closed form. `followed_.error_` reports the error. With the default, predictions are
        within 1e-5 of the patch's contrast of those by the closed form from the same codes. With 0, the closed form is
        solved for every frame. So it is if the window has fewer codes than atoms.
    activity_bound : float or None, default 2.0
        Bound on predictions, > 0. The sum of a predicted code is at most this multiple of the largest sum of a code in
        the window. The predicted frame differs from the last one by at most this multiple of the largest norm of a
        frame in the window. Outliers are excluded from both. None sets no bounds.
    merge_parallel : bool, default True
        If True, atoms with parallel columns in P are recovered together; see `psmt.recovery`.
    dictionary_from : {'past', 'window'}, default 'past'
        Frames from which `fit` learns the dictionary: all of them, or the last `window`.
    coder : SparseCoder or None
        A fitted coder is used as it is. An unfitted coder is cloned and fitted. A coder replaces `n_atoms`, `alpha` and
        `random_state`.
    random_state : int, RandomState or None
        Seed of the dictionary.
    device : str, default 'cpu'
        Where to compute: 'cpu', or 'cuda' for a GPU (docs/how-to/gpu.md). Saved files do not depend on the device.
    dtype : {'float64', 'float32'}, default 'float64'
        Precision of coding and recovery. 'float32' needs a GPU; predictions then differ by some thousandths.

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
        Updates the embedding; its `error_` is the remaining error.
    choice_ : Choice
        Walk-forward errors of the candidates for 'auto'; empty if nothing was chosen.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features of a frame, and their names if `fit` was given a table with column names. A table with other
        columns, or in another order, is then refused.
    surprise_ : float
        How unexpected the last frame was: the squared error of a simple prediction of it, relative to the usual
        error. The prediction copies the frame before or continues the line through the two before, whichever is
        closer. About 1 if nothing unusual happens. The model's own prediction is not used.
    cut_ : bool
        Whether the last frame began something new: it was far more surprising than usual, and unlike the one before.

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
    """If True, the codes of the training window are kept, and new frames are not received."""
    static_embedding: ClassVar[bool] = False
    """If True, the embedding of the training window is kept, while codes are updated."""
    uses_embedding: ClassVar[bool] = True
    """If False, the embedding is solved on demand instead of being tracked."""
    extrapolates: ClassVar[bool] = True
    """If False, predictions do not continue a step, so the last code is not held after a cut either."""

    # Steps 1 to 5: receive

    @as_small_work
    def update(self, x: ArrayLike) -> Self:
        """Receive the next frame (n_features,), and return the model.

        ValueError is raised if the frame has other features than those of `fit`, or values that are not finite.
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
        """Receive a frame (n_features,), as NumPy array and as engine array, together with its code (n_atoms,)."""
        if self._intervals.n_ahead:
            self._intervals.observe(self._ahead(self._intervals.n_ahead), given)
        if self._table is not None:
            self._table = replace(self._table, received=self._table.received + 1)
        self._forecast = None
        self._watch.observe(given)
        if self._extrapolation.adaptive and (self.on_cut == "ignore" or self._watch.scene_length >= 3):
            latest = self._stacked([*self.moments_.latest(2), code])
            points, pictures = self._points(latest), self.coder_.decode(latest)
            self._extrapolation.observe(self._engine.numpy(points), self._engine.numpy(pictures))
        if not self.static_window:
            self.moments_.slide(code)
            if not self.static_embedding:
                self._embedding = None
                if self.uses_embedding and self.followed_.is_following:
                    self._embed()
            self._extrapolation.receive(
                given,
                lambda: self._engine.numpy(code),
                None if self.static_embedding else lambda: (self.codes_, self.embedding_),
                begins=self.cut_ and self.on_cut == "hold",
            )
        self._keep_residual(frame)

    def _points(self, codes: Array) -> Array:
        """Return the points (n, n_components) of codes (n, n_atoms) in the present embedding."""
        return codes @ self._embed().matrix.T

    # Steps 6 to 8: predict

    def _ahead(self, steps: int) -> Array:
        """Return the next frames (steps, n_features) in standardised units."""
        if self._forecast is not None and len(self._forecast) >= steps:
            return self._forecast[:steps]
        predicted = None if self._holds else self._extrapolation.predict_frames(steps)
        if predicted is None:
            frames = self._engine.numpy(self.coder_.decode(self.predict_codes(steps)) + self._residual)
        else:  # bounded as decoded codes are
            last = self._engine.numpy(self.coder_.decode(self.moments_.latest(1))[0] + self._residual)
            moved = np.linalg.norm(predicted - last, axis=1, keepdims=True)
            frames = drawn_back(predicted, last, moved, activity_limit(self.activity_bound, self._watch.peak_norm))
        if self._intervals.n_ahead:
            self._forecast = frames
        return frames

    @as_small_work
    def predict_codes(self, horizon: int) -> Array:
        """Return the next codes (horizon, n_atoms), by steps 6 and 7, as an engine array."""
        return self.moments_.latest(1)[[0] * horizon] if self._holds else self._own_codes(horizon)

    @property
    def _holds(self) -> bool:
        """Return whether the last code is repeated as prediction, because the scene is new."""
        return self.on_cut == "hold" and self._watch.is_new and self.extrapolates

    def _own_codes(self, horizon: int) -> Array:
        """Return the next codes (horizon, n_atoms) by Algorithm 1, also after a cut."""
        previous, latest = self.moments_.latest(2)
        recover, reach = self._recovery(), activity_limit(self.activity_bound, self._watch.peak_norm)
        current, codes = latest, []
        points = self._extrapolation.predict_points(horizon)
        for step in range(horizon):
            if points is None:
                following = recover_next(recover, self._extrapolation, previous, current)
            else:
                following = recover(self._engine.array(points[step]), current)
            # Step 7 bounds the activity. But atoms can cancel each other, so codes of equal activity may decode to
            # frames of very different size. If the predicted frame is too far from the latest one, the code is moved
            # back towards the latest code. The straight line through two frames of the window, continued by one step,
            # moves by at most twice their largest norm.
            length = array_namespace(following).linalg.vector_norm(self.coder_.decode((following - latest)[None]))
            previous, current = current, drawn_back(following, latest, length, reach)
            codes.append(current)
        return self._stacked(codes)

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

    @staticmethod
    def _stacked(arrays: Sequence[Array]) -> Array:
        return array_namespace(arrays[0]).stack(arrays)

    # The two layers as a transform

    def transform(self, X: ArrayLike) -> Array:
        """Return the points (time, n_components) of successive frames (time, n_features) in the present embedding."""
        check_is_fitted(self, "moments_")
        frames = self._scaling.standardise(self.check_next(X))
        return self._codes_by(self.coder_, frames) @ self.embedding_.T

    def inverse_transform(self, points: ArrayLike) -> Array:
        """Return the frames (time, n_features) of points (time, n_components) from `transform` (steps 7 and 8)."""
        check_is_fitted(self, "moments_")
        given = check_series(points, name="points")
        if given.shape[1] != len(self.embedding_):
            raise ValueError(f"points have {given.shape[1]} columns, but there are {len(self.embedding_)} components")
        recover = self._recovery()
        codes = self._stacked([recover(point) for point in self._engine.array(given)])
        return self._scaling.restore(self._engine.numpy(self.coder_.decode(codes)))

    @property
    def _n_features_out(self) -> int:
        return len(self.embedding_)

    def _frame(self, x: ArrayLike) -> Array:
        """Return a checked frame (n_features,). If it is a row of a table, its names must be those given to `fit`."""
        if hasattr(self, "feature_names_in_") and hasattr(x, "index") and hasattr(x, "to_frame"):
            validate_data(self, x.to_frame().T, skip_check_array=True, reset=False)
        return check_frame(x, self.n_features_in_, largest=self._largest)
