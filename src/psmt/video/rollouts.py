"""Scores of rollouts by the number of frames ahead, and combination of rollouts with running means of the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import LARGEST_SINGLE, MOMENT, Field, faded
from psmt.types import Array, Levels
from psmt.video.candidates import BANDS, room
from psmt.video.cells import CELL, PULL, Grid
from psmt.video.experts import ExpertWeights
from psmt.video.state import FRAME_FIELD, DeclaredState

LEADS = 10  # largest number of frames ahead that is scored
EVERY, SELDOM = 20, 80  # frames between the starts of scored rollouts, at first and once there are many


class RolloutRecord(DeclaredState):
    """Combines a rollout with running means of the past, with weights learned from earlier rollouts.

    Far ahead, the mean of the past often predicts better than the rollout. So, for each lead (number of frames ahead),
    the true frame is regressed on the rollout and the running means. The weights of a cell are shrunk towards those of
    the whole frame, and these towards copying. Weights from few rollouts may be poor. The final prediction is therefore
    an average of experts: the rollout, the rollout without its finer detail, the regression, and copying. Each rollout
    is scored before it is learned from, so the expected error holds for frames that the model has not seen.
    """

    _MEMORY = 8.0  # rollouts after which old ones have faded to 1/e
    _RIDGE = 0.3  # penalty of a cell's weights towards those of the whole frame, relative to the inputs' energy
    _RATE = 0.5  # of `ExpertWeights`: one rollout says little about the next
    _CAUTION = 0.1  # number of rollouts without any change that are added to the record
    _FEW = 3.0  # effective number of scored rollouts after which new ones start half as often
    _LEVEL = 10.0  # frames after which old ones have faded to 1/e, in the usual energy of a change
    _N_EXPERTS = 3 + len(BANDS)

    gram: Levels
    match: Levels
    errors: Array  # for each lead the sum of errors in units of the usual energy, and the effective number of rollouts
    pending: Levels  # LEADS frames of the rollout being scored, the frame it started from, the running means there
    since: int  # number of frames of the pending rollout scored so far; LEADS if no rollout is pending
    unit: float  # usual energy of a change when the pending rollout started
    level: Array  # sum of the energies of recent changes, and their effective number

    def __init__(self, grid: Grid, n_means: int) -> None:
        self.experts = ExpertWeights(grid.kernels, (LEADS, self._N_EXPERTS), memory=self._MEMORY, rate=self._RATE)
        super().__init__(grid.kernels, self.schema(grid, n_means), {"": self.experts})
        self.grid = grid
        self.since = self._added = LEADS

    @classmethod
    def schema(cls, grid: Grid, n_means: int) -> dict[str, Field]:
        """Return the schema of the saved state: the shape, type and range of each array."""
        n = 1 + n_means
        match = Field((LEADS, *grid.layout, n), "float32")
        most = (LEADS, LARGEST_SINGLE, LARGEST_SINGLE, faded(cls._LEVEL))
        return {
            "gram": match._replace(shape=(*match.shape, n), check=MOMENT),
            "match": match,
            "pending": FRAME_FIELD._replace(shape=(LEADS + n, *grid.shape)),
            "errors": Field((LEADS, 2), low=0.0, high=(LARGEST_SINGLE, faded(cls._MEMORY)), check=_COUNTED),
            **ExpertWeights.schema((LEADS, cls._N_EXPERTS), memory=cls._MEMORY),
            "figures": Field((4,), low=0.0, high=most, check=_COUNTED),
        }

    @property
    def figures(self) -> Array:
        """Return the scalars of the state as one array (4,), which is saved in files."""
        return np.array([self.since, self.unit, *self.level])

    @figures.setter
    def figures(self, figures: Array) -> None:
        since, self.unit, *level = figures.tolist()
        self.since, self.level = int(since), np.array(level)

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays that `get_state` returned."""
        super().set_state(state)
        change = self.pending - self.pending[LEADS]
        if self.since < LEADS and self.unit and not float((change * change).mean()) < LARGEST_SINGLE * self.unit:
            raise ValueError("horizons.pending is a rollout too large for the energy in horizons.figures")

    @property
    def usual(self) -> float:
        """Return the running mean of the energy (mean square) of changes from frame to frame."""
        return float(self.level[0] / self.level[1]) if self.level[1] else 0.0

    def add_energy(self, energy: float) -> None:
        """Add the energy (mean square) of a change to the running mean `usual`."""
        self.level = np.exp(-1.0 / self._LEVEL) * self.level + [energy, 1.0]

    @property
    def every(self) -> int:
        """Return the number of frames between the starts of two scored rollouts."""
        often = int(self.errors[-1, 1] / self._FEW)
        return min(EVERY << often, SELDOM)

    def begin(self, first: Levels, current: Levels, means: Levels) -> None:
        """Start to score a rollout, given its `first` frame, the `current` frame before it, and the running `means`."""
        self.pending = array_namespace(current).stack([*[first] * LEADS, current, *means])
        self.since, self.unit, self._added = 0, self.usual, 1

    def add(self, frame: Levels) -> bool:
        """Add the next predicted frame of the rollout. Return whether the rollout is now complete."""
        self.pending[self._added] = frame
        self._added += 1
        return self._added == LEADS

    def drop(self) -> None:
        """Stop scoring the present rollout, because of a cut."""
        self.since = LEADS

    def learn(self, frame: Levels) -> None:
        """Score the pending rollout, if any, against the true frame (height, width), then learn from it."""
        if self.since >= LEADS or self.unit == 0:
            return
        lead, current, means = self.since, self.pending[LEADS], self.pending[LEADS + 1 :]
        xp, kernels = array_namespace(means), self.grid.kernels
        rolled = self.pending[lead]
        experts = self._experts(lead, rolled, current, means)
        averaged = self._averaged(lead, experts) if self._has_record(lead) else rolled
        scored = xp.concat([averaged[None], experts])
        errors = kernels.numpy(((scored - frame) ** 2).mean(axis=(1, 2))).astype(np.float64)
        kept = float(np.exp(-1.0 / self._MEMORY))
        self.errors = self.errors.copy()
        self.errors[lead] = kept * self.errors[lead] + [errors[0] / self.unit, 1.0]
        # In units of the usual error at this lead: experts differ even where all are far better than copying.
        usual = self.unit * self.errors[lead, 0] / self.errors[lead, 1]
        self.experts.learn(errors[1:] / (usual or self.unit), lead)
        self.gram, self.match, changes = 1 * self.gram, 1 * self.match, self._changes(rolled, current, means)
        moments = self.gram[lead : lead + 1], self.match[lead : lead + 1]
        kernels.add_moments(moments, (kept,), changes, frame - current, 1 / self.unit, (CELL, CELL), moments)
        self.since += 1

    def mixed(self, rollout: list[Levels], current: Levels, means: Levels) -> list[Levels]:
        """Return a rollout with its frames replaced by averages of the experts (see `RolloutRecord`).

        The first frame is not replaced, nor are frames at leads where no rollout has been scored. The rollout starts
        from the frame `current`, and `means` are the running means at this frame.
        """
        leads = (min(k, LEADS - 1) for k in range(len(rollout)))
        return [
            self._averaged(lead, self._experts(lead, rolled, current, means)) if self._has_record(lead) else rolled
            for lead, rolled in zip(leads, rollout, strict=True)
        ]

    def weights(self) -> list[Levels]:
        """Return, for each lead with scores, the weights (rows, columns, 1 + n_means) of rollout and running means."""
        return [self._weights(lead) for lead in range(LEADS) if self._has_record(lead)]

    def _has_record(self, lead: int) -> bool:
        """Return whether rollouts were scored at this lead. The answer is always False for lead 0, the next frame."""
        return bool(lead and self.errors[lead, 1])

    def _experts(self, lead: int, rolled: Levels, current: Levels, means: Levels) -> Levels:
        """Return the frames of the experts (n, height, width): rollout, two smoother rollouts, regression, copy."""
        xp = array_namespace(means)
        fine = room(current, len(BANDS) + 1)
        self.grid.kernels.bands(rolled[None], BANDS, fine[:, None])
        mixed = rolled
        if self._has_record(lead):
            mixed = current + self.grid.weighted(self._changes(rolled, current, means), self._weights(lead))
        return xp.stack([rolled, *(fine[k:].sum(axis=0) for k in range(1, len(fine))), mixed, current])

    @staticmethod
    def _changes(rolled: Levels, current: Levels, means: Levels) -> Levels:
        """Return the differences (1 + n_means, height, width) of rollout and running means from the current frame."""
        return cast(Levels, array_namespace(means).concat([rolled[None], means]) - current)

    def _averaged(self, lead: int, experts: Levels) -> Levels:
        weights = self.grid.kernels.levels(self.experts.weights()[lead])
        return cast(Levels, (weights @ experts.reshape(len(experts), -1)).reshape(experts.shape[1:]))

    def _weights(self, lead: int) -> Levels:
        # A fraction of a rollout without any change is added, so that weights from few rollouts are near to copying.
        usual = self.grid.kernels.numpy(self.gram[lead].mean(axis=(0, 1)))
        caution = (self._CAUTION / self.errors[lead, 1] * usual).astype(np.float32), np.zeros(len(usual), np.float32)
        ridge = self._RIDGE * (1.0 + self._MEMORY / float(self.errors[lead, 1]))
        return self.grid.kernels.cell_weights(self.gram[lead], self.match[lead], ridge, PULL, caution)

    def expected(self, n_steps: int) -> Array:
        """Return the expected mean squared error (n_steps,) of each frame ahead. It is NaN before a rollout is scored.

        From `LEADS` frames ahead on, it is constant.
        """
        sums, counts = self.errors.T
        known = np.divide(sums, counts, out=np.full(LEADS, np.nan), where=counts > 0)
        return np.asarray(self.usual * known[np.minimum(np.arange(n_steps), LEADS - 1)])


def _is_counted(record: Array) -> bool:
    """Return whether all counts (last entries of the last axis) are possible. Discounted counts are 0 or >= 1."""
    return bool(((record[..., -1] == 0) | (record[..., -1] >= 1)).all())


_COUNTED = (_is_counted, "has a count between 0 and 1, which no record has")
