"""How far predictions have earned to be believed: what has not been shown to beat copying is not used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.video.grid import Array, Cells, pooled

_MEMORY = 15.0
"""Frames after which old ones have faded to 1/e."""

_OWN = 0.1
"""Pull of a cell's gain to that of the whole frame, relative to the energy of its own record."""

_PROBATION = 5
"""A shorter record, in frames, counts in proportion to its length."""

_LIVELIER = 2.0
"""A predicted change of more than so many times the energy of the last one is weakened by how far it exceeds that."""


class Trust:
    """One gain in [0, 1] per cell: the best multiple of the changes that were predicted before the truth was known.

    Unlike the weights of candidates, which are fitted to the past, this is scored on what was still to come. It starts
    at 0, and returns there when a sharp change makes the record worthless.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.clear()

    def clear(self) -> None:
        """Start a new record."""
        self.energy = np.zeros(self.cells.grid, np.float32)
        self.match = np.zeros(self.cells.grid, np.float32)
        self.length = 0

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """The record."""
        return {"energy": self.energy, "match": self.match, "length": np.array(self.length)}

    @state.setter
    def state(self, state: dict[str, NDArray[Any]]) -> None:
        self.energy, self.match, self.length = state["energy"], state["match"], int(state["length"])

    def learn(self, predicted: Array, change: Array) -> None:
        """Take in a predicted change (height, width) and the one that came."""
        energy, match = self.cells.moments(predicted[None], change)
        kept = np.float32(np.exp(-1.0 / _MEMORY))
        self.energy = kept * self.energy + energy[..., 0, 0]
        self.match = kept * self.match + match[..., 0]
        self.length += 1

    def gains(self) -> Array:
        """Gains (rows, columns, 1)."""
        usual = self.energy.mean()
        if usual == 0:
            return np.zeros((*self.cells.grid, 1), np.float32)
        whole = np.clip(self.match.mean() / usual, 0, 1)
        pull = usual + _OWN * self.energy
        own = np.clip((self.match + pull * whole) / (self.energy + pull), 0, 1)
        return (min(self.length / _PROBATION, 1.0) * own).astype(np.float32)[..., None]


def restrained(cells: Cells, predicted: Array, last: Array) -> Array:
    """The predicted change (height, width), weakened where it is far livelier than the last one (height, width).

    What was learned from violent motion is of no use once the motion has stopped, and cannot know that it has.
    """
    expected, seen = (pooled((cells.split(change[None]) ** 2).sum(axis=(2, 3))) for change in (predicted, last))
    limit = np.float32(_LIVELIER) * seen
    gains = np.divide(limit, expected, out=np.ones_like(limit), where=expected > limit)
    return cells.weighted(predicted[None], gains[..., None])
