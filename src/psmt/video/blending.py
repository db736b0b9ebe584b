"""Which candidate to believe where: least squares that go on while the film runs, by place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.persistence.schema import MOMENT, Field, flag
from psmt.types import Levels
from psmt.video.grid import CELL, Grid

PULL = 1e-3
"""Pull of the common weights to zero, which is copying, relative to the energy of the candidates."""

LARGEST_WEIGHT = 1e6
"""No candidate of a saved model weighs more. Those of films weigh a few units."""


class PlaceBlend:
    """Least-squares weights of candidate changes for each cell of the frame.

    Recursive least squares with a forgetting factor: the moments of candidates and true changes are exponentially
    weighted sums over the frames; the weights that they give are solved for when asked.

    Parameters
    ----------
    grid : Grid
    n_candidates : int
    """

    _MEMORY = 30.0
    """Frames after which old ones have faded to 1/e."""

    _RIDGE = 0.01
    """Pull of a cell's weights to those of the whole frame, relative to the energy of the candidates."""

    _YOUNG = 0.3
    """What is added to it after one frame, and a part of it after more: a cell that has seen little knows little."""

    _PRIOR_FRAMES = 3.0
    """Frames that a prior counts for, in the weights of the whole frame."""

    _SETTLED = 10.0
    """Frames that moments count for once weights hardly move."""

    def __init__(self, grid: Grid, n_candidates: int) -> None:
        self.grid = grid
        self.gram: Levels = grid.kernels.levels(np.zeros((*grid.layout, n_candidates, n_candidates)))
        self.match: Levels = grid.kernels.levels(np.zeros((*grid.layout, n_candidates)))
        # How many frames the moments count for.
        self.frames = 0.0
        self.weights: Levels = 0 * self.match
        # Which half of the cells is next, and of the rows of pixels.
        self._lower = self._odd = False

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the moments."""
        known = {name: self.grid.kernels.numpy(getattr(self, name)).copy() for name in _KEPT}
        turns = {"lower": np.array(int(self._lower)), "odd": np.array(int(self._odd))}
        return {**known, "frames": np.array(self.frames), **turns}

    @staticmethod
    def schema(grid: Grid, n_candidates: int) -> dict[str, Field]:
        """What `get_state` gives."""
        match = Field((*grid.layout, n_candidates), "float32")
        gram = match._replace(shape=(*match.shape, n_candidates), check=MOMENT)
        weights = match._replace(low=-LARGEST_WEIGHT, high=LARGEST_WEIGHT)
        return {
            "gram": gram,
            "match": match,
            "weights": weights,
            "frames": Field(low=0.0),
            "lower": flag(),
            "odd": flag(),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from the moments that `get_state` gave."""
        self.gram, self.match, self.weights = (self.grid.kernels.levels(state[name].copy()) for name in _KEPT)
        self.frames, self._lower, self._odd = float(state["frames"]), bool(state["lower"]), bool(state["odd"])

    def forget(self, kept: float) -> None:
        """Let what was learned count for a fraction of what it did."""
        self.gram *= kept
        self.match *= kept
        self.frames *= kept

    def learn(self, candidates: Levels, change: Levels, weight: float = 1.0) -> None:
        """Take in candidate changes (n_candidates, height, width) and the change (height, width) that came.

        The frame counts `weight` times: to divide both by the root of their usual energy is a weight of its inverse.
        """
        kept = float(np.exp(-1.0 / self._MEMORY))
        cell = (CELL, CELL)
        if self.frames >= self._SETTLED:
            # What a pixel says, the ones above and below it say too: every second row of pixels is enough, in turns.
            half, cell = slice(int(self._odd), None, 2), (CELL // 2, CELL)
            candidates, change, weight = candidates[:, half], change[half], 2 * weight
            self._odd = not self._odd
        self.grid.kernels.add_moments(self.gram, self.match, kept, candidates, change, weight, cell)
        self.frames = kept * self.frames + 1.0

    def solve(self, prior: tuple[Levels, Levels] | None = None) -> None:
        """Find the `weights` (rows, columns, n_candidates), given moments of other films as `solved` takes them.

        Once the moments have settled, one frame hardly moves the weights: the upper and the lower half of the cells
        take turns.
        """
        if self.frames < self._SETTLED:
            self.weights = self.solved(prior)
            return
        middle = self.grid.layout[0] // 2
        rows = slice(middle, None) if self._lower else slice(middle)
        # Predictions that are under way go on by the weights they began with.
        self.weights = 1 * self.weights
        self.weights[rows] = self.solved(prior, rows)
        self._lower = not self._lower

    def solved(self, prior: tuple[Levels, Levels] | None = None, rows: slice = slice(None)) -> Levels:
        """Weights (rows, columns, n_candidates), given the moments (n, n) and (n,) of a usual frame of other films."""
        ridge = self._RIDGE + self._YOUNG / (self.frames + 1.0)
        if prior is not None:
            prior = (self._PRIOR_FRAMES * prior[0], self._PRIOR_FRAMES * prior[1])
        return self.grid.kernels.cell_weights(self.gram, self.match, ridge, PULL, prior, rows)


_KEPT = ("gram", "match", "weights")
"""Arrays that are kept as they are."""
