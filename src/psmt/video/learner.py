"""The loop behind `FramePSMT`: predict the next frame, compare it with the true one, learn, and save the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import Field, Layout, State, Stateful, check_layouts, counter, flag, under
from psmt.surprise import CutDetector
from psmt.types import Levels
from psmt.utils.threads import one_blas_thread
from psmt.video.candidates import MEANS, Candidates, Planes, Scene, mean_square
from psmt.video.cells import LARGEST_WEIGHT, CellBlend, CellGain, Grid
from psmt.video.correction import Correction
from psmt.video.experts import ExpertMixture, ExpertWeights, LearnedWeights, Proposals, RolloutStep
from psmt.video.prior import Prior
from psmt.video.rollouts import SELDOM, RolloutRecord
from psmt.video.state import FRAME_FIELD, joined, restore

_KEPT = 0.1  # factor by which a cut discounts the moments of candidates
_FLOOR = 1e-6  # smallest energy of a change that others are divided by, relative to the variance over the picture
_LEAST = 1e-200  # smallest safe divisor
_JOLT = 6.0  # surprise above which motion that no candidate predicted clears the record of the experts
_WORSE = 2.0  # a prediction failed if its error is larger than this multiple of that of copying: motion has stopped
_HEAD_START = 1.0  # number of perfect predictions that the gain starts with where there is a prior
_FARTHEST = 0.5  # largest pan that is distinguished from a cut, relative to the size of the picture


class Rule(NamedTuple):
    """What an extrapolation uses besides the last change."""

    planes: Planes = ()
    share: float | None = None  # multiple of the last change that is predicted; None where it is learned


class FrameLearner:
    """Predicts, receives and learns from frames that have been checked already, from a first frame (height, width) on.

    The prior must be that of the rule's candidates. The kernels of the grid are those of the device.
    """

    candidate_errors: dict[str, float]  # mean squared error of each moving candidate; empty after a cut
    _scene: Scene
    _proposals: Proposals | None  # None where nothing is learned, and after the first frame of a scene

    def __init__(self, rule: Rule, prior: Prior | None, grid: Grid, frame: Levels) -> None:
        self.grid, self._share, self.prior = grid, rule.share, prior
        self._low, self._high = float(frame.min()), float(frame.max())
        self._candidates = Candidates(grid.shape, rule.planes, grid.kernels)
        self._blend = CellBlend(grid, len(self._candidates.names))
        self._mixture = ExpertMixture(grid, self._candidates, prior)
        self._gain = CellGain(grid, 0.0 if prior is None else _HEAD_START)
        self._experts = ExpertWeights(grid.kernels, _experts_shape(rule, prior is not None))
        self.correction: Correction | None = None
        if self._candidates.rich:
            compared = (1, self._candidates.moving_names.index("flow"))
            self.correction = Correction(grid, self._candidates.n_network_inputs, compared)
        self.record = RolloutRecord(grid, len(MEANS))
        self.cut_detector = CutDetector()
        self._since_rollout = 0
        # The rollout that is being recorded is one frame ahead of the film.
        self.rollout: RolloutStep | None = None
        self._compared = grid.kernels.capture(_compare)
        self.candidate_errors = {}
        self._begin(grid.kernels.levels(frame))

    def _begin(self, frame: Levels) -> None:
        """Start a scene from one frame, on the device."""
        self._scene = self._candidates.start(frame)
        self._proposals = None
        self._predicted = frame

    # Predict

    def predict(self, n_steps: int) -> list[Levels]:
        """Return the next frames (height, width), each predicted from those before it."""
        if self._share is not None:
            frames = self._straight(self._share, n_steps)
        else:
            with one_blas_thread():
                mixed = self.record.mixed(self._roll_out(n_steps), self._scene.current, self._scene.means)
            frames = [frame.clip(self._low, self._high) for frame in mixed]
        return [self.grid.kernels.numpy(frame) for frame in frames]

    def snapshot(self) -> Self:
        """Return a copy that predicts the same, whatever is learned meanwhile."""
        # Only the record of rollouts is modified in place; everything else that a prediction uses is replaced.
        known = copy(self)
        known.record = deepcopy(self.record)
        return known

    def _straight(self, share: float, n_steps: int) -> list[Levels]:
        """Return the next frames if each differs from the one before by the same share of the last change."""
        step = share * (self._scene.current - self._scene.previous)
        return [self._scene.current + k * step for k in range(1, n_steps + 1)]

    def _roll_out(self, n_steps: int) -> list[Levels]:
        if self._proposals is None:
            return [self._predicted] * n_steps
        step = self._first_step()
        frames = [step.frame]
        while len(frames) < n_steps:
            step = self._mixture.continue_rollout(step)
            frames.append(step.frame)
        return frames

    def _first_step(self) -> RolloutStep:
        return RolloutStep(self._predicted, self._scene, self._learned.gains, self._learned)

    # Receive and learn

    def receive(self, frame: Levels, *, rollouts: bool, correct: bool) -> None:
        """Score the prediction, learn from the true frame (height, width), and predict the next one.

        `rollouts` and `correct` are parameters of `FramePSMT`.
        """
        kernels = self.grid.kernels
        now, last = kernels.levels(frame), self._scene.current
        predicted = self._predicted if self._share is None else self._straight(self._share, 1)[0]
        # All figures in one array: on a GPU each transfer takes longer than the computation.
        figures = kernels.numpy(self._compared(now, last, self._scene.previous, predicted)).tolist()
        copy_error, error, last_energy, low, high = figures[2:]
        contrast = max(figures[:2])
        flow, left = None, np.inf
        # Only a frame that is unlike the last one can be a cut; only then the part that motion explains is computed.
        if self._candidates.rich and copy_error > self.cut_detector.unlike * contrast:
            flow = self._candidates.flow(last, now)
            left = unexplained_error(kernels.numpy(last), frame, kernels.numpy(kernels.moved(last, flow)))
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
            return
        if self._share is not None:
            self._scene = self._candidates.update(self._scene, now, flow)
            return
        # Changes are divided by their energy, so that calm frames weigh as much as lively ones: otherwise lively ones
        # would dominate long after the motion has stopped. The maximum, as a single calm frame may be a stutter.
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
        if self.rollout is not None:
            self._add_to_record(others[0])
        self._start_rollout(rollouts)

    def _learn(self, frame: Levels, energy: float, copy_error: float, contrast: float, left: float) -> None:
        """Learn from the frame (height, width), before the scene is updated.

        Changes are in units of the usual `energy`. Motion has `left` an error of this size unexplained.
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
            # Not a cut, but motion that no candidate predicted: the record of the experts does not apply to it.
            self._experts.clear()
        self._blend.solve(None if self.prior is None else self.prior.at(self._scene.age + 1))

    def _look_ahead(self, moving: Levels, candidates: Levels, *, correct: bool) -> None:
        """Predict the next frame from the scene and its candidates, as `Candidates.look_ahead` returns them."""
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

    def _start_rollout(self, wanted: bool) -> None:
        """Start to record a rollout if enough frames have passed since the last start."""
        self._since_rollout = min(self._since_rollout + 1, SELDOM)
        if wanted and self._since_rollout >= self.record.every:
            self._since_rollout = 0
            self.record.begin(self._predicted, self._scene.current, self._scene.means)
            self.rollout = self._first_step()

    def _add_to_record(self, step: RolloutStep) -> None:
        self.rollout = None if self.record.add(step.frame) else step

    # State

    @property
    def _parts(self) -> dict[str, Stateful]:
        """Everything that learns, by the prefix of its arrays in a file."""
        parts: dict[str, Stateful] = {
            "places.": self._blend,
            "trust.": self._gain,
            "advice.": self._experts,
            "horizons.": self.record,
            "surprise.": self.cut_detector,
        }
        return parts if self.correction is None else parts | {"correction.": self.correction}

    @staticmethod
    def schema(rule: Rule, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Declare the state, for frames of the size of `current` in the layouts, and with a prior if they have one."""
        check_layouts({"current": FRAME_FIELD}, {"current": layouts["current"]})
        height, width = layouts["current"].shape
        grid, candidates = Grid((height, width)), Candidates((1, 1), rule.planes)
        n, has_prior = len(candidates.names), bool(rule.planes) and any(name.startswith("prior.") for name in layouts)
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
            **(under("correction.", Correction.schema(grid, candidates.n_network_inputs)) if rule.planes else {}),
        }

    def get_state(self) -> State:
        """Return copies of all that changes from frame to frame, without what can be computed from it."""
        with one_blas_thread():
            while self.rollout is not None:
                self._add_to_record(self._mixture.continue_rollout(self.rollout))
        prior = {} if self.prior is None else {"gram": self.prior.gram, "match": self.prior.match}
        return {
            "levels": np.array([self._low, self._high]),
            "looks_ahead": np.array(int(self._proposals is not None)),
            "since_rollout": np.array(self._since_rollout),
            **self._candidates.get_state(self._scene),
            **{f"prior.{key}": value.copy() for key, value in prior.items()},
            **joined(self._parts),
        }

    @classmethod
    def from_state(cls, rule: Rule, kernels: FrameKernels, state: Mapping[str, NDArray[Any]], *, correct: bool) -> Self:
        """Return a learner that continues from a state that was checked against the schema, bit for bit."""
        low, high = state["levels"].tolist()
        if not low <= min(state["current"].min(), state["previous"].min()) <= state["current"].max() <= high:
            raise ValueError(f"levels are {low:g} to {high:g}, but the frames go beyond")
        prior = None
        if "prior.gram" in state:
            prior = Prior(Candidates((1, 1), rule.planes).names, state["prior.gram"], state["prior.match"])
        height, width = state["current"].shape
        learner = cls(rule, prior, Grid((height, width), kernels), state["current"])
        restore(learner._parts, state)
        learner._low, learner._high = low, high
        learner._since_rollout = int(state["since_rollout"])
        learner._scene = learner._candidates.from_state(state)
        learner._check_weights()
        if state["looks_ahead"]:
            with one_blas_thread():
                learner._look_ahead(*learner._candidates.look_ahead(learner._scene), correct=correct)
        return learner

    def _check_weights(self) -> None:
        """Raise `ValueError` unless the weights that follow from the moments of a file are in range."""
        with np.errstate(all="ignore"), one_blas_thread():
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
    """Number of experts: the blend, copying, and where there are any, optical flow and the prior's blend."""
    return (2 + bool(rule.planes) + has_prior,)


def _compare(frame: Levels, last: Levels, previous: Levels, predicted: Levels) -> Levels:
    """Contrasts of the last frame and this one, errors of copying and the prediction, the last change, the range."""
    contrasts = (mean_square(shown - shown.mean()) for shown in (last, frame))
    energies = (mean_square(one - other) for one, other in ((frame, last), (frame, predicted), (last, previous)))
    return array_namespace(frame).stack([*contrasts, *energies, frame.min(), frame.max()])


def unexplained_error(last: Levels, frame: Levels, moved: Levels) -> float:
    """Mean squared error of a frame (height, width) explained as the last one `moved` along a flow, or panned.

    Motion leaves a small part of the change, however fast it is; a cut leaves most of it. A pan of the whole picture is
    scored where both frames overlap, so that what comes in at the edge does not count.
    """
    return min(float(np.mean((moved - frame) ** 2)), _pan_error(last, frame))


def _pan_error(last: Levels, frame: Levels) -> float:
    """Mean squared error of the best shift of the whole picture, by phase correlation, where both frames overlap."""
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
