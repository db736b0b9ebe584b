"""How far rollouts are believed, and how large their errors will be, frame by frame ahead: from the own record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.numerics.namespace import array_namespace
from psmt.persistence.schema import LARGEST_SINGLE, MOMENT, Field, faded
from psmt.types import Array, Levels
from psmt.video.advice import Advice
from psmt.video.blending import PULL
from psmt.video.candidates import BANDS, room
from psmt.video.checks import FRAME_FIELD
from psmt.video.grid import CELL, Grid

LEADS = 10
"""Frames ahead that are kept a record of."""

EVERY, SELDOM = 20, 80
"""Frames from one rollout on record to the next, at first, and once there are many."""


class Horizons:
    """Least squares of what came k frames ahead on what the rollout said, and on the running means; errors of both.

    A rollout goes astray by and by, and where it does, the mean of the past is the better guess. Each cell has weights
    for every lead, shrunk to those of the frame, and these to copying. Learned from a few rollouts they may be worse
    than none: so the rollout as it is, without its finer detail, the mixture and copying are experts, whose average is
    what is said. All is scored before it learns, so that the expected error is that of predictions whose truth was not
    known yet.

    Parameters
    ----------
    grid : Grid
    n_means : int
        Running means of the past that a rollout is mixed with.
    """

    _MEMORY = 8.0
    """Rollouts after which old ones have faded to 1/e."""

    _RIDGE = 0.3
    """Pull of a cell's weights to those of the whole frame, relative to the energy of the candidates."""

    _RATE = 0.5
    """How sharply the weight of an expert falls with its loss: a rollout says little of the next one."""

    _CAUTION = 0.1
    """Rollouts in which nothing moved that are counted beside those on record."""

    _FEW = 3.0
    """Rollouts on record, less what has faded of them, with which new ones need only come half as often."""

    _LEVEL = 10.0
    """Frames after which old ones have faded to 1/e, in the usual energy of a change."""

    def __init__(self, grid: Grid, n_means: int) -> None:
        self.grid = grid
        n = 1 + n_means
        own = grid.kernels.levels
        self.gram: Levels = own(np.zeros((LEADS, *grid.layout, n, n)))
        self.match: Levels = own(np.zeros((LEADS, *grid.layout, n)))
        self.errors: Array = np.zeros((LEADS, 2))
        self.advice = self._no_advice()
        self.level = np.zeros(2)
        self.since = self._added = LEADS
        self.pending: Levels = own(np.zeros((LEADS + 1 + n_means, *grid.shape)))
        self.unit = 0.0

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the record."""
        figures = np.array([self.since, self.unit, *self.level])
        record = {name: self.grid.kernels.numpy(getattr(self, name)).copy() for name in _RECORD}
        return record | self.advice.get_state() | {"errors": self.errors.copy(), "figures": figures}

    @classmethod
    def _no_advice(cls) -> Advice:
        return Advice((LEADS, 3 + len(BANDS)), memory=cls._MEMORY, rate=cls._RATE)

    @classmethod
    def schema(cls, grid: Grid, n_means: int) -> dict[str, Field]:
        """What `get_state` gives."""
        n = 1 + n_means
        match = Field((LEADS, *grid.layout, n), "float32")
        return {
            "gram": match._replace(shape=(*match.shape, n), check=MOMENT),
            "match": match,
            "pending": FRAME_FIELD._replace(shape=(LEADS + n, *grid.shape)),
            "errors": Field((LEADS, 2), low=0.0, high=(LARGEST_SINGLE, faded(cls._MEMORY)), check=_COUNTED),
            **cls._no_advice().schema(),
            "figures": Field(
                (4,), low=0.0, high=(LEADS, LARGEST_SINGLE, LARGEST_SINGLE, faded(cls._LEVEL)), check=_COUNTED
            ),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from the record that `get_state` gave."""
        for name in _RECORD:
            setattr(self, name, self.grid.kernels.levels(state[name].copy()))
        self.errors = state["errors"].copy()
        self.advice.set_state(state)
        since, self.unit, *level = state["figures"].tolist()
        self.since, self.level = int(since), np.array(level)
        begun = self.pending - self.pending[LEADS]
        if self.since < LEADS and self.unit and not float((begun * begun).mean()) < LARGEST_SINGLE * self.unit:
            raise ValueError("horizons.pending is a rollout beyond all measure of horizons.figures")

    @property
    def usual(self) -> float:
        """Usual energy of a change from frame to frame, of late."""
        return float(self.level[0] / self.level[1]) if self.level[1] else 0.0

    def watch(self, energy: float) -> None:
        """Take in the energy of the change that came."""
        self.level = np.exp(-1.0 / self._LEVEL) * self.level + [energy, 1.0]

    @property
    def every(self) -> int:
        """Frames from one rollout on record to the next."""
        often = int(self.errors[-1, 1] / self._FEW)
        return min(EVERY << often, SELDOM)

    def begin(self, first: Levels, current: Levels, means: Levels) -> None:
        """Put a rollout on record: its first frame, the one it began at, and the running means (n, ..) there."""
        self.pending = array_namespace(current).stack([*[first] * LEADS, current, *means])
        self.since, self.unit, self._added = 0, self.usual, 1

    def add(self, frame: Levels) -> bool:
        """Put the next frame of the rollout on record, before it is scored; whether it is the last."""
        self.pending[self._added] = frame
        self._added += 1
        return self._added == LEADS

    def drop(self) -> None:
        """Leave the present rollout: what came has nothing to do with it."""
        self.since = LEADS

    def learn(self, frame: Levels) -> None:
        """Score the rollout on record, where there is one, with the frame (height, width) that came, and learn."""
        if self.since >= LEADS or self.unit == 0:
            return
        lead, current, means = self.since, self.pending[LEADS], self.pending[LEADS + 1 :]
        xp, kernels = array_namespace(means), self.grid.kernels
        rolled = self.pending[lead]
        experts = self._experts(lead, rolled, current, means)
        advised = self._advised(lead, experts) if self._has_record(lead) else rolled
        said = xp.concat([advised[None], experts])
        errors = kernels.numpy(((said - frame) ** 2).mean(axis=(1, 2))).astype(np.float64)
        kept = np.exp(-1.0 / self._MEMORY)
        self.errors[lead] = kept * self.errors[lead] + [errors[0] / self.unit, 1.0]
        # In units of what is usual so far ahead: where all are far better than copying, they still differ.
        usual = self.unit * self.errors[lead, 0] / self.errors[lead, 1]
        self.advice.learn(errors[1:] / (usual or self.unit), lead)
        seen, weight = self._seen(rolled, current, means), 1 / self.unit
        kernels.add_moments(self.gram[lead], self.match[lead], float(kept), seen, frame - current, weight, (CELL, CELL))
        self.since += 1

    def mixed(self, rollout: list[Levels], current: Levels, means: Levels) -> list[Levels]:
        """Return the frames of a rollout as far as they are believed; the first one stays as it is."""
        leads = (min(k, LEADS - 1) for k in range(len(rollout)))
        return [
            self._advised(lead, self._experts(lead, rolled, current, means)) if self._has_record(lead) else rolled
            for lead, rolled in zip(leads, rollout, strict=True)
        ]

    def weights(self) -> list[Levels]:
        """Weights (rows, columns, 1 + n_means) of rollout and running means for each lead that has a record."""
        return [self._weights(lead) for lead in range(LEADS) if self._has_record(lead)]

    def _has_record(self, lead: int) -> bool:
        """Whether frames so far ahead are to be mixed: the first is the business of gains and advice."""
        return bool(lead and self.errors[lead, 1])

    def _experts(self, lead: int, rolled: Levels, current: Levels, means: Levels) -> Levels:
        """Frames (n_experts, height, width): the rollout as it is and less detailed, as mixed by cells, and copying."""
        xp = array_namespace(means)
        fine = room(current, len(BANDS) + 1)
        self.grid.kernels.bands(rolled[None], BANDS, fine[:, None])
        mixed = rolled
        if self._has_record(lead):
            mixed = current + self.grid.weighted(self._seen(rolled, current, means), self._weights(lead))
        return xp.stack([rolled, *(fine[k:].sum(axis=0) for k in range(1, len(fine))), mixed, current])

    @staticmethod
    def _seen(rolled: Levels, current: Levels, means: Levels) -> Levels:
        """Changes (1 + n_means, height, width) to the rollout, and to the running means."""
        changes: Levels = array_namespace(means).concat([rolled[None], means]) - current
        return changes

    def _advised(self, lead: int, experts: Levels) -> Levels:
        """What the experts amount to, by their record."""
        weights = self.grid.kernels.levels(self.advice.weights()[lead])
        advised: Levels = (weights @ experts.reshape(len(experts), -1)).reshape(experts.shape[1:])
        return advised

    def _weights(self, lead: int) -> Levels:
        # A part of one more rollout in which nothing moved: what has hardly been tried is not quite believed.
        usual = self.grid.kernels.numpy(self.gram[lead].mean(axis=(0, 1)))
        caution = (self._CAUTION / self.errors[lead, 1] * usual).astype(np.float32), np.zeros(len(usual), np.float32)
        ridge = self._RIDGE * (1.0 + self._MEMORY / float(self.errors[lead, 1]))
        return self.grid.kernels.cell_weights(self.gram[lead], self.match[lead], ridge, PULL, caution)

    def expected(self, n_steps: int) -> Array:
        """Expected mean squared error (n_steps,) of the frames ahead; NaN where no rollout has been scored yet.

        Beyond the leads on record it is that of the last one.
        """
        sums, counts = self.errors.T
        known = np.divide(sums, counts, out=np.full(LEADS, np.nan), where=counts > 0)
        expected: Array = self.usual * known[np.minimum(np.arange(n_steps), LEADS - 1)]
        return expected


_COUNTED = (
    lambda record: bool(((record[..., -1] == 0) | (record[..., -1] >= 1)).all()),
    "counts a part of one frame, which no record does",
)
"""A check of sums that are followed by their count: one that fades is at least 1 after each frame that enters."""

_RECORD = ("gram", "match", "pending")
"""Arrays that are kept as they are."""
