"""Where a place is says which candidate to believe there: least squares per cell of the frame."""

from __future__ import annotations

import numpy as np

from psmt.video.grid import Array, Cells, Evidence, pooled, shrunk_weights

_MEMORY = 30.0
"""Frames after which old ones have faded to 1/e."""

_RIDGE = 0.01
"""Pull of a cell's weights to those of the whole frame, relative to the energy of the candidates."""


class Places(Evidence):
    """Weights of candidate changes by place, learned from how well they foretold the changes that came.

    Parameters
    ----------
    cells : Cells
    n_candidates : int
    """

    def __init__(self, cells: Cells, n_candidates: int) -> None:
        super().__init__(cells.grid, n_candidates)
        self.cells = cells

    def learn(self, candidates: Array, change: Array) -> None:
        """Take in candidate changes (n_candidates, height, width) and the change (height, width) that came."""
        gram, match = self.cells.moments(candidates, change)
        self.forget(np.exp(-1.0 / _MEMORY))
        self.gram += gram
        self.match += match

    def weights(self) -> Array:
        """Weights (rows, columns, n_candidates)."""
        n = self.match.shape[-1]
        gram, match = (pooled(part).reshape(-1, *part.shape[2:]) for part in (self.gram, self.match))
        return shrunk_weights(gram, match, _RIDGE)[0].reshape(*self.cells.grid, n)
