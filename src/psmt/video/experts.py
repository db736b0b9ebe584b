"""Experts: several predictions of the next change, averaged with weights that depend on their recent errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import EllipsisType
from typing import NamedTuple

import numpy as np

from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import Field, faded
from psmt.types import Array, Levels
from psmt.video.candidates import Candidates, Scene, mean_square
from psmt.video.cells import Grid
from psmt.video.prior import Prior
from psmt.video.state import DeclaredState


class ExpertWeights(DeclaredState):
    """Weights of experts by the exponentially weighted average forecaster (Vovk; Littlestone and Warmuth).

    The squared error of an average of predictions is at most the average of their squared errors. So the average is
    never much worse than the best expert of the last few frames.

    The `shape` of the weights is (..., n_experts). They sum to 1 over the last axis. Past losses fade to 1/e after
    `memory` frames. The larger the `rate`, the smaller is the weight of experts with large losses.
    """

    _CAP = 6.0  # largest loss of one frame: it can still change the order of experts, but fades in a few frames

    losses: Array

    def __init__(
        self, kernels: FrameKernels, shape: tuple[int, ...], *, memory: float = 4.0, rate: float = 12.0
    ) -> None:
        super().__init__(kernels, self.schema(shape, memory=memory))
        self._memory, self._rate = memory, rate

    @classmethod
    def schema(cls, shape: tuple[int, ...], *, memory: float = 4.0) -> dict[str, Field]:
        """Return the schema of the saved state: the shape, type and range of each array."""
        return {"losses": Field(shape, low=0.0, high=faded(memory, cls._CAP))}

    def weights(self) -> Array:
        """Return the weights (..., n_experts), which sum to 1 over the last axis."""
        weights = np.exp(-self._rate * (self.losses - self.losses.min(axis=-1, keepdims=True)))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def learn(self, losses: Array, index: int | EllipsisType = ...) -> None:
        """Discount the losses at `index` and add the errors (n_experts,) of one frame, in units of a usual error."""
        fading = float(np.exp(-1.0 / self._memory))
        self.losses = self.losses.copy()
        self.losses[index] = fading * self.losses[index] + np.minimum(losses, self._CAP)

    def clear(self) -> None:
        """Set all losses to zero."""
        self.losses = np.zeros_like(self.losses)


class Proposals(NamedTuple):
    """All predictions of the change to the next frame, as arrays (n, height, width).

    The experts are: the blend of candidates (before its gain), copying, optical flow, and the blend with the weights of
    the prior.
    """

    moving: Levels  # complete predictions, before they are split into bands
    candidates: Levels  # combined with weights by cell
    experts: Levels  # combined with weights of the whole frame


class LearnedWeights(NamedTuple):
    """Everything learned that a prediction uses. Learning replaces these arrays and never modifies them."""

    candidates: Levels  # weights by cell (rows, columns, n_candidates)
    gains: Levels  # of the blend (rows, columns, 1)
    experts: Levels  # weights (n_experts,)
    limits: Levels  # lowest and highest level (2,) seen so far


class RolloutStep(NamedTuple):
    """One step of a rollout. In a rollout, each frame is predicted from the predicted frames before it."""

    frame: Levels
    scene: Scene  # the state that the frame was predicted from
    gains: Levels  # product of the blend's gains over all steps so far (rows, columns, 1)
    learned: LearnedWeights


class ExpertMixture:
    """Predicts the next frame, and the frames of a rollout, by the weighted average of the experts."""

    def __init__(self, grid: Grid, candidates: Candidates, prior: Prior | None) -> None:
        self._grid, self._candidates, self._prior = grid, candidates, prior
        self.errors, self._mixed = grid.kernels.capture(self._errors), grid.kernels.capture(self._mix)

    def predict(
        self, scene: Scene, moving: Levels, candidates: Levels, learned: LearnedWeights
    ) -> tuple[Proposals, RolloutStep]:
        """Return all predictions of the next change, and their combination as the first step of a rollout."""
        prior = () if self._prior is None else self._grid.kernels.levels(self._prior.weights_at(scene.age))
        experts, frame = self._mixed(scene.current, scene.previous, moving, candidates, prior, learned)
        return Proposals(moving, candidates, experts), RolloutStep(frame, scene, learned.gains, learned)

    def continue_rollout(self, step: RolloutStep) -> RolloutStep:
        """Return the next step of a rollout."""
        # A prediction from a prediction is scaled by the gains of both.
        gains = step.gains * step.learned.gains
        seen = self._candidates.see(step.scene, step.frame)
        _, after = self.predict(*seen, step.learned._replace(gains=gains))
        return after._replace(learned=step.learned)

    def _errors(self, moving: Levels, experts: Levels, gains: Levels, change: Levels) -> Levels:
        """Return the mean squared errors (n_moving + n_experts,) of all predictions of the true `change`."""
        own = self._grid.weighted(experts[:1], gains)
        return array_namespace(change).stack([mean_square(one - change) for one in (*moving, own, *experts[1:])])

    def _mix(
        self,
        current: Levels,
        previous: Levels,
        moving: Levels,
        candidates: Levels,
        prior: Levels | tuple[()],
        learned: LearnedWeights,
    ) -> tuple[Levels, Levels]:
        """Return the changes (n_experts, height, width) that the experts predict, and the frame by their average."""
        others = [0 * current]
        if self._candidates.rich:
            others.append(moving[self._candidates.moving_names.index("flow")])
        works: list[Callable[[], Levels]] = [partial(self._grid.weighted, candidates, learned.candidates)]
        if not isinstance(prior, tuple):
            works.append(lambda: (prior @ candidates.reshape(len(candidates), -1)).reshape(current.shape))
        blend, *by_prior = self._grid.kernels.together(*works)
        others += by_prior
        mixed = learned.experts[0] * self._grid.weighted(blend[None], learned.gains)
        for weight, expert in zip(learned.experts[1:], others, strict=True):
            mixed = mixed + weight * expert
        change = self._grid.with_limited_energy(mixed, current - previous)
        frame = (current + change).clip(learned.limits[0], learned.limits[1])
        return array_namespace(current).stack([blend, *others]), frame
