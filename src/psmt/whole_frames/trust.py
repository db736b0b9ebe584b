"""How far predictions have earned to be believed: what cannot be shown to beat copying is not used."""

from __future__ import annotations

import numpy as np

from psmt.whole_frames.cells import Array, Cells

_MEMORY = 15.0
"""Frames after which old ones have faded to 1/e."""

_LOCAL = 0.1
"""How much a cell's own record counts beside that of the whole frame, at equal energy: the rest of its weight."""


class Trust:
    """One gain in [0, 1] per cell: the best multiple of the changes that were predicted, before the truth was known.

    It starts at 0, and returns to 0 when a sharp change makes the record worthless.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.clear()

    def clear(self) -> None:
        """Start a new record."""
        self.energy = np.zeros(self.cells.grid, np.float32)
        self.match = np.zeros(self.cells.grid, np.float32)

    def learn(self, predicted: Array, change: Array) -> None:
        """Take in a predicted change (height, width) and the one that came."""
        energy, match = self.cells.moments(predicted[None], change)
        kept = np.float32(np.exp(-1.0 / _MEMORY))
        self.energy = kept * self.energy + energy[..., 0, 0]
        self.match = kept * self.match + match[..., 0]

    def gains(self) -> Array:
        """Gains (rows, columns, 1)."""
        usual = self.energy.mean()
        if usual == 0:
            return np.zeros((*self.cells.grid, 1), np.float32)
        pull = 1.0 * usual + 0.1 * self.energy
        whole = np.clip(self.match.mean() / usual, 0, 1)
        return np.clip((self.match + pull * whole) / (self.energy + pull), 0, 1)[..., None]
