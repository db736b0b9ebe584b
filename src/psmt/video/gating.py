"""How far a prediction is believed: a gain per cell from its record, and a limit on its energy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.schema import Field, counter
from psmt.types import Levels
from psmt.video.grid import Grid, pooled

_LIVELIER = 2.0
"""A predicted change of more than so many times the energy of the last one is weakened by how far it exceeds that."""


class LocalGain:
    """Regression gain in [0, 1] per cell: the best multiple of the changes that were predicted before the truth came.

    Unlike the weights of candidates, which are fitted to the past, this is scored on what was still to come: what has
    not been shown to beat copying is not used. It is exponentially weighted, shrunk to the gain of the whole frame,
    starts at 0, and returns there when a sharp change makes the record worthless.
    """

    _MEMORY = 15.0
    """Frames after which old ones have faded to 1/e."""

    _OWN = 0.1
    """Pull of a cell's gain to that of the whole frame, relative to the energy of its own record."""

    _PROBATION = 5
    """A shorter record, in frames, counts in proportion to its length."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.clear()

    def clear(self) -> None:
        """Start a new record."""
        self.energy: Levels = np.zeros(self.grid.layout, np.float32)
        self.match: Levels = np.zeros(self.grid.layout, np.float32)
        self.length = 0

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the record."""
        return {"energy": self.energy.copy(), "match": self.match.copy(), "length": np.array(self.length)}

    @staticmethod
    def schema(grid: Grid) -> dict[str, Field]:
        """What `get_state` gives."""
        match = Field(grid.layout, "float32")
        return {"energy": match._replace(low=0.0), "match": match, "length": counter()}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from the record that `get_state` gave."""
        self.energy, self.match, self.length = state["energy"], state["match"], int(state["length"])

    def learn(self, predicted: Levels, change: Levels) -> None:
        """Take in a predicted change (height, width) and the one that came."""
        energy, match = self.grid.moments(predicted[None], change)
        kept = np.float32(np.exp(-1.0 / self._MEMORY))
        self.energy = kept * self.energy + energy[..., 0, 0]
        self.match = kept * self.match + match[..., 0]
        self.length += 1

    def gains(self) -> Levels:
        """Gains (rows, columns, 1)."""
        usual = self.energy.mean()
        if usual == 0:
            return np.zeros((*self.grid.layout, 1), np.float32)
        whole = np.clip(self.match.mean() / usual, 0, 1)
        pull = usual + self._OWN * self.energy
        own = np.clip((self.match + pull * whole) / (self.energy + pull), 0, 1)
        gains: Levels = (min(self.length / self._PROBATION, 1.0) * own).astype(np.float32)[..., None]
        return gains


def restrained(grid: Grid, predicted: Levels, last: Levels) -> Levels:
    """Return the predicted change (height, width), weakened where it has far more energy than the last one.

    What was learned from violent motion is of no use once the motion has stopped, and cannot know that it has.
    """
    expected, seen = (pooled((grid.split(change[None]) ** 2).sum(axis=(2, 3))) for change in (predicted, last))
    limit = np.float32(_LIVELIER) * seen
    gains = np.divide(limit, expected, out=np.ones_like(limit), where=expected > limit)
    return grid.weighted(predicted[None], gains[..., None])
