"""Algorithm 1 of the paper, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from psmt.extrapolation import Dynamics
from psmt.model.fitting import Learning
from psmt.model.html_repr import N_SHOWN, atoms_picture, card
from psmt.model.parameters import as_small_work
from psmt.numerics.linalg import drawn_back
from psmt.numerics.namespace import array_namespace
from psmt.persistence.model_file import plain
from psmt.recovery import Recovery, activity_limit, recover_next
from psmt.types import Array
from psmt.utils.validation import as_array, check_count, check_frame, check_series


class PSMT(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learning):
    """Predictive Sparse Manifold Transform.

    `fit` learns the dictionary from the past and codes its latest `window` frames. Then, frame by frame, `update`
    receives (steps 1 to 4 of Algorithm 1) and `predict` says what comes next (steps 5 to 8). Where the paper leaves a
    window's answer to chance this departs from it, each time by a parameter; `PSMT.literal` is the paper to the letter.

    Parameters
    ----------
    n_atoms : int or 'auto', default 512
        M, the size of the dictionary. 'auto': one atom for every 7 codes of the window, from 16 to 512.
    window : int or 'auto', default 1536
        H, how many of the latest codes the embedding is made from. The paper needs H > M. Here H <= M is allowed: V
        then has a rank below H, and the embedding lives in the directions that the window has shown. What is lost: with
        so few codes there are directions in which *any* sequence is straight, so the leading ones tell of chance
        rather than of the scene, and what the window has not shown is predicted to stay away. 'auto': all frames that
        `fit` is given, 4096 at the most.
    n_components : int, None or 'auto', default 'auto'
        f, the dimension of the embedding, at most the rank of V; None takes all directions. 'auto' chooses by
        walk-forward error inside the past window, with a dictionary that did not see the frames that it is scored on;
        the dictionary then goes on with these. `fit` takes about half as long again where the past is some windows
        long, and longer where it is hardly more than one.
    alpha : float or 'auto', default 1.0
        Penalty on activity in layer 1, > 0; 'auto' as in `SparseCoder`: free of units.
    lam : float or 'auto', default 'auto'
        Penalty on activity in step 7, >= 0; 'auto' as above.
    extrapolation : {'linear', 'hold', 'gain', 'phase', 'dynamics'}, default 'linear'
        Step 6. 'linear' is the paper's. 'dynamics' continues frames and points together by a matrix that is learned
        from the window, see `psmt.extrapolation.Dynamics` and docs/explanation/dynamics.md.
    standardise : bool, default False
        Each feature by its mean and standard deviation in the past that `fit` is given, and turned back in what is
        predicted: for features of different units, or far from zero. Patches of films are standardised already.
    on_cut : {'hold', 'ignore'}, default 'hold'
        What follows a frame that began something new (`cut_`). 'hold': the straight line through the last two codes
        would cross the cut, and the embedding knows little of the new scene; so the last code is held until predictions
        would have done better than that, for 25 frames at the most. Strategies that learn are not shown
        the steps across a cut. 'ignore' is the paper's: nothing. Without cuts both are the same.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    activity_bound : float or None, default 2.0
        The sum of a predicted code is at most this multiple of the largest one in the window, and its picture moves by
        at most this multiple of the largest norm; outliers of the window do not count. > 0. None: no bounds.
    merge_parallel : bool, default True
        Atoms with parallel columns in P are recovered together, see `psmt.recovery`.
    dictionary_from : {'past', 'window'}, default 'past'
        What `fit` learns the dictionary from: all frames that it is given, or the last `window` of them.
    solver : {'closed', 'sgd'}, default 'closed'
        Step 5: the closed form, or mini-batch steps that go on from the window before (on the CPU). Their result is the
        closed form's to `tol`, unless `tol` or `sparsity` ask for another; 'auto' chooses by the closed form.
    max_epochs, batch_size, tol, sparsity :
        Of 'sgd', for each window, as in `TemporalEmbedding`.
    coder : SparseCoder or None
        A fitted coder is used as it is; one that is not fitted is cloned and fitted, and rules over `n_atoms`,
        `alpha` and `random_state`.
    random_state : int, RandomState or None
    device : str, default 'cpu'
        Where to compute: 'cpu', or 'cuda' for a GPU (docs/how-to/gpu.md). A file that `save` writes knows of no device.
    dtype : {'float64', 'float32'}, default 'float64'
        Numbers to code and recover with; 'float32' on a GPU only, where predictions then differ by some thousandths.
    ends : bool
        The former name of `half_stencils`, for one more release.

    Attributes
    ----------
    dictionary_ : (n_atoms, n_features) array
    codes_ : (window, n_atoms) array
        The latest codes, oldest first.
    embedding_ : (n_components, n_atoms) array
        P of the present window.
    n_components_, lam_ : int or None, float
        As given or chosen.
    window_ : int
        As given or chosen.
    followed_ : FollowedEmbedding or StochasticEmbedding
        What renews the embedding; its `error_` tells how exactly.
    choice_ : Choice
        The walk-forward table behind 'auto'; empty where nothing was to be chosen.
    n_features_in_, feature_names_in_ : int, array of str
        Features of a frame; their names only where `fit` was given a table that has them. Tables whose columns are
        others, or in another order, are refused from then on.
    score_ : float or None
        What `score` gave when it was last asked.
    surprise_ : float
        How unexpected the last frame was: the squared error of expecting it, by copying the frame before it or by the
        straight line through the two before it, whichever came closer, in units of what that error usually is. Around
        1 while things go on as they did. The model's own prediction plays no part.
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
    """The codes of the training window stay: what comes is not received."""
    static_embedding: ClassVar[bool] = False
    """The embedding of the training window stays, while codes go on."""
    uses_embedding: ClassVar[bool] = True
    """Without, nobody follows the embedding; who asks for it has it solved."""

    # Steps 1 to 5: receive

    @as_small_work
    def update(self, x: ArrayLike) -> Self:
        """Receive the frame (n_features,) that came next.

        Parameters
        ----------
        x : (n_features,) array
            The frame.

        Returns
        -------
        self

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            Where x has other features, or values that are no finite numbers.
        """
        check_is_fitted(self, "moments_")
        given = self._scaling.standardise(self._frame(x))
        frame = self._engine.array(given)
        code = self.coder_.transform_next(frame, self.moments_.latest(1)[0])
        self._look_for_cut(given, code)
        if self._extrapolation.adaptive and (self.on_cut == "ignore" or self._watch.scene_length >= 3):
            latest = self._stacked([*self.moments_.latest(2), code])
            points, pictures = latest @ self._embed().matrix.T, self.coder_.decode(latest)
            self._extrapolation.observe(self._engine.numpy(points), self._engine.numpy(pictures))
        self._receive(code)
        self._keep_residual(frame)
        self._follow_dynamics(given, code)
        return self

    def _look_for_cut(self, frame: Array, code: Array) -> None:
        """See whether the frame (n_features,) that came with a code (n_atoms,) is a cut, or ends the time after one."""
        if not self._aftermath.is_over and self._watch.scene_length >= 2:
            # It costs what predicting would: while the code is held, `predict` costs nothing.
            codes = self._stacked([self._own_codes(1)[0], self.moments_.latest(1)[0]])
            errors = self._engine.numpy(((self.coder_.decode(codes - code)) ** 2).sum(1))
            self._aftermath.observe(*errors.tolist())
        self._watch.observe(frame)
        if self._watch.scene_length >= self.window_:
            self._aftermath.end()
        elif self.cut_ and self.on_cut == "hold" and self.uses_embedding and not self.static_window:
            self._aftermath.begin()

    def _follow_dynamics(self, frame: Array, code: Array) -> None:
        """Let the dynamics know the frame (n_features,) and code (n_atoms,) that came."""
        if isinstance(self._extrapolation, Dynamics) and not self.static_window:
            window = None if self.static_embedding else lambda: (self.codes_, self.embedding_)
            cut = self.cut_ and self.on_cut == "hold"
            self._extrapolation.receive(frame, self._engine.numpy(code), window, begins=cut)

    def _receive(self, code: Array) -> None:
        if self.static_window:
            return
        self.moments_.slide(code)
        if self.static_embedding:
            return
        self._embedding = None
        if self.uses_embedding and self.followed_.is_following:
            self._embed()

    # Steps 6 to 8: predict

    @as_small_work
    def predict(self, horizon: int | ArrayLike | None = None) -> Array:
        """The next frame (n_features,), or with a `horizon` the next frames (horizon, n_features).

        Frames beyond the first are predicted from the predictions before them; the embedding stays.

        Given frames (time, n_features) that came next instead of a number, what follows each of them (time, n_features)
        is predicted walk-forward, as scikit-learn calls predict: a copy receives one, predicts the next, and so on.

        Parameters
        ----------
        horizon : int, optional
            How many frames ahead.

        Returns
        -------
        (n_features,) or (horizon, n_features) array

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self, "moments_")
        if horizon is not None and (horizon if hasattr(horizon, "ndim") else as_array(horizon, name="horizon")).ndim:
            return np.array([predicted for _, predicted in self._walk(self.check_next(horizon))])
        steps = 1 if horizon is None else check_count("horizon", horizon)
        if isinstance(self._extrapolation, Dynamics) and self._aftermath.is_over:
            frames = self._foretold(self._extrapolation, steps)
        else:
            frames = self._engine.numpy(self.coder_.decode(self.predict_codes(steps)) + self._residual)
        frames = self._scaling.restore(frames)
        return frames[0] if horizon is None else frames

    def _foretold(self, dynamics: Dynamics, horizon: int) -> Array:
        """The next frames (horizon, n_features) of the dynamics: predicted codes, decoded, and what they do not hold.

        They move no further from the last frame than those of other strategies may.
        """
        last = self._engine.numpy(self.coder_.decode(self.moments_.latest(1))[0] + self._residual)
        reach = activity_limit(self.activity_bound, self._watch.peak_norm)
        frames, _ = dynamics.foretell(horizon)
        moved = np.linalg.norm(frames - last, axis=1, keepdims=True)
        return drawn_back(frames, last, moved, reach)

    @as_small_work
    def predict_codes(self, horizon: int) -> Array:
        """The next codes (horizon, n_atoms), as an array of the engine: steps 6 and 7.

        Parameters
        ----------
        horizon : int
            How many frames ahead.

        Returns
        -------
        (horizon, n_atoms) array of the engine
        """
        return self._own_codes(horizon) if self._aftermath.is_over else self.moments_.latest(1)[[0] * horizon]

    def _own_codes(self, horizon: int) -> Array:
        """The next codes (horizon, n_atoms) as Algorithm 1 finds them, whether there was a cut or not."""
        previous, latest = self.moments_.latest(2)
        recover, reach = self._recovery(), activity_limit(self.activity_bound, self._watch.peak_norm)
        current, codes = latest, []
        points: Array | None = None
        if isinstance(self._extrapolation, Dynamics):
            points = self._engine.array(self._extrapolation.foretell(horizon)[1])
        for step in range(horizon):
            if points is not None:
                following = recover(points[step], current)
            else:
                following = recover_next(recover, self._extrapolation, previous, current)
            previous, current = current, self._within_reach(following, latest, reach)
            codes.append(current)
        return self._stacked(codes)

    def _within_reach(self, code: Array, latest: Array, reach: Array | float) -> Array:
        """The code (n_atoms,), drawn back to the latest one as far as their pictures are more than `reach` apart.

        The bound of step 7 is on activity. Where atoms cancel each other, a code of great activity is a small picture,
        and so great a one is allowed to be a huge picture. No straight line through two pictures of the window,
        continued by one step, moves further than twice their largest norm.
        """
        length = array_namespace(code).linalg.vector_norm(self.coder_.decode((code - latest)[None]))
        return drawn_back(code, latest, length, reach)

    def _recovery(self) -> Recovery:
        seen_by = self._embed().matrix
        if isinstance(self._extrapolation, Dynamics):  # its points are those of the embedding that it was learned with
            seen_by = self._engine.array(self._extrapolation.embedding)
        return Recovery(
            seen_by,
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
        """Points (time, n_components) of the frames (time, n_features) in the present embedding.

        Parameters
        ----------
        X : (time, n_features) array
            In the order of time.

        Returns
        -------
        (time, n_components) array

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self, "moments_")
        frames = self._scaling.standardise(self._frames(X))
        return self._codes_by(self.coder_, frames) @ self.embedding_.T

    def inverse_transform(self, points: ArrayLike) -> Array:
        """Frames (time, n_features) that the points (time, n_components) stand for: steps 7 and 8.

        Parameters
        ----------
        points : (time, n_components) array
            As `transform` gives them.

        Returns
        -------
        (time, n_features) array

        Raises
        ------
        ValueError
            Where points have more or fewer columns than there are components.
        """
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

    # What an estimator is asked for besides

    def check_next(self, X: ArrayLike) -> Array:
        """The frames (time, n_features) that came next, as numbers that can be computed with."""
        return self._frames(X)

    def _frame(self, x: ArrayLike) -> Array:
        """A frame (n_features,); of a table's row, the names are held against those of `fit`."""
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
        # Patches of films come standardised: who asks for it has a series.
        picture = atoms_picture(self.dictionary_[used], series=self.standardise)
        return card(type(self).__name__, facts, picture, caption)
