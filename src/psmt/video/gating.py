"""How far a prediction is believed: a gain per cell from its record, and a limit on its energy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.types import Levels
from psmt.video.grid import Grid, pooled

_LIVELIER = 2.0
"""A predicted change of more than so many times the energy of the last one is weakened by how far it exceeds that."""

_TINY = 1e-30
"""Energy that is as good as none."""


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
        self.energy: Levels = self.grid.kernels.levels(np.zeros(self.grid.layout))
        self.match: Levels = self.grid.kernels.levels(np.zeros(self.grid.layout))
        self.length = 0

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the record."""
        energy, match = (self.grid.kernels.numpy(part).copy() for part in (self.energy, self.match))
        return {"energy": energy, "match": match, "length": np.array(self.length)}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from the record that `get_state` gave."""
        self.energy, self.match = (self.grid.kernels.levels(state[name].copy()) for name in ("energy", "match"))
        self.length = int(state["length"])

    def learn(self, predicted: Levels, change: Levels) -> None:
        """Take in a predicted change (height, width) and the one that came."""
        energy, match = self.grid.moments(predicted[None], change)
        kept = float(np.exp(-1.0 / self._MEMORY))
        self.energy = kept * self.energy + energy[..., 0, 0]
        self.match = kept * self.match + match[..., 0]
        self.length += 1

    def gains(self) -> Levels:
        """Gains (rows, columns, 1)."""
        # Where nothing was ever predicted, the floor leaves the gains at zero.
        usual = self.energy.mean() + _TINY
        pull = usual + self._OWN * self.energy
        whole = (self.match.mean() / usual).clip(0, 1)
        own = ((self.match + pull * whole) / (self.energy + pull)).clip(0, 1)
        return (min(self.length / self._PROBATION, 1.0) * own)[..., None]


def restrained(grid: Grid, predicted: Levels, last: Levels) -> Levels:
    """Return the predicted change (height, width), weakened where it has far more energy than the last one.

    What was learned from violent motion is of no use once the motion has stopped, and cannot know that it has.
    """
    expected, seen = (pooled(grid.energy(change)) for change in (predicted, last))
    gains = (_LIVELIER * seen / (expected + _TINY)).clip(0, 1)
    return grid.weighted(predicted[None], gains[..., None])
