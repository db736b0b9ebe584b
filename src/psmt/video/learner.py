"""The loop behind `FramePredictor`: predict the next frame, compare it with the true one, and learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from psmt.changes import CutDetector
from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import Field, Layout, State, Stateful, check_layouts, counter, flag, joined, restore, under
from psmt.types import Levels
from psmt.utils.threads import one_blas_thread
from psmt.video.candidates import MEANS, Candidates, Planes, Scene, mean_square
from psmt.video.cells import LARGEST_WEIGHT, CellBlend, CellGain, Grid
from psmt.video.chroma import ChromaFollower
from psmt.video.correction import Correction, Form, stored_form, usual_form
from psmt.video.experts import ExpertMixture, ExpertWeights, LearnedWeights, Proposals, RolloutStep
from psmt.video.frames import join_colour, split
from psmt.video.prior import Prior
from psmt.video.rollouts import SELDOM, RolloutRecord
from psmt.video.state import FRAME_FIELD, undo

_KEPT = 0.1  # factor by which a cut discounts the moments of candidates
_FLOOR = 1e-6  # smallest energy that changes are divided by, relative to the variance over the picture
_LEAST = 1e-200  # smallest safe divisor
_JOLT = 6.0  # surprise above which motion that no candidate predicted clears the record of the experts
_WORSE = 2.0  # a prediction has failed if its error exceeds this multiple of copying's error: motion has stopped
_HEAD_START = 1.0  # number of perfect predictions that the gain starts with where there is a prior
_UNEXPLAINED = (0.5, 0.65)  # unexplained shares of a change at which trust begins to fall, and at which it is lowest
_FAINT = (1e-3, 2e-3)  # energies of a change, relative to the variance over the picture: an encoder may have made it
_ROUNDING = 1e-4  # the same for a change that rounding to 8 bits may have made
_YOUNG = 4  # changes after which rounding is no longer a reason for doubt
_DOUBT = 0.75  # share of the predicted change that is left out where trust is lowest
_STUTTER = 0.1  # energy of a change, relative to the next one, below which it was not motion
_FARTHEST = 0.5  # largest pan that is distinguished from a cut, relative to the size of the picture


class Rule(NamedTuple):
    """Definition of an extrapolation of `FramePredictor`, that is, of how it predicts the next change."""

    planes: Planes = ()
    share: float | None = None  # multiple of the last change that is predicted; None where it is learned


class FrameLearner:
    """Predicts frames and learns from the true ones. It starts with a first frame, and does not check its input.

    Frames are (height, width), or in colour (height, width, 3). Learning uses the luma of colour frames. The prior, if
    given, must have the same candidates as the rule. The kernels of the grid determine the device. If `form` is None,
    they also determine the form of the correction network.
    """

    candidate_errors: dict[str, float]  # mean squared error of each moving candidate; empty after a cut
    _scene: Scene
    _proposals: Proposals | None  # None where nothing is learned, and after the first frame of a scene

    def __init__(self, rule: Rule, prior: Prior | None, grid: Grid, frame: Levels, form: Form | None = None) -> None:
        self.grid, self._share, self.prior = grid, rule.share, prior
        frame, chroma = split(frame)
        self._low, self._high = float(frame.min()), float(frame.max())
        self._candidates = Candidates(grid.shape, rule.planes, grid.kernels)
        self._blend = CellBlend(grid, len(self._candidates.names))
        self._mixture = ExpertMixture(grid, self._candidates, prior)
        self._gain = CellGain(grid, 0.0 if prior is None else _HEAD_START)
        self._experts = ExpertWeights(grid.kernels, _experts_shape(rule, prior is not None))
        self.correction: Correction | None = None
        if self._candidates.rich:
            compared = (1, self._candidates.moving_names.index("flow"))
            n_changes = self._candidates.n_network_inputs
            self.correction = Correction(grid, n_changes, compared, form or usual_form(grid.kernels))
        self.record = RolloutRecord(grid, len(MEANS))
        self.cut_detector = CutDetector()
        self._since_rollout = 0
        # The rollout that is being recorded is one frame ahead of the film.
        self.rollout: RolloutStep | None = None
        self._compared = grid.kernels.capture(_compare)
        self.candidate_errors = {}
        self.chroma = None if chroma is None else ChromaFollower(grid, self._candidates, chroma)
        self._begin(grid.kernels.levels(frame))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the frames, (height, width) or (height, width, 3)."""
        return self.grid.shape if self.chroma is None else (*self.grid.shape, 3)

    def _begin(self, frame: Levels) -> None:
        """Start a new scene with the luma (height, width) of its first frame, which is already on the device."""
        self._scene = self._candidates.start(frame)
        self._proposals = None
        self._predicted = frame

    # Predict

    def predict(self, n_steps: int) -> list[Levels]:
        """Return the next `n_steps` frames. Frames after the first are predicted from the predictions before them."""
        chroma: list[Levels] = []
        with one_blas_thread():
            steps = self._roll_out(n_steps)
            if self._share is not None:
                frames = self._straight(self._share, n_steps)
            else:
                rolled = [step.frame for step in steps] or [self._predicted] * n_steps
                mixed = self.record.mixed(rolled, self._scene.current, self._scene.means)
                frames = [frame.clip(self._low, self._high) for frame in mixed]
            if self.chroma is not None:
                chroma = self.chroma.predict(steps, self.record) or [self.chroma.current] * n_steps
        if chroma:
            frames = [join_colour(frame, own) for frame, own in zip(frames, chroma, strict=True)]
        return [self.grid.kernels.numpy(frame) for frame in frames]

    def snapshot(self) -> Self:
        """Return a copy whose predictions stay the same while this object learns on."""
        # Only the record of rollouts is modified in place; everything else that a prediction uses is replaced.
        known = copy(self)
        known.record, known.chroma = deepcopy(self.record), copy(self.chroma)
        return known

    def _straight(self, share: float, n_steps: int) -> list[Levels]:
        """Return the next frames by linear extrapolation: in each step, `share` times the last change is added."""
        step = share * (self._scene.current - self._scene.previous)
        return [self._scene.current + k * step for k in range(1, n_steps + 1)]

    def _roll_out(self, n_steps: int) -> list[RolloutStep]:
        """Return `n_steps` steps of a rollout, or none if the scene has just begun or nothing is learned."""
        if self._proposals is None:
            return []
        steps = [self._first_step()]
        while len(steps) < n_steps:
            steps.append(self._mixture.continue_rollout(steps[-1]))
        return steps

    def _first_step(self) -> RolloutStep:
        return RolloutStep(self._predicted, self._scene, self._learned.gains, self._learned)

    # Receive and learn

    def undo(self) -> Callable[[], None]:
        """Return a function that undoes the next call of `receive`, even if this call was interrupted."""
        return undo(self, self._parts.values())

    def receive(self, frame: Levels, *, rollouts: bool, correct: bool) -> None:
        """Score the prediction, learn from the true frame, and predict the next one.

        `rollouts` and `correct` are the parameters `rollouts` and `correction` of `FramePredictor`.
        """
        kernels = self.grid.kernels
        (now, chroma), last = split(kernels.levels(frame)), self._scene.current
        predicted = self._predicted if self._share is None else self._straight(self._share, 1)[0]
        # All figures in one array: on a GPU each transfer takes longer than the computation.
        figures = kernels.numpy(self._compared(now, last, self._scene.previous, predicted)).tolist()
        copy_error, error, last_energy, low, high = figures[2:]
        contrast = max(figures[:2])
        flow, left = None, np.inf
        # Only a frame that is unlike the last one can be a cut. Only then is the error of motion compensation computed.
        if self._candidates.rich and copy_error > self.cut_detector.unlike * contrast:
            flow = self._candidates.flow(last, now)
            left = unexplained_error(*(kernels.numpy(one) for one in (last, now, kernels.moved(last, flow))))
        self.cut_detector.observe(error, copy_error, contrast, left)
        self._low, self._high = min(self._low, low), max(self._high, high)
        self.candidate_errors = {}
        if self.cut_detector.cut:
            self._blend.discount(_KEPT)
            self._gain.clear()
            self._experts.clear()
            if self.correction is not None:
                self.correction.clear()
            self.record.drop()
            self.rollout = None
            self._begin(now)
            if self.chroma is not None and chroma is not None:
                self.chroma.begin(chroma)
            return
        if self._share is not None:
            self._scene = self._candidates.update(self._scene, now, flow)
            self._follow(chroma)
            return
        # Changes are divided by their energy, so that calm frames weigh as much as lively ones: otherwise lively ones
        # would dominate long after the motion has stopped. A single calm frame may be a stutter, hence the maximum.
        energy = max(last_energy, copy_error, _FLOOR * contrast)
        # These are independent: learning reads the scene before this frame, and a rollout has scenes of its own.
        works: list[Callable[[], Any]] = [partial(self._candidates.see, self._scene, now, flow)]
        if self.rollout is not None:
            works.append(partial(self._mixture.continue_rollout, self.rollout))
        works.append(partial(self._learn, now, energy, copy_error, contrast, left))
        if self.correction is not None:
            works.append(partial(self.correction.learn, now, energy, error > _WORSE * copy_error))
        (self._scene, *seen), *others = kernels.together(*works)
        self._look_ahead(*seen, correct=correct)
        self._follow(chroma)
        if self.rollout is not None:
            self.rollout = None if self.record.add(others[0].frame) else others[0]
        self._start_rollout(rollouts)

    def _learn(self, frame: Levels, energy: float, copy_error: float, contrast: float, left: float) -> None:
        """Learn from the true frame (height, width), before the scene is updated.

        Changes are divided by the root of `energy`. `copy_error` is the mean squared change. `contrast` is the variance
        over the picture. `left` is the error of motion compensation, or infinity if it was not computed.
        """
        proposals = self._proposals
        self.record.learn(frame)
        self.record.add_energy(copy_error)
        if proposals is not None and energy:
            change = frame - self._scene.current
            scores = self._mixture.errors(proposals.moving, proposals.experts, self._learned.gains, change)
            errors = self.grid.kernels.numpy(scores).astype(np.float64)
            moving, experts = np.split(errors, [len(proposals.moving)])
            self.candidate_errors = dict(zip(self._candidates.moving_names, moving.tolist(), strict=True))
            # Relative to the true change: when motion stops, experts that predicted motion lose weight at once.
            self._experts.learn(experts / max(copy_error, _FLOOR * contrast, _LEAST))
            unit = energy**-0.5
            self._gain.learn(unit * proposals.experts[0], unit * change)
            self._blend.learn(proposals.candidates, change, 1 / energy)
        none_is_good = min(self.candidate_errors.values(), default=0.0) > 0.5 * copy_error
        if np.isfinite(left) and self.cut_detector.surprise > _JOLT and none_is_good:
            # No candidate predicted this motion, so the past losses of the experts say nothing about it.
            self._experts.clear()
        self._blend.solve(None if self.prior is None else self.prior.at(self._scene.age + 1))

    def _follow(self, chroma: Levels | None) -> None:
        """Learn from the true chroma (2, height, width) of the frame whose luma has just been learned."""
        if self.chroma is not None and chroma is not None:
            self.chroma.receive(chroma, self._scene.flows[0])
            self._look_ahead_in_colour()

    def _look_ahead_in_colour(self) -> None:
        if self.chroma is not None and self._proposals is not None:
            self.chroma.look_ahead(self._first_step(), self._blend, self.prior)

    def _look_ahead(self, moving: Levels, candidates: Levels, *, correct: bool) -> None:
        """Predict the next frame, given the two arrays that `Candidates.look_ahead` returns for the present scene."""
        levels = self.grid.kernels.levels
        shares, limits = levels(self._experts.weights()), levels([self._low, self._high])
        self._learned = LearnedWeights(self._blend.weights, self._gain.gains(), shares, limits)
        predict = partial(self._mixture.predict, self._scene, moving, candidates, self._learned)
        works: list[Callable[[], Any]] = [predict]
        network = self.correction if correct else None
        if network is not None:
            # Training runs beside the prediction; its result is used for the frame after the next.
            works += [network.train, partial(network.prepare, self._scene.current, moving, limits)]
        elif self.correction is not None:
            self.correction.pause()
        (self._proposals, step), *_ = self.grid.kernels.together(*works)
        self._predicted = step.frame
        if network is not None:
            self._predicted = network.corrected(self._scene.current, candidates, step.frame, limits)
        trust = self._trust()
        if trust < 1:
            self._predicted = self._scene.current + trust * (self._predicted - self._scene.current)

    def _trust(self) -> float:
        """Return a factor in [0, 1] for the predicted change. It is below 1 only in the first frames of a scene.

        After one change, it is below 1 in two cases. Either motion does not explain the change, which may then be
        noise. Or the change is faint, because encoders turn slow motion into jerks. After two changes, the factor is 0
        if the first was far smaller than the second, because the film then stutters or shows every frame twice.
        After the first few changes, it is 0 if the last one was as small as rounding errors.
        """
        scene, kernels = self._scene, self.grid.kernels
        if not self._candidates.rich or not 0 < scene.age <= _YOUNG:
            return 1.0
        last, contrast = (
            float(mean_square(one)) for one in (scene.current - scene.previous, scene.current - scene.current.mean())
        )
        if last < _ROUNDING * contrast:
            return 0.0
        if scene.age == 1:
            left = float(mean_square(kernels.moved(scene.previous, scene.flows[0]) - scene.current))
            lively = np.interp(last / max(contrast, _LEAST), _FAINT, (0, 1))
            unexplained = np.interp(left / max(last, _LEAST), _UNEXPLAINED, (0, 1))
            return float(1 - _DOUBT * max(1 - lively, unexplained))
        if scene.age == 2:
            # The first change is four times this difference.
            first = float(mean_square(4 * (scene.means[0] - 0.5 * (scene.current + scene.previous))))
            return float(first >= _STUTTER * last)
        return 1.0

    def _start_rollout(self, wanted: bool) -> None:
        """If `wanted` is True and the last rollout started long enough ago, start a rollout to be scored."""
        self._since_rollout = min(self._since_rollout + 1, SELDOM)
        if wanted and self._since_rollout >= self.record.every:
            self._since_rollout = 0
            self.record.begin(self._predicted, self._scene.current, self._scene.means)
            self.rollout = self._first_step()

    # State

    @property
    def _parts(self) -> dict[str, Stateful]:
        """Return all objects with a learned state, by the prefix of their arrays in a file."""
        parts: dict[str, Stateful] = {
            "places.": self._blend,
            "trust.": self._gain,
            "advice.": self._experts,
            "horizons.": self.record,
            "surprise.": self.cut_detector,
        }
        parts |= {} if self.correction is None else {"correction.": self.correction}
        return parts | ({} if self.chroma is None else {"chroma.": self.chroma})

    @staticmethod
    def schema(rule: Rule, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Return the schema of the saved state: the shape, type and range of each array.

        `layouts` are the shapes and types of the arrays in a file. Those of `current` give the size of the frames. The
        schema includes a prior and chroma if the file has them.
        """
        check_layouts({"current": FRAME_FIELD}, {"current": layouts["current"]})
        height, width = layouts["current"].shape
        grid, candidates = Grid((height, width)), Candidates((1, 1), rule.planes)
        n, has_prior = len(candidates.names), bool(rule.planes) and any(name.startswith("prior.") for name in layouts)
        correction = Correction.schema(grid, candidates.n_network_inputs, stored_form(layouts))
        return {
            "levels": Field((2,)),
            "looks_ahead": flag(),
            "since_rollout": counter(0, SELDOM),
            **Candidates.schema(grid.shape, rule.planes),
            **(under("prior.", Prior.schema(n)) if has_prior else {}),
            **under("places.", CellBlend.schema(grid, n)),
            **under("trust.", CellGain.schema(grid)),
            **under("advice.", ExpertWeights.schema(_experts_shape(rule, has_prior))),
            **under("horizons.", RolloutRecord.schema(grid, len(MEANS))),
            **under("surprise.", CutDetector.schema()),
            **(under("correction.", correction) if rule.planes else {}),
            **(under("chroma.", ChromaFollower.schema(grid)) if "chroma.current" in layouts else {}),
        }

    def get_state(self) -> State:
        """Return copies of the arrays from which `from_state` restores this object."""
        record, rollout = deepcopy(self.record), self.rollout
        with one_blas_thread():
            while rollout is not None:
                rollout = self._mixture.continue_rollout(rollout)
                rollout = None if record.add(rollout.frame) else rollout
        prior = {} if self.prior is None else {"gram": self.prior.gram, "match": self.prior.match}
        return {
            "levels": np.array([self._low, self._high]),
            "looks_ahead": np.array(int(self._proposals is not None)),
            "since_rollout": np.array(self._since_rollout),
            **self._candidates.get_state(self._scene),
            **{f"prior.{key}": value.copy() for key, value in prior.items()},
            **joined(self._parts | {"horizons.": record}),
        }

    @classmethod
    def from_state(cls, rule: Rule, kernels: FrameKernels, state: Mapping[str, NDArray[Any]], *, correct: bool) -> Self:
        """Return a learner restored from the arrays of `get_state`. It continues with the same results, bit for bit.

        The caller must have checked the state against the schema.
        """
        low, high = state["levels"].tolist()
        if not low <= min(state["current"].min(), state["previous"].min()) <= state["current"].max() <= high:
            raise ValueError(f"levels are {low:g} to {high:g}, but the frames have levels outside this range")
        prior = None
        if "prior.gram" in state:
            prior = Prior(Candidates((1, 1), rule.planes).names, state["prior.gram"], state["prior.match"])
        height, width = state["current"].shape
        first = state["current"]
        if "chroma.current" in state:
            first = join_colour(first, state["chroma.current"])
        learner = cls(rule, prior, Grid((height, width), kernels), first, stored_form(state))
        restore(learner._parts, state)
        learner._low, learner._high = low, high
        learner._since_rollout = int(state["since_rollout"])
        learner._scene = learner._candidates.from_state(state)
        learner._check_weights()
        if state["looks_ahead"]:
            with one_blas_thread():
                learner._look_ahead(*learner._candidates.look_ahead(learner._scene), correct=correct)
                learner._look_ahead_in_colour()
        return learner

    @np.errstate(all="ignore")
    def _check_weights(self) -> None:
        """Raise `ValueError` if weights that follow from the moments in a file are too large."""
        with one_blas_thread():
            given = {"places": [self._blend.solved()], "horizons": self.record.weights()}
            if self.prior is not None:
                given["prior"] = [self.prior.weights_at(self._scene.age)]
                given["places"] += [self._blend.solved(self.prior.at(self._scene.age))]
        for name, weights in given.items():
            if not all(float(abs(self.grid.kernels.numpy(one)).max()) < LARGEST_WEIGHT for one in weights):
                raise ValueError(
                    f"{name}.match does not fit {name}.gram: a weight would be larger than {LARGEST_WEIGHT:g}"
                )


def _experts_shape(rule: Rule, has_prior: bool) -> tuple[int]:
    """Return (n_experts,). Experts are the blend, copying and, where available, optical flow and the prior's blend."""
    return (2 + bool(rule.planes) + has_prior,)


def _compare(frame: Levels, last: Levels, previous: Levels, predicted: Levels) -> Levels:
    """Return seven numbers (7,) about a frame and its prediction.

    They are the variances of the last frame and of this one; the mean squared errors of copying and of the prediction;
    the energy (mean square) of the previous change; and the lowest and highest level of this frame.
    """
    contrasts = (mean_square(shown - shown.mean()) for shown in (last, frame))
    energies = (mean_square(one - other) for one, other in ((frame, last), (frame, predicted), (last, previous)))
    return array_namespace(frame).stack([*contrasts, *energies, frame.min(), frame.max()])


def unexplained_error(last: Levels, frame: Levels, moved: Levels) -> float:
    """Return the smaller of two mean squared errors: that of optical flow and that of a pan of the whole picture.

    `moved` is the last frame, warped along the flow. Motion explains most of a change, however fast it is, but little
    of a cut. A pan is scored only where both frames overlap, so that new content at the edge does not count.
    """
    return min(float(np.mean((moved - frame) ** 2)), _pan_error(last, frame))


def _pan_error(last: Levels, frame: Levels) -> float:
    """Return the mean squared error of the best shift of the whole picture, found by phase correlation.

    Only the area in which both frames overlap is scored.
    """
    windows = [np.hanning(length + 2)[1:-1] for length in frame.shape]
    spectra = [np.fft.rfft2((one - one.mean()) * np.outer(*windows)) for one in (last, frame)]
    cross = spectra[1] * spectra[0].conj()
    peaks = np.fft.irfft2(cross / (np.abs(cross) + 1e-12 * np.abs(cross).max() + 1e-30), s=frame.shape)
    here, there = [], []
    for k, n in zip(np.unravel_index(peaks.argmax(), peaks.shape), frame.shape, strict=True):
        shift = int(k) - n * (k > n // 2)
        if abs(shift) / n > _FARTHEST:
            return np.inf
        here.append(slice(max(shift, 0), n + min(shift, 0)))
        there.append(slice(max(-shift, 0), n + min(-shift, 0)))
    return float(np.mean((frame[*here] - last[*there]) ** 2))
