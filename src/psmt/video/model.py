"""`FramePSMT`: whole frames, predicted as the last frame plus a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from functools import partial
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from psmt.data import FrameSource
from psmt.engines import engine_for
from psmt.errors import ModelFileError
from psmt.model.online_estimator import by_one_thread
from psmt.numerics.namespace import array_namespace
from psmt.persistence.model_file import Header, check_prediction, load_model
from psmt.persistence.schema import Field, Layout, check_layouts, check_state, counter, flag, under
from psmt.persistence.state import State
from psmt.surprise import CutDetector
from psmt.types import Array, Levels, Progress, silent
from psmt.utils.threads import one_blas_thread
from psmt.utils.validation import Constraint, check_count, check_parameters, choice, mapping, truth
from psmt.video.advice import Advice
from psmt.video.blending import LARGEST_WEIGHT, PlaceBlend
from psmt.video.candidates import MEANS, PLANES, Candidates, Scene
from psmt.video.checks import FRAME_FIELD, check_each, check_film, check_next_frame
from psmt.video.correction import Correction
from psmt.video.estimator import FrameForecaster
from psmt.video.expert_gating import LocalGain, unexplained
from psmt.video.foresight import Course, Foresight, Outlook, Rollout, mean_square
from psmt.video.grid import Grid
from psmt.video.horizons import SELDOM, Horizons
from psmt.video.prior import Prior, check_prior, default_prior


class _Rule(NamedTuple):
    """What an extrapolation makes predictions from, besides the last change."""

    planes: tuple[tuple[int, tuple[float, ...]], ...] = ()
    share: float | None = None
    """Of the last change, where nothing is learned and it is all there is."""


FRAME_EXTRAPOLATIONS = {
    "phase": _Rule(PLANES),
    "gain": _Rule(),
    "linear": _Rule(share=1.0),
    "hold": _Rule(share=0.0),
}
"""What `FramePSMT` knows, by name."""

_KEPT = 0.1
"""How much of what was learned of places counts after a sharp change."""

_FLOOR = 1e-6
"""Changes of less energy than this fraction of the variance over the picture are no scale to measure others by."""

_LEAST = 1e-200
"""Energy that is as good as none; any other may be divided by it."""

_JOLT = 6.0
"""A frame that is unlike the last one, and surprises by more than this, but is explained by motion."""

_WORSE = 2.0
"""A prediction that errs by more than so many times as copying would have failed: motion has stopped, or jumped."""

_HEAD_START = 1.0
"""Frames of full belief that the gain begins with where there is a prior."""


class FramePSMT(FrameForecaster):
    """Whole-frame predictor: candidate changes, blended by recursive least squares; grey levels in, grey levels out.

    It shares the loop that predicts, receives and learns with the model of the paper, `PSMT`, and neither of its
    layers: sparse codes were tried as a source of the weights, and left, because they gave nothing
    (docs/explanation/frames.md). The next frame is the last one plus a blend of candidate changes:

    - motion: local Fourier planes (tiles of two sizes, whose coefficients turn on by the phase step of the last
      frames), the same with a memory of the coefficients, optical flow, and the last change;
    - memory: running means of each pixel, along the flow and standing still, and the motion of the frames before;
    - the neighbouring pixels of the last two frames.

    What decides between them is learned while the film runs, by least squares with exponential forgetting but for the
    last:

    - by place: moments per cell of 8 x 8 pixels, in three bands of detail. A prior, learned on other films, says what
      the candidates are worth in a scene that has just begun;
    - by record: a gain per cell in [0, 1], from predictions whose truth was not known yet;
    - by advice: the blend, the prior's own blend, optical flow and copying are experts whose exponentially weighted
      average is followed, so that the model is never much worse than the best of them;
    - by pixel: a small network, trained by Adam on pixels of the last frames, corrects what all this amounts to, as far
      as its own record goes.

    Calm frames count as much as lively ones in all this, and a change that is far livelier than the last one is
    weakened: motion may stop at once. Rollouts are held against what came, every 20 to 80 frames, and believed as far
    as they have proved themselves; `expected_mse` says how large their error will be.

    A sharp change (a cut, a flash) is a failure of the prediction that no motion explains: the model then starts again
    from the new frame, with its prior and a tenth of what it knew of places.

    Memory and time per frame do not grow with the film. `fit` is `update` for each of the frames.

    Parameters
    ----------
    extrapolation : {'phase', 'gain', 'linear', 'hold'}, default 'phase'
        How the change is found: all of the above; from the last change alone, with learned gains; the last change once
        more, as in the paper, whether it pays or not; none, so that the last frame is copied.
    prior : 'default', None, Prior or path, default 'default'
        What other films have taught, for 'phase': the prior that comes with the package, learned on built-in films;
        none, so that a new scene is copied until the model has a record; or one that `psmt learn` has made.
    rollouts : bool, default True
        Whether rollouts go on record. It may be changed while the film runs, and is not kept in files: without them a
        frame takes a tenth less time, `expected_mse` learns nothing, and what comes after the next frame is believed
        as it was before.
    correction : bool, default True
        Whether a network corrects the next frame. It may be changed while the film runs, and is not kept in files:
        without it a frame takes a sixth less time, and errs by some 2 to 14% more.

    Attributes
    ----------
    shape_ : (height, width)
    surprise_ : float
        How badly the last prediction failed, in units of what is usual.
    cut_ : bool
        Whether the last frame was taken as a sharp change.
    candidate_errors_ : dict of str to float
        Mean squared error of each candidate that is a prediction by itself, for the last frame; empty after a cut.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt import FramePSMT
    >>> x = np.arange(32)
    >>> film = [np.add.outer(np.sin(x / 3), np.sin((x - t) / 2)) for t in range(40)]
    >>> model = FramePSMT().fit(film[:30])
    >>> model.predict(horizon=3).shape
    (3, 32, 32)
    >>> bool(np.mean((model.predict() - film[30]) ** 2) < 0.05 * np.mean((film[29] - film[30]) ** 2))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "extrapolation": choice(*FRAME_EXTRAPOLATIONS),
        "prior": check_prior,
        "rollouts": truth(),
        "correction": truth(),
    }

    _scene: Scene
    _outlook: Outlook | None
    """None where nothing is learned, or nothing is known of the scene's motion."""

    def __init__(
        self,
        *,
        extrapolation: str = "phase",
        prior: str | PathLike[str] | Prior | None = "default",
        rollouts: bool = True,
        correction: bool = True,
        device: str = "cpu",
    ) -> None:
        self.extrapolation = extrapolation
        self.prior = prior
        self.rollouts = rollouts
        self.correction = correction
        self.device = device

    # Predict, receive, learn

    @by_one_thread
    def fit(self, frames: ArrayLike | FrameSource, y: object = None, *, progress: Progress = silent) -> Self:
        """Learn from the past frames (time, height, width), at least two; or from all frames of `psmt.open_frames`.

        Those are read one at a time, so that a film may be of any length.

        Parameters
        ----------
        frames : (time, height, width) array, or what `psmt.open_frames` gives
            Grey levels, in the order of time.
        y : object
            Ignored.
        progress : callable, optional
            Called with the stage, 'frames', how many of them were received, and how many there are.

        Returns
        -------
        self

        Raises
        ------
        NotEnoughFramesError
            Where there are fewer than two frames.
        ValueError
            Where frames are of another shape, or values are no finite numbers.
        """
        check_parameters(self, self._parameter_constraints)
        kernels = engine_for(self.device).frames
        if isinstance(frames, FrameSource):
            n_told, past = frames.n_frames or 0, check_each(frames, minimum=2)
        else:
            film = check_film(frames, minimum=2)
            n_told, past = len(film), iter(film)
        before = dict(self.__dict__)
        try:
            first, done = next(past).copy(), 1
            self._assemble(Grid((first.shape[0], first.shape[1]), kernels), self._read_prior(), first)
            with one_blas_thread():
                for done, frame in enumerate(past, 2):
                    progress("frames", done - 1, max(n_told, done))
                    self._receive(frame.copy())
        except BaseException:
            # A film may break off in the middle: the model is what it was.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        progress("frames", done, done)
        return self

    @by_one_thread
    def update(self, frame: ArrayLike) -> Self:
        """Receive the frame (height, width) that came next.

        Parameters
        ----------
        frame : (height, width) array
            Grey levels.

        Returns
        -------
        self

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            Where the frame has another shape.
        """
        check_is_fitted(self, "shape_")
        received = check_next_frame(frame, self.shape_)
        with one_blas_thread():
            # The caller may read the next frame into the same array.
            self._receive(received.copy())
        return self

    @by_one_thread
    def predict(self, horizon: int | None = None) -> Levels:
        """Return the next frame (height, width), or with a `horizon` the next frames (horizon, height, width).

        Frames beyond the first are predicted from the predictions before them. Levels stay in the range seen so far,
        but for 'linear'.

        Parameters
        ----------
        horizon : int, optional
            How many frames ahead.

        Returns
        -------
        (height, width) or (horizon, height, width) array

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self, "shape_")
        n_steps = 1 if horizon is None else check_count("horizon", horizon)
        if self._share is not None:
            rolled = self._straight(self._share, n_steps)
        else:
            with one_blas_thread():
                mixed = self._horizons.mixed(self._rolled(n_steps), self._scene.current, self._scene.means)
            rolled = [frame.clip(self._low, self._high) for frame in mixed]
        frames = [self._grid.kernels.numpy(frame) for frame in rolled]
        return frames[0] if horizon is None else np.stack(frames)

    def predict_later(self, horizon: int) -> Callable[[], Levels]:
        """Return work that gives what `predict` would give now, in any thread, whatever the model learns meanwhile.

        Parameters
        ----------
        horizon : int
            How many frames ahead.

        Returns
        -------
        callable

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self, "shape_")
        # All that a rollout starts from is replaced by what comes, and never changed, but for the record of rollouts.
        known = copy(self)
        known.__dict__["_horizons"] = deepcopy(self._horizons)
        return partial(known.predict, check_count("horizon", horizon))

    def expected_mse(self, horizon: int) -> Array:
        """Return the mean squared error (horizon,) to expect of `predict`, frame by frame ahead.

        It is that of the model's own rollouts of late, in proportion to how lively the film is; NaN before the first of
        them has been scored, and where nothing is learned ('linear', 'hold').
        """
        check_is_fitted(self, "shape_")
        return self._horizons.expected(check_count("horizon", horizon))

    def _straight(self, share: float, n_steps: int) -> list[Levels]:
        """Return the next frames if each differs from the one before by the same share of the last change."""
        step = share * (self._scene.current - self._scene.previous)
        return [self._scene.current + k * step for k in range(1, n_steps + 1)]

    def _rolled(self, n_steps: int) -> list[Levels]:
        """Return the next frames by what was learned, each from those before it."""
        if self._outlook is None:
            return [self._predicted] * n_steps
        rollout = Rollout(self._predicted, self._scene, self._course.gains, self._course)
        frames = [rollout.frame]
        while len(frames) < n_steps:
            rollout = self._foresight.go_on(rollout)
            frames.append(rollout.frame)
        return frames

    # What it has learned

    @property
    def surprise_(self) -> float:
        """How badly the last prediction failed, in units of what is usual."""
        check_is_fitted(self, "shape_")
        return self._cut_detector.surprise

    @property
    def cut_(self) -> bool:
        """Whether the last frame was taken as a sharp change."""
        check_is_fitted(self, "shape_")
        return self._cut_detector.cut

    # Keeping it

    @classmethod
    def load(cls, path: str | PathLike[str], *, device: str = "cpu") -> Self:
        """Return the model that `save` wrote; it goes on as that one does, bit for bit.

        Its `prior` is the one that the file holds. Raises `ModelFileError` unless the file is as the model's schema
        says, see docs/how-to/model-files.md.

        Parameters
        ----------
        path : path
            Where the file is.
        device : str
            As in the class.

        Returns
        -------
        FramePSMT

        Raises
        ------
        ModelFileError
            Where the file is damaged, or of another class.
        """
        return load_model(path, cls, device=device)

    def get_header(self) -> Header:
        """Return the parameters of a file; a prior is part of the state."""
        return {"parameters": {"extrapolation": self.extrapolation}}

    @classmethod
    def stored_schema(cls, header: Header, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Return the schema of a file's arrays, or raise where its header is wrong."""
        if "dictionary" in layouts:
            raise ModelFileError("was saved by a psmt whose FramePSMT had sparse codes; fit the model again")
        extrapolation = {"extrapolation": cls._parameter_constraints["extrapolation"]}
        mapping({"parameters": mapping(extrapolation)})("header", header)
        return cls(**header["parameters"]).schema(layouts)

    @classmethod
    def from_stored(cls, header: Header, arrays: State, *, device: str = "cpu") -> Self:
        """Return the model of a file."""
        model = cls(**header["parameters"], device=device)
        model._restore(arrays)
        check_prediction(model.predict)
        return model

    @by_one_thread
    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of all that goes on from frame to frame, as arrays. What follows from it is left out."""
        check_is_fitted(self, "shape_")
        with one_blas_thread():
            while self._rollout is not None:
                self._add_to_record(self._foresight.go_on(self._rollout))
        prior = {} if self._prior is None else {"gram": self._prior.gram, "match": self._prior.match}
        return {
            "levels": np.array([self._low, self._high]),
            "looks_ahead": np.array(int(self._outlook is not None)),
            "since_rollout": np.array(self._since_rollout),
            **self._candidates.get_state(self._scene),
            **{f"prior.{key}": value.copy() for key, value in prior.items()},
            **{f"{name}.{key}": value for name, part in self._parts.items() for key, value in part.get_state().items()},
        }

    def schema(self, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """What the arrays of `get_state` must be, for these parameters and frames as large as the one in `layouts`.

        Fields of a prior are there where there is one.
        """
        check_layouts({"current": FRAME_FIELD}, {"current": layouts["current"]})
        height, width = layouts["current"].shape
        grid, rule = Grid((height, width)), FRAME_EXTRAPOLATIONS[self.extrapolation]
        candidates = Candidates((1, 1), rule.planes)
        names = candidates.names
        has_prior = bool(rule.planes) and any(name.startswith("prior.") for name in layouts)
        prior = under("prior.", Prior.schema(len(names))) if has_prior else {}
        n_experts = 2 + bool(rule.planes) + has_prior
        return {
            "levels": Field((2,)),
            "looks_ahead": flag(),
            "since_rollout": counter(0, SELDOM),
            **Candidates.schema(grid.shape, rule.planes),
            **prior,
            **under("places.", PlaceBlend.schema(grid, len(names))),
            **under("trust.", LocalGain.schema(grid)),
            **under("advice.", Advice((n_experts,)).schema()),
            **under("horizons.", Horizons.schema(grid, len(MEANS))),
            **under("surprise.", CutDetector.schema()),
            **(under("correction.", Correction.schema(grid, candidates.n_seen)) if rule.planes else {}),
        }

    def _check_weights(self) -> None:
        """Raise `ValueError` unless the weights that moments of a file give are of a size that films give."""
        with np.errstate(all="ignore"), one_blas_thread():
            given = {"places": [self._by_place.solved()], "horizons": self._horizons.weights()}
            if self._prior is not None:
                given["prior"] = [self._prior.weights_at(self._scene.age)]
                given["places"] += [self._by_place.solved(self._prior.at(self._scene.age))]
        for name, weights in given.items():
            if not all(float(abs(self._grid.kernels.numpy(one)).max()) < LARGEST_WEIGHT for one in weights):
                raise ValueError(
                    f"{name}.match does not fit {name}.gram: the weights that they give are beyond measure"
                )

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Go on as the model with the same parameters that gave this state, bit for bit."""
        check_parameters(self, self._parameter_constraints)
        check_state(self.schema(state), state)
        self._restore(state)
        return self

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state that was checked against the schema."""
        low, high = state["levels"].tolist()
        if not low <= min(state["current"].min(), state["previous"].min()) <= state["current"].max() <= high:
            raise ValueError(f"levels are {low:g} to {high:g}, but the frames go beyond")
        height, width = state["current"].shape
        rule, prior = FRAME_EXTRAPOLATIONS[self.extrapolation], None
        if "prior.gram" in state:
            names = Candidates((1, 1), rule.planes).names
            prior = self.prior = Prior(names, state["prior.gram"], state["prior.match"])
        self._assemble(Grid((height, width), engine_for(self.device).frames), prior, state["current"])
        for name, part in self._parts.items():
            part.set_state({key: state[f"{name}.{key}"] for key in part.get_state()})
        self._low, self._high = low, high
        self._since_rollout = int(state["since_rollout"])
        self._scene = self._candidates.from_state(state)
        self._check_weights()
        if state["looks_ahead"]:
            with one_blas_thread():
                self._prepare(*self._candidates.look_ahead(self._scene))

    @property
    def _parts(self) -> dict[str, PlaceBlend | LocalGain | Advice | Horizons | CutDetector | Correction]:
        """All that learns, by the names that files know it under."""
        parts: dict[str, PlaceBlend | LocalGain | Advice | Horizons | CutDetector | Correction] = {
            "places": self._by_place,
            "trust": self._local_gain,
            "advice": self._advice,
            "horizons": self._horizons,
            "surprise": self._cut_detector,
        }
        return parts if self._correction is None else parts | {"correction": self._correction}

    # Inside

    def _read_prior(self) -> Prior | None:
        """Return the prior that is asked for, where there is a use for one."""
        rule = FRAME_EXTRAPOLATIONS[self.extrapolation]
        if self.prior is None or not rule.planes:
            return None
        if isinstance(self.prior, Prior):
            prior = self.prior
        else:
            prior = default_prior() if self.prior == "default" else Prior.load(self.prior)
        names = Candidates((1, 1), rule.planes).names
        if prior.names != names:
            other = next((name for name in prior.names if name not in names), "")
            raise ModelFileError(
                f"the prior is of {len(prior.names)} candidates{f', {other!r:.80} among them' if other else ''}, but "
                f"this psmt has {len(names)} of its own; make it again with psmt learn, or use prior='default'"
            )
        return prior

    def _assemble(self, grid: Grid, prior: Prior | None, frame: Levels) -> None:
        """Put the parts together, which have learned nothing yet, before a first frame (height, width)."""
        rule = FRAME_EXTRAPOLATIONS[self.extrapolation]
        self.shape_ = grid.shape
        self._grid, self._share, self._prior = grid, rule.share, prior
        self._low, self._high = float(frame.min()), float(frame.max())
        self._candidates = Candidates(grid.shape, rule.planes, grid.kernels)
        self._by_place = PlaceBlend(grid, len(self._candidates.names))
        self._foresight = Foresight(grid, self._candidates, prior)
        self._local_gain = LocalGain(grid, 0.0 if prior is None else _HEAD_START)
        self._advice = Advice((self._foresight.n_experts,))
        self._correction = Correction(grid, self._candidates.n_seen) if self._candidates.rich else None
        self._horizons = Horizons(grid, len(MEANS))
        self._cut_detector = CutDetector()
        self._since_rollout = 0
        self._rollout: Rollout | None = None
        self._compared = grid.kernels.capture(_compare)
        self.candidate_errors_: dict[str, float] = {}
        self._begin(grid.kernels.levels(frame))

    def _begin(self, frame: Levels) -> None:
        """Start from one frame, on the device: nothing is known of its motion."""
        self._scene = self._candidates.start(frame)
        self._outlook = None
        self._predicted = frame

    def _receive(self, frame: Levels) -> None:
        """Score what was predicted, learn from what came, and look ahead."""
        kernels = self._grid.kernels
        now, last = kernels.levels(frame), self._scene.current
        predicted = self._predicted if self._share is None else self._straight(self._share, 1)[0]
        # All figures at once: on a GPU each question to it takes longer than its answer.
        figures = kernels.numpy(self._compared(now, last, self._scene.previous, predicted)).tolist()
        copy_error, error, last_energy, low, high = figures[2:]
        contrast = max(figures[:2])
        flow, left = None, np.inf
        # Only a frame that is unlike the last one can be a cut, and only then is it worth asking what motion explains.
        if self._candidates.rich and copy_error > self._cut_detector.unlike * contrast:
            flow = self._candidates.flow(last, now)
            left = unexplained(kernels.numpy(last), frame, kernels.numpy(kernels.moved(last, flow)))
        self._cut_detector.observe(error, copy_error, contrast, left)
        self._low, self._high = min(self._low, low), max(self._high, high)
        self.candidate_errors_ = {}
        if self.cut_:
            self._by_place.forget(_KEPT)
            self._local_gain.clear()
            self._advice.clear()
            if self._correction is not None:
                self._correction.clear()
            self._horizons.drop()
            self._rollout = None
            self._begin(now)
            return
        if self._share is not None:
            self._scene = self._candidates.update(self._scene, now, flow)
            return
        # Calm frames count as much as lively ones, or these would still rule long after the motion has stopped. That a
        # frame is calmer than the one before may be a stutter, which says little.
        energy = max(last_energy, copy_error, _FLOOR * contrast)
        # None of these needs another one: learning reads the scene before this frame, and a rollout its own scenes.
        begun = [] if self._rollout is None else [partial(self._foresight.go_on, self._rollout)]
        (self._scene, *seen), *further = kernels.together(
            partial(self._candidates.see, self._scene, now, flow),
            *begun,
            partial(self._learn_and_solve, now, energy, copy_error, contrast, left),
            *(
                []
                if self._correction is None
                else [partial(self._correction.learn, now, energy, error > _WORSE * copy_error)]
            ),
        )
        self._prepare(*seen)
        self._put_on_record(*further[: len(begun)])

    def _learn_and_solve(self, frame: Levels, energy: float, copy_error: float, contrast: float, left: float) -> None:
        """Learn from the frame (height, width) that came, of which motion has `left` so much unexplained."""
        self._learn(frame, energy, copy_error, contrast)
        nobody = min(self.candidate_errors_.values(), default=0.0) > 0.5 * copy_error
        if np.isfinite(left) and self.surprise_ > _JOLT and nobody:
            # No cut, but motion that no candidate foresaw: old merits say little of who will follow it.
            self._advice.clear()
        self._by_place.solve(None if self._prior is None else self._prior.at(self._scene.age + 1))

    def _learn(self, frame: Levels, energy: float, copy_error: float, contrast: float) -> None:
        """Learn from the frame (height, width) that came, before the scene knows of it.

        Its change counts in units of the `energy` that is usual.
        """
        outlook = self._outlook
        self._horizons.learn(frame)
        self._horizons.watch(copy_error)
        if outlook is None or energy == 0:
            return
        change = frame - self._scene.current
        scores = self._foresight.errors(outlook, self._course.gains, change)
        errors = self._grid.kernels.numpy(scores).astype(np.float64)
        moving, experts = np.split(errors, [len(outlook.moving)])
        self.candidate_errors_ = dict(zip(self._candidates.moving_names, moving.tolist(), strict=True))
        # In units of the change that came: when motion stops at once, those who foretold more of it lose at once.
        # Where a black frame follows a black one, all that foretold any have lost.
        self._advice.learn(experts / max(copy_error, _FLOOR * contrast, _LEAST))
        unit = energy**-0.5
        self._local_gain.learn(unit * outlook.experts[0], unit * change)
        self._by_place.learn(outlook.candidates, change, 1 / energy)

    def _prepare(self, moving: Levels, candidates: Levels) -> None:
        """Weigh what the scene may turn into, as `Candidates.look_ahead` gives it."""
        own = self._grid.kernels.levels
        shares, limits = own(self._advice.weights()), own([self._low, self._high])
        self._course = Course(self._by_place.weights, self._local_gain.gains(), shares, limits)
        works: list[Callable[[], Any]] = [partial(self._foresight.begin, self._scene, moving, candidates, self._course)]
        network = self._correction if self.correction else None
        if network is not None:
            # It is trained for the frame after the next, beside the prediction of the next.
            works += [network.train, partial(network.look, self._scene.current, moving, limits)]
        elif self._correction is not None:
            self._correction.rest()
        (self._outlook, begun), *_ = self._grid.kernels.together(*works)
        self._predicted = begun.frame
        if network is not None:
            self._predicted = network.corrected(self._scene.current, candidates, begun.frame, limits)

    def _put_on_record(self, further: Rollout | None = None) -> None:
        """Every so often begin a rollout whose errors will be known, or take it a step `further`.

        It is a frame ahead of what comes.
        """
        if further is not None:
            self._add_to_record(further)
        self._since_rollout = min(self._since_rollout + 1, SELDOM)
        if self.rollouts and self._since_rollout >= self._horizons.every:
            self._since_rollout = 0
            self._horizons.begin(self._predicted, self._scene.current, self._scene.means)
            self._rollout = Rollout(self._predicted, self._scene, self._course.gains, self._course)

    def _add_to_record(self, rollout: Rollout) -> None:
        """Take the rollout on record for as far as it has come, and leave it at its end."""
        self._rollout = None if self._horizons.add(rollout.frame) else rollout


def _compare(frame: Levels, last: Levels, previous: Levels, predicted: Levels) -> Levels:
    """Contrasts of the last frame and this one, errors of copying and the prediction, the last change, the range."""
    contrasts = (mean_square(shown - shown.mean()) for shown in (last, frame))
    energies = (mean_square(one - other) for one, other in ((frame, last), (frame, predicted), (last, previous)))
    return array_namespace(frame).stack([*contrasts, *energies, frame.min(), frame.max()])
