"""`PSMT`: Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from psmt.model.fitting import Learning
from psmt.model.html_repr import N_SHOWN, atoms_picture, card
from psmt.model.online_estimator import as_small_work
from psmt.numerics.arrays import array_namespace, drawn_back
from psmt.persistence.model_file import plain
from psmt.recovery import Recovery, activity_limit, recover_next
from psmt.types import Array
from psmt.utils.constraints import check_count
from psmt.utils.validation import as_array, check_frame, check_series


class PSMT(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learning):
    """Predictive Sparse Manifold Transform.

    `fit` learns the dictionary from the past and codes its latest `window` frames. Then, frame by frame, `update`
    receives a frame (steps 1 to 4 of Algorithm 1) and `predict` returns the next one (steps 5 to 8). The defaults
    depart from the paper where it leaves the result to chance; each departure is a parameter, and `PSMT.literal` is the
    paper to the letter.

    Parameters
    ----------
    n_atoms : int or 'auto', default 512
        M, the size of the dictionary. 'auto': one atom for every 7 codes of the window, from 16 to 512.
    window : int or 'auto', default 1536
        H, the number of latest codes that the embedding is computed from. The paper needs H > M. H <= M is allowed: V
        then has a rank below H, and the embedding is restricted to the directions in the window. With so few codes
        *any* sequence is straight in some directions, so the leading ones reflect chance rather than the scene, and
        atoms that the window does not use are predicted to stay inactive. 'auto': all frames of `fit`, at most 4096.
    n_components : int, None or 'auto', default 'auto'
        f, the dimension of the embedding, at most the rank of V; None takes all directions. 'auto' chooses by
        walk-forward error inside the past window, with a dictionary that did not see the scored frames; the dictionary
        then continues to learn from them. `fit` takes about half as long again if the past is several windows long,
        and longer if it is hardly more than one.
    alpha : float or 'auto', default 1.0
        Sparsity (L1) penalty of layer 1, > 0; 'auto' as in `SparseCoder`, independent of units.
    lam : float or 'auto', default 'auto'
        Sparsity (L1) penalty of step 7, >= 0; 'auto' is chosen as `n_components` is.
    extrapolation : {'linear', 'hold', 'gain', 'phase', 'dynamics'}, default 'linear'
        Step 6. 'linear' is the paper's. 'dynamics' predicts frames and points together by a matrix that is learned
        from the window, see `psmt.extrapolation.Dynamics` and docs/explanation/dynamics.md.
    standardise : bool, default False
        Standardise each feature by its mean and standard deviation in the past given to `fit`, and convert predictions
        back: for features of different units, or far from zero. Patches of films are standardised already.
    on_cut : {'hold', 'ignore'}, default 'hold'
        What happens after a frame that began something new (`cut_`). With 'hold', the last code is predicted until the
        model's own predictions would have been better, for at most 25 frames: the straight line through the last two
        codes would cross the cut, and the embedding does not know the new scene yet. Extrapolations that learn skip
        the steps across a cut. 'ignore' does nothing, as in the paper. Without cuts both are the same.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    activity_bound : float or None, default 2.0
        Bound on predictions, > 0. The sum of a predicted code is at most this multiple of the largest sum in the
        window, and the predicted frame differs from the last by at most this multiple of the largest norm, both
        without outliers. None: no bounds.
    merge_parallel : bool, default True
        Recover atoms with parallel columns in P together, see `psmt.recovery`.
    dictionary_from : {'past', 'window'}, default 'past'
        Frames that `fit` learns the dictionary from: all of them, or the last `window`.
    solver : {'closed', 'sgd'}, default 'closed'
        Step 5: the closed form, or mini-batch steps that continue from the previous window (on the CPU). They converge
        to the closed form within `tol`, unless `tol` or `sparsity` say otherwise; 'auto' is chosen by the closed form.
    max_epochs, batch_size, tol, sparsity :
        Of 'sgd', for each window, as in `TemporalEmbedding`.
    coder : SparseCoder or None
        A fitted coder is used as it is; an unfitted one is cloned and fitted, and replaces `n_atoms`, `alpha` and
        `random_state`.
    random_state : int, RandomState or None
        Seed of the dictionary and of 'sgd'.
    device : str, default 'cpu'
        Where to compute: 'cpu', or 'cuda' for a GPU (docs/how-to/gpu.md). Saved files do not depend on the device.
    dtype : {'float64', 'float32'}, default 'float64'
        Precision of coding and recovery; 'float32' on a GPU only, where predictions then differ by some thousandths.
    ends : bool
        The former name of `half_stencils`, for one more release.

    Attributes
    ----------
    dictionary_ : (n_atoms, n_features) array
    codes_ : (window, n_atoms) array
        The latest codes, oldest first.
    embedding_ : (n_components, n_atoms) array
        P of the present window.
    n_components_, lam_, window_ : int or None, float, int
        As given or chosen.
    followed_ : FollowedEmbedding or StochasticEmbedding
        Updates the embedding; its `error_` is the remaining error.
    choice_ : Choice
        The walk-forward table behind 'auto'; empty if nothing was chosen.
    n_features_in_, feature_names_in_ : int, array of str
        Features of a frame; their names if `fit` was given a table that has them. Tables with other columns, or in
        another order, are then refused.
    score_ : float or None
        The last result of `score`.
    surprise_ : float
        How unexpected the last frame was: the squared error of copying the frame before it or of the straight line
        through the two before it, whichever is smaller, relative to its usual size. About 1 while things continue as
        before. The model's own prediction is not used.
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
    """Keep the codes of the training window: new frames are not received."""
    static_embedding: ClassVar[bool] = False
    """Keep the embedding of the training window, while codes are updated."""
    uses_embedding: ClassVar[bool] = True
    """If False, the embedding is solved on demand instead of being tracked."""

    # Steps 1 to 5: receive

    @as_small_work
    def update(self, x: ArrayLike) -> Self:
        """Receive the next frame (n_features,), and return the model.

        A frame of other features than those of `fit`, or with values that are not finite, raises ValueError.
        """
        check_is_fitted(self, "moments_")
        given = self._scaling.standardise(self._frame(x))
        frame = self._engine.array(given)
        code = self.coder_.transform_next(frame, self.moments_.latest(1)[0])
        self._detect_cut(given, code)
        if self._extrapolation.adaptive and (self.on_cut == "ignore" or self._watch.scene_length >= 3):
            latest = self._stacked([*self.moments_.latest(2), code])
            points, pictures = latest @ self._embed().matrix.T, self.coder_.decode(latest)
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
        return self

    def _detect_cut(self, frame: Array, code: Array) -> None:
        """Detect whether a frame (n_features,) with its code (n_atoms,) is a cut, or ends the time after one."""
        if not self._aftermath.is_over and self._watch.scene_length >= 2:
            # This takes as long as a prediction, but `predict` is free while the code is held.
            codes = self._stacked([self._own_codes(1)[0], self.moments_.latest(1)[0]])
            errors = self._engine.numpy(((self.coder_.decode(codes - code)) ** 2).sum(1))
            self._aftermath.observe(*errors.tolist())
        self._watch.observe(frame)
        if self._watch.scene_length >= self.window_:
            self._aftermath.end()
        elif self.cut_ and self.on_cut == "hold" and self.uses_embedding and not self.static_window:
            self._aftermath.begin()

    # Steps 6 to 8: predict

    @as_small_work
    def predict(self, horizon: int | ArrayLike | None = None) -> Array:
        """The next frame (n_features,), or with a `horizon` the next frames (horizon, n_features).

        Frames beyond the first are predicted from the predictions before them; the embedding stays.

        Given the next frames (time, n_features) instead of a number, as scikit-learn calls predict, the frame after
        each of them is predicted walk-forward: a copy of the model receives one frame, predicts the next, and so on.
        """
        check_is_fitted(self, "moments_")
        if horizon is not None and (horizon if hasattr(horizon, "ndim") else as_array(horizon, name="horizon")).ndim:
            return np.array([predicted for _, predicted in self._walk(self.check_next(horizon))])
        steps = 1 if horizon is None else check_count("horizon", horizon)
        predicted = self._extrapolation.predict_frames(steps) if self._aftermath.is_over else None
        if predicted is None:
            frames = self._engine.numpy(self.coder_.decode(self.predict_codes(steps)) + self._residual)
        else:  # bounded as decoded codes are
            last = self._engine.numpy(self.coder_.decode(self.moments_.latest(1))[0] + self._residual)
            moved = np.linalg.norm(predicted - last, axis=1, keepdims=True)
            frames = drawn_back(predicted, last, moved, activity_limit(self.activity_bound, self._watch.peak_norm))
        frames = self._scaling.restore(frames)
        return frames[0] if horizon is None else frames

    @as_small_work
    def predict_codes(self, horizon: int) -> Array:
        """The next codes (horizon, n_atoms), as an array of the engine: steps 6 and 7."""
        return self._own_codes(horizon) if self._aftermath.is_over else self.moments_.latest(1)[[0] * horizon]

    def _own_codes(self, horizon: int) -> Array:
        """The next codes (horizon, n_atoms) by Algorithm 1, whether there was a cut or not."""
        previous, latest = self.moments_.latest(2)
        recover, reach = self._recovery(), activity_limit(self.activity_bound, self._watch.peak_norm)
        current, codes = latest, []
        points = self._extrapolation.predict_points(horizon)
        for step in range(horizon):
            if points is None:
                following = recover_next(recover, self._extrapolation, previous, current)
            else:
                following = recover(self._engine.array(points[step]), current)
            # Step 7 bounds the activity. If atoms cancel each other, a code of large activity decodes to a small frame,
            # and another of the same activity may decode to a huge one: then it is moved back to the latest code. No
            # straight line through two frames of the window, continued by one step, moves further than twice their
            # largest norm.
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
        """Points (time, n_components) of the frames (time, n_features), in order of time, in the present embedding."""
        check_is_fitted(self, "moments_")
        frames = self._scaling.standardise(self.check_next(X))
        return self._codes_by(self.coder_, frames) @ self.embedding_.T

    def inverse_transform(self, points: ArrayLike) -> Array:
        """Frames (time, n_features) of points (time, n_components), as `transform` returns them: steps 7 and 8."""
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

    # Checks and HTML repr

    def _frame(self, x: ArrayLike) -> Array:
        """A frame (n_features,); if it is a row of a table, its names must be those of `fit`."""
        if hasattr(self, "feature_names_in_") and hasattr(x, "index") and hasattr(x, "to_frame"):
            validate_data(self, x.to_frame().T, skip_check_array=True, reset=False)
        return check_frame(x, self.n_features_in_)

    def _card(self) -> str:
        codes = self.codes_
        used = np.argsort(-codes.sum(axis=0), kind="stable")
        chosen = [name for name, given in plain(self.get_params(deep=False)).items() if given == "auto"]
        n_atoms, n_features = self.dictionary_.shape
        facts = {
            "atoms": f"{n_atoms}, of {n_features} features each",
            "sparsity": f"{np.count_nonzero(codes) / len(codes):.1f} of {n_atoms} atoms active in a code, on average",
            "window": f"{self.window_} codes",
            "embedding": f"{len(self.embedding_)} components",
            "extrapolation": self.extrapolation,
            "penalties": f"alpha = {self.coder_.alpha_:.3g}, lam = {self.lam_:.3g}",
            "chosen by fit": ", ".join(chosen) or "nothing",
            **self._record(),
        }
        caption = f"the {min(n_atoms, N_SHOWN)} atoms that are most active in the window"
        # Patches of films are standardised already: with `standardise`, frames are those of a series.
        picture = atoms_picture(self.dictionary_[used], series=self.standardise)
        return card(type(self).__name__, facts, picture, caption)
