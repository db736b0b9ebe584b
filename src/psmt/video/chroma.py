"""Prediction of the chroma of colour frames, with the motion and the weights of the luma.

Motion and weights are learned from the luma. The chroma (red and blue minus the luma) is smooth and moves with the
luma, so a few candidates are enough: optical flow, the running mean along the flow, and the running means of each
pixel. Their weights are the least-squares weights that the same candidates have for the luma. Encoders smooth the
chroma more than the luma. The predicted change is therefore multiplied by a gain, learned by regression of the true
changes of the chroma on the predicted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import Field, under
from psmt.types import Levels
from psmt.video.candidates import BANDS, MEANS, TRACKED, Candidates, mean_square
from psmt.video.cells import CellBlend, CellGain, Grid
from psmt.video.experts import RolloutStep
from psmt.video.prior import Prior
from psmt.video.rollouts import RolloutRecord
from psmt.video.state import FRAME_FIELD, DeclaredState

_LEAST = 1e-12  # smallest energy of a change that changes are divided by


class Chroma(NamedTuple):
    """State from which the chroma is predicted. Rollouts share it, so it is never modified in place."""

    current: Levels  # (2, height, width)
    tracked: Levels  # running mean along the flow (2, height, width)
    means: Levels  # running means (len(MEANS), 2, height, width)


class ChromaFollower(DeclaredState):
    """Predicts the chroma (2, height, width) of the next frames with the motion of the luma.

    If the last change is the only candidate (`Candidates.rich` is False), the last chroma is repeated.
    """

    current: Levels  # these are the fields of `Chroma`
    tracked: Levels
    means: Levels

    def __init__(self, grid: Grid, candidates: Candidates, chroma: Levels) -> None:
        self._gain = CellGain(grid)
        super().__init__(grid.kernels, self.schema(grid), {"gain.": self._gain})
        self._grid, self._rich = grid, candidates.rich
        self._kept = grid.kernels.levels(MEANS)[:, None, None, None]
        self._updated, self._predicted = grid.kernels.capture(self._update), grid.kernels.capture(self._predict)
        if self._rich:
            in_bands = [[f"{name}, band {band}" for band in range(len(BANDS) + 1)] for name in ("flow", "tracked mean")]
            followed = [*in_bands, *([f"mean {kept}"] for kept in MEANS)]
            # A change is the sum of its bands of detail.
            self._places = np.array([candidates.names.index(name) for names in followed for name in names])
            self._sums = np.repeat(np.eye(len(followed), dtype=np.float32), [len(names) for names in followed], axis=0)
        self.begin(grid.kernels.levels(chroma))

    @staticmethod
    def schema(grid: Grid) -> dict[str, Field]:
        """Return the schema of the saved state: the shape, type and range of each array."""
        chroma = FRAME_FIELD._replace(shape=(2, *grid.shape))
        means = chroma._replace(shape=(len(MEANS), *chroma.shape))
        return {"current": chroma, "tracked": chroma, "means": means, **under("gain.", CellGain.schema(grid))}

    def begin(self, chroma: Levels) -> None:
        """Start a new scene with the chroma (2, height, width) of its first frame."""
        self.current, self.tracked = chroma, chroma
        self.means = array_namespace(chroma).stack([chroma] * len(MEANS))
        self._change: Levels | None = None
        self._gain.clear()

    def receive(self, chroma: Levels, flow: Levels) -> None:
        """Learn from the true chroma (2, height, width) of the next frame, given the flow of the luma to this frame."""
        if not self._rich:
            self.current = chroma
            return
        if self._change is not None:
            true = chroma - self.current
            unit = (mean_square(true) + _LEAST) ** -0.5
            for predicted, own in zip(unit * self._change, unit * true, strict=True):
                self._gain.learn(predicted, own)
        self.current, self.tracked, self.means = self._updated(self._state, chroma, flow)

    def look_ahead(self, step: RolloutStep, blend: CellBlend, prior: Prior | None) -> None:
        """Predict and store the next change of the chroma, given the luma's prediction, candidate weights and prior."""
        if not self._rich:
            return
        places, sums = self._places, self._grid.kernels.levels(self._sums)
        moments = sums.mT @ blend.gram[..., places[:, None], places] @ sums, blend.match[..., places] @ sums
        known = None
        if prior is not None:
            gram, match = prior.at(step.scene.age)
            known = self._sums.T @ gram[places[:, None], places] @ self._sums, match[places] @ self._sums
        self._weights = blend.solved(known, moments=moments)
        self._change, self._gains = self._changed(self._state, step), self._gain.gains()

    def predict(self, steps: Sequence[RolloutStep], record: RolloutRecord) -> list[Levels]:
        """Return the chroma (2, height, width) of each frame of a luma rollout that `RolloutRecord.mixed` returned."""
        state, change = self._state, self._change
        frames: list[Levels] = []
        if change is None:
            return [self.current] * len(steps)
        for step in steps:
            if frames:
                state = self._updated(state, frames[-1], step.scene.flows[0])
                change = self._changed(state, step)
            own = [self._grid.weighted(one[None], self._gains) for one in change]
            frames.append(state.current + array_namespace(change).stack(own))
        parts = [record.mixed([own[c] for own in frames], self.current[c], self.means[:, c]) for c in range(2)]
        return [array_namespace(one).stack([one, other]) for one, other in zip(*parts, strict=True)]

    @property
    def _state(self) -> Chroma:
        return Chroma(self.current, self.tracked, self.means)

    def _changed(self, state: Chroma, step: RolloutStep) -> Levels:
        change: Levels = self._predicted(state, step.scene.flows[0], self._weights, step.gains, step.learned.experts)
        return change

    def _update(self, state: Chroma, chroma: Levels, flow: Levels) -> Chroma:
        """Return the state after the next frame."""
        tracked = array_namespace(flow).stack([self._grid.kernels.moved(one, flow) for one in state.tracked])
        return Chroma(chroma, chroma + TRACKED * (tracked - chroma), chroma + self._kept * (state.means - chroma))

    def _predict(self, state: Chroma, flow: Levels, weights: Levels, gains: Levels, experts: Levels) -> Levels:
        """Return the predicted change (2, height, width), given the luma's gains and expert weights."""
        stack, kernels = array_namespace(flow).stack, self._grid.kernels
        # The experts are the blend, copying, optical flow and, if there is a prior, the prior's blend.
        own = weights * (experts[0] * gains + experts[3:].sum())
        changes = []
        for c, current in enumerate(state.current):
            moved, tracked = (kernels.moved(frame, flow) for frame in (current, state.tracked[c]))
            candidates = stack([moved, tracked, *state.means[:, c]]) - current
            changes.append(self._grid.weighted(candidates, own) + experts[2] * candidates[0])
        return stack(changes)
