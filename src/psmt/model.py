"""`PSMT`: Algorithm 1 of the paper, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from psmt.coding import SparseCoder
from psmt.departures import Departures
from psmt.embedding import Embedding, FollowedEmbedding, StochasticEmbedding
from psmt.embedding.stochastic import BATCH_SIZE, MAX_EPOCHS, TOL, check_solver, draw_seed
from psmt.engines import engine_for, engine_name
from psmt.engines.contract import Engine
from psmt.errors import NotEnoughFramesError, SilentCodesError
from psmt.extrapolation import EXTRAPOLATIONS, Dynamics, make_extrapolation
from psmt.moments import WindowMoments
from psmt.numerics.namespace import array_namespace
from psmt.numerics.rank import RANK_TOL
from psmt.numerics.robust import drawn_back
from psmt.recovery import ACTIVITY_FACTOR, Recovery, activity_limit, recover_next
from psmt.schema import LARGEST_SQUARE, Field, Size, check_state, under
from psmt.selection import Auto, Choice, choose_dynamics, held_out, walk_forward
from psmt.series import Scaling, check_lengths, first_frames
from psmt.storage import Header, check_prediction, damage_named, part, plain, read_container, write_container
from psmt.surprise import Aftermath, FrameWatch
from psmt.types import Array, Mask
from psmt.validation import (
    Constraint,
    allowing,
    check_count,
    check_frame,
    check_parameters,
    check_series,
    choice,
    count,
    mapping,
    nothing,
    real,
    renamed,
    seed,
    truth,
)

Given = ParamSpec("Given")
Model = TypeVar("Model", bound="PSMT")
Returned = TypeVar("Returned")


def _as_small_work(
    method: Callable[Concatenate[Model, Given], Returned],
) -> Callable[Concatenate[Model, Given], Returned]:
    """The method of a model, with no more threads than pay from its beginning to its end."""

    @wraps(method)
    def limited(model: Model, /, *args: Given.args, **kwargs: Given.kwargs) -> Returned:
        with model._engine.small_work():  # noqa: SLF001  it is a method of the model
            return method(model, *args, **kwargs)

    return limited


FOR_SERIES: dict[str, Any] = {
    "standardise": True,
    "alpha": "auto",
    "window": "auto",
    "n_atoms": "auto",
    "extrapolation": "dynamics",
    "on_cut": "ignore",
}
"""Parameters for series that are no films. They have no cuts: a sharp change of a brain is part of its dynamics."""

_LONGEST_WINDOW = 4096
"""What window='auto' takes at the most: the window is kept, and a matrix is learned from it again and again."""


class PSMT(BaseEstimator):
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
        from the window, see `psmt.extrapolation.Dynamics` and docs/dynamics.md.
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
        Where to compute: 'cpu', or 'cuda' for a GPU (see docs/gpu.md). A file that `save` writes knows of no device.
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

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "window": allowing("auto", count(3)),
        "n_atoms": allowing("auto", count()),
        "alpha": allowing("auto", real(open_bound=True)),
        "rank_tol": real(),
        "activity_bound": allowing(None, real(open_bound=True)),
        "dictionary_from": choice("past", "window"),
        "n_components": allowing(None, allowing("auto", count())),
        "lam": allowing("auto", real()),
        "extrapolation": choice(*EXTRAPOLATIONS),
        "on_cut": choice("hold", "ignore"),
        "solver": choice("closed", "sgd"),
        "max_epochs": count(),
        "batch_size": count(),
        "tol": allowing(None, real()),
        "sparsity": real(),
        "standardise": truth(),
        "centred": truth(),
        "half_stencils": truth(),
        "merge_parallel": truth(),
        "random_state": seed(),
    }

    def __init__(
        self,
        *,
        n_atoms: int | Auto = 512,
        window: int | Auto = 1536,
        n_components: int | Auto | None = "auto",
        alpha: float | Auto = 1.0,
        lam: float | Auto = "auto",
        extrapolation: str = "linear",
        standardise: bool = False,
        on_cut: str = "hold",
        centred: bool = True,
        half_stencils: bool = False,
        rank_tol: float = RANK_TOL,
        activity_bound: float | None = ACTIVITY_FACTOR,
        merge_parallel: bool = True,
        dictionary_from: str = "past",
        solver: str = "closed",
        max_epochs: int = MAX_EPOCHS,
        batch_size: int = BATCH_SIZE,
        tol: float | None = TOL,
        sparsity: float = 0.0,
        coder: SparseCoder | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        dtype: str = "float64",
        ends: bool | Literal["deprecated"] = "deprecated",
    ) -> None:
        self.n_atoms = n_atoms
        self.window = window
        self.n_components = n_components
        self.alpha = alpha
        self.lam = lam
        self.extrapolation = extrapolation
        self.standardise = standardise
        self.on_cut = on_cut
        self.centred = centred
        self.half_stencils = half_stencils
        self.rank_tol = rank_tol
        self.activity_bound = activity_bound
        self.merge_parallel = merge_parallel
        self.dictionary_from = dictionary_from
        self.solver = solver
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.tol = tol
        self.sparsity = sparsity
        self.coder = coder
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.ends = ends

    @classmethod
    def literal(cls, **parameters: Any) -> Self:
        """The paper to the letter, less what the parameters say otherwise.

        The dictionary is learned from the H frames of the window, D is H x H, V is the covariance as it is, and step 7
        knows neither a bound nor merged columns. What the paper leaves open stays as everywhere: where V is singular
        it is inverted in its range, and an atom that does not vary in the window keeps its activity.

        >>> model = PSMT.literal(n_atoms=24, window=200)
        >>> model.rank_tol, model.half_stencils, model.activity_bound
        (0.0, True, None)
        """
        return cls(**Departures.literal().parameters | parameters)

    @classmethod
    def for_series(cls, **parameters: Any) -> Self:
        """For series that are no films, as they come: any units, any length; less what the parameters say otherwise.

        >>> model = PSMT.for_series()
        >>> model.standardise, model.alpha, model.window, model.n_atoms, model.extrapolation, model.on_cut
        (True, 'auto', 'auto', 'auto', 'dynamics', 'ignore')
        """
        return cls(**FOR_SERIES | parameters)

    # Learning from the past

    @_as_small_work
    def fit(self, X: ArrayLike, y: object = None, *, lengths: Sequence[int] | None = None) -> Self:
        """Learn from the past frames (time, n_features): dictionary, window of codes, 'auto' parameters.

        X may be several series (subjects, sessions) one after the other, with their `lengths`, as in hmmlearn: see
        `psmt.series.join_series`. Nothing is learned from the step from one to the next. Each is standardised by
        itself, if so asked; `update` goes on with the last one.
        """
        self._check_parameters()
        given = check_series(X)
        parts = check_lengths(lengths, len(given))
        if self._half_stencils and len(parts) > 1:
            raise ValueError(
                f"half_stencils=True is for one series, and lengths names {len(parts)}; use half_stencils=False"
            )
        self.window_ = min(len(given), _LONGEST_WINDOW) if isinstance(self.window, str) else self.window
        if len(given) < max(self.window_, 3):
            raise NotEnoughFramesError(
                f"X has {len(given)} frames, fewer than window={max(self.window_, 3)}; "
                f"use window <= {len(given)} or more frames"
            )
        self._scaling, past = self._standardised(given, parts)
        begins = first_frames(parts) if len(parts) > 1 else np.zeros(len(past), dtype=bool)
        self._extrapolation = make_extrapolation(self.extrapolation)
        self.choice_, learned = self._look_back(past, begins)
        self.coder_ = self.fit_coder(past, learned)
        self.n_features_in_ = past.shape[1]
        codes = self.coder_.transform(past[-self.window_ :])
        self._check_activity(codes, past)
        self.moments_ = WindowMoments.of(self._engine.array(codes), self._engine, begins=begins[-self.window_ :])
        self._keep_residual(self._engine.array(past[-1]))
        self._watch, self._aftermath = FrameWatch(past[-parts[-1] :], self.window_), Aftermath()
        self.n_components_, self.lam_ = self.choice_.n_components, self.choice_.lam
        self._embedding: Embedding | None = None
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
        return self

    def begin(self, X: ArrayLike) -> Self:
        """Go on with another series, of which the frames (time, n_features) have come so far, three or more.

        What was learned stays, and the window goes on with the new codes behind a seam. The new series is standardised
        by itself, if so asked.
        """
        check_is_fitted(self, "moments_")
        given = check_series(X, n_features=self.n_features_in_, minimum=3)
        if self._half_stencils:
            raise ValueError("half_stencils=True is for one series; use half_stencils=False to begin another")
        self._scaling, past = self._standardised(given, [len(given)])
        codes = self.coder_.transform(past[-self.window_ :])
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

    def _look_back(self, past: Array, begins: Mask) -> tuple[Choice, SparseCoder | None]:
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
        }
        if isinstance(self._extrapolation, Dynamics):
            recent = past[-self.window_ :]
            coder = self.fit_coder(past[: len(past) - 2 * held_out(self.window_)])
            return choose_dynamics(self._extrapolation, recent, coder.transform(recent), coder.dictionary_, **how), None
        if (
            not isinstance(self.n_components, str)
            and not isinstance(self.lam, str)
            and not self._extrapolation.adaptive
        ):
            return Choice(self.n_components, float(self.lam), scores={}), None
        # Codes of frames that the dictionary was learned from are smoother than those of the future.
        coder = self.fit_coder(past[: len(past) - held_out(self.window_)])
        choice = walk_forward(coder.transform(past[-self.window_ :]), coder.dictionary_, self._extrapolation, **how)
        # With given values the dictionary is the same whatever the extrapolation: that of all the past at once.
        return choice, coder if "auto" in (self.n_components, self.lam) else None

    def fit_coder(self, samples: Array, learned: SparseCoder | None = None) -> SparseCoder:
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
        return coder.fit(samples[-self.window_ :] if self.dictionary_from == "window" else samples)

    # Steps 1 to 5: receive

    @_as_small_work
    def update(self, x: ArrayLike) -> Self:
        """Receive the frame (n_features,) that came next."""
        check_is_fitted(self, "moments_")
        given = self._scaling.standardise(check_frame(x, self.n_features_in_))
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

    @property
    def surprise_(self) -> float:
        """How unexpected the last frame was, in units of what is usual."""
        check_is_fitted(self, "moments_")
        return self._watch.surprise

    @property
    def cut_(self) -> bool:
        """Whether the last frame began something new."""
        check_is_fitted(self, "moments_")
        return self._watch.cut

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

    def _keep_residual(self, frame: Array) -> None:
        """Keep what the latest code does not hold of its frame, if it is to be carried along."""
        self._residual = 0.0 * frame
        if self._extrapolation.keeps_residual:
            self._residual = frame - self.coder_.decode(self.moments_.latest(1))[0]

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

    def _embed(self) -> Embedding:
        if self._embedding is None:
            self._embedding = self.followed_.update(self.moments_)
        return self._embedding

    def _start_following(self) -> FollowedEmbedding | StochasticEmbedding:
        asked: dict[str, Any] = {
            "centred": self.centred,
            "half_stencils": self._half_stencils,
            "rank_tol": self.rank_tol,
        }
        if self.solver == "closed":
            return FollowedEmbedding(self.n_components_, **asked)
        return StochasticEmbedding(
            self.n_components_,
            **asked,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            tol=self.tol,
            sparsity=self.sparsity,
            seed=draw_seed(self.random_state),
        )

    @property
    def _half_stencils(self) -> bool:
        return renamed("half_stencils", self.half_stencils, "ends", self.ends)

    # Steps 6 to 8: predict

    @_as_small_work
    def predict(self, horizon: int | None = None) -> Array:
        """The next frame (n_features,), or with a `horizon` the next frames (horizon, n_features).

        Frames beyond the first are predicted from the predictions before them; the embedding stays.
        """
        check_is_fitted(self, "moments_")
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

    @_as_small_work
    def predict_codes(self, horizon: int) -> Array:
        """The next codes (horizon, n_atoms), as an array of the engine: steps 6 and 7."""
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

    @property
    def _engine(self) -> Engine:
        return engine_for(self.device, self.dtype)

    @staticmethod
    def _stacked(arrays: Sequence[Array]) -> Array:
        return array_namespace(arrays[0]).stack(arrays)

    # The two layers as a transform

    def transform(self, X: ArrayLike) -> Array:
        """Points (time, n_components) of the frames (time, n_features) in the present embedding."""
        check_is_fitted(self, "moments_")
        frames = check_series(X, n_features=self.n_features_in_)
        return self.coder_.transform(self._scaling.standardise(frames)) @ self.embedding_.T

    def inverse_transform(self, points: ArrayLike) -> Array:
        """Frames (time, n_features) that the points (time, n_components) stand for: steps 7 and 8."""
        check_is_fitted(self, "moments_")
        given = check_series(points, name="points")
        if given.shape[1] != len(self.embedding_):
            raise ValueError(f"points have {given.shape[1]} columns, but there are {len(self.embedding_)} components")
        recover = self._recovery()
        codes = self._stacked([recover(point) for point in self._engine.array(given)])
        return self._scaling.restore(self._engine.numpy(self.coder_.decode(codes)))

    @property
    def dictionary_(self) -> Array:
        """Phi (n_atoms, n_features)."""
        return self.coder_.dictionary_

    @property
    def codes_(self) -> Array:
        """The latest codes (window, n_atoms), oldest first."""
        return self._engine.numpy(self.moments_.codes)

    @property
    def embedding_(self) -> Array:
        """P (n_components, n_atoms) of the present window; fewer rows while the window's rank is smaller."""
        return self._engine.numpy(self._embed().matrix)

    # Keeping it

    def get_state(self) -> tuple[Header, dict[str, NDArray[Any]]]:
        """Everything that a copy needs to go on alike: values for JSON, and arrays. Nothing in the model changes."""
        check_is_fitted(self, "moments_")
        embedding, numpy = self._embed(), self._engine.numpy
        parameters = plain(self.get_params(deep=False)) | {"coder": None, "half_stencils": self._half_stencils}
        del parameters["ends"]
        header = {
            "parameters": parameters,
            "coder": plain(self.coder_.get_params()) | {"alpha": self.coder_.alpha_},
            "coder_given": self.coder is not None,
            "choice": self.choice_.to_json(),
        }
        arrays = {
            "dictionary": self.coder_.dictionary_,
            "rest": numpy(self._residual),
            "embedding": numpy(embedding.matrix),
            "roughness": numpy(embedding.eigenvalues),
            **{f"moments.{name}": value for name, value in self.moments_.state.items()},
            **{f"extrapolation.{name}": value for name, value in self._extrapolation.state.items()},
            **{f"watch.{name}": value for name, value in self._watch.get_state().items()},
            **{f"aftermath.{name}": value for name, value in self._aftermath.get_state().items()},
        }
        if self.standardise:
            arrays |= {"scaling.mean": self._scaling.mean, "scaling.scale": self._scaling.scale}
        if isinstance(self.followed_, StochasticEmbedding):
            arrays |= {f"descent.{name}": value for name, value in self.followed_.state.items()}
        return header, arrays

    @classmethod
    def schema(cls, header: Header) -> dict[str, Field]:
        """What the arrays of `get_state` must be, given its values for JSON, which are checked here."""
        model = cls(**cls._stored_parameters(header))
        window: Size = "n_codes" if isinstance(model.window, str) else model.window
        scaling = {"mean": Field(("n_features",)), "scale": Field(("n_features",), low=np.finfo(float).tiny)}
        return {
            "dictionary": Field(("n_atoms", "n_features")),
            "rest": Field(("n_features",)),
            "embedding": Field(("n_components", "n_atoms"), may_be_empty=True),
            "roughness": Field(("n_components",), low=0.0, high=LARGEST_SQUARE, may_be_empty=True),
            **under("moments.", WindowMoments.schema(window, "n_atoms")),
            **under("extrapolation.", EXTRAPOLATIONS[model.extrapolation].schema()),
            **(under("scaling.", scaling) if model.standardise else {}),
            # Files of psmt 0.1.0 know no frames.
            **under("watch.", FrameWatch.schema(window, "n_features"), group="watch"),
            **under("aftermath.", Aftermath.schema(), group="watch"),
            **(under("descent.", StochasticEmbedding.schema()) if model.solver == "sgd" else {}),
        }

    @classmethod
    def _stored_parameters(cls, header: Header) -> dict[str, Any]:
        """Parameters of a header of which all is checked; what an older psmt did not know has its default."""
        # A coder is no value of JSON, and `ends` is what half_stencils was called before 0.2.
        own = cls._parameter_constraints | {"coder": nothing, "ends": truth()}
        mapping(
            {
                "parameters": mapping(own, complete=False),
                "coder": SparseCoder.check_stored,
                "coder_given": truth(),
                "choice": Choice.check_stored,
            }
        )("header", header)
        parameters = dict(header["parameters"])
        if "ends" in parameters:
            parameters["half_stencils"] = parameters.pop("ends")
        return parameters

    @classmethod
    def from_state(
        cls, header: Header, arrays: dict[str, NDArray[Any]], *, device: str = "cpu", dtype: str = "float64"
    ) -> Self:
        """The model that `get_state` was taken from, on any device."""
        check_state(cls.schema(header), arrays)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        coder = SparseCoder.from_stored(header["coder"], arrays["dictionary"], **place)
        model = cls(**cls._stored_parameters(header), **place)
        model._restore(coder, header, arrays)
        return model

    def _restore(self, coder: SparseCoder, header: Header, arrays: dict[str, NDArray[Any]]) -> None:
        """Become as fitted as the model that the state was taken from."""
        self._check_parameters()
        engine = self._engine
        self.coder = coder if header["coder_given"] else None
        self.coder_ = coder
        self.n_features_in_ = coder.n_features_in_
        self.choice_ = Choice.from_json(header["choice"])
        self.n_components_, self.lam_ = self.choice_.n_components, self.choice_.lam
        self.window_ = len(arrays["moments.codes"])
        for name, chosen in (("n_components", self.n_components_), ("lam", self.lam_)):
            if (given := getattr(self, name)) not in ("auto", chosen):
                raise ValueError(f"{name}={given!r}, but the choice says {chosen!r}")
        if self.n_components_ is not None and len(arrays["embedding"]) > self.n_components_:
            raise ValueError(
                f"embedding has {len(arrays['embedding'])} rows, more than {self.n_components_} components"
            )
        self.moments_ = WindowMoments.from_state(part(arrays, "moments."), engine)
        self._residual = engine.array(arrays["rest"])
        self._extrapolation = make_extrapolation(self.extrapolation)
        self._extrapolation.state = part(arrays, "extrapolation.")
        # Where there is no record of frames, their codes stand for them.
        self._watch = FrameWatch(arrays["moments.codes"] @ arrays["dictionary"], self.window_)
        self._aftermath = Aftermath()
        if watched := part(arrays, "watch."):
            self._watch.set_state(watched)
            self._aftermath.set_state(part(arrays, "aftermath."))
        self._scaling = Scaling.none(self.n_features_in_)
        if self.standardise:
            self._scaling = Scaling(**part(arrays, "scaling."))
        matrix, eigenvalues = engine.array(arrays["embedding"]), engine.array(arrays["roughness"])
        self._embedding = Embedding(matrix, eigenvalues)
        self.followed_ = self._start_following()
        if isinstance(self.followed_, StochasticEmbedding):
            descent = part(arrays, "descent.")
            if descent["matrix"].size and descent["matrix"].shape[1] != len(coder.dictionary_):
                raise ValueError(f"descent.matrix has shape {descent['matrix'].shape}: not a column for each atom")
            self.followed_.state = descent

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, whole or not at all. No pickle: a file holds arrays and JSON only."""
        header, arrays = self.get_state()
        write_container(path, type(self).__name__, header, arrays, self.schema(header))

    @classmethod
    def load(cls, path: str | PathLike[str], *, device: str = "cpu", dtype: str = "float64") -> Self:
        """The model that `save` wrote, on any device; on that of the saved model it predicts the same, bit for bit.

        Raises `ModelFileError` unless the file is as the model's schema says, see docs/model-files.md.
        """
        engine_for(device, dtype)
        header, arrays = read_container(path, cls.__name__, lambda header, _: cls.schema(header))
        with damage_named(path):
            model = cls.from_state(header, arrays, device=device, dtype=dtype)
            check_prediction(model.predict)
        return model

    def _check_parameters(self) -> None:
        engine_for(self.device, self.dtype)
        check_parameters(self, self._parameter_constraints)
        check_solver(self.solver, device=self.device, sparsity=self.sparsity)
