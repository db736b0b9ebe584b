"""Which candidate to believe where: least squares that go on while the film runs, by place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.schema import MOMENT, Field
from psmt.types import Levels
from psmt.video.grid import CELL, Grid

PULL = 1e-3
"""Pull of the common weights to zero, which is copying, relative to the energy of the candidates."""


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

    def __init__(self, grid: Grid, n_candidates: int) -> None:
        self.grid = grid
        self.gram: Levels = grid.kernels.levels(np.zeros((*grid.layout, n_candidates, n_candidates)))
        self.match: Levels = grid.kernels.levels(np.zeros((*grid.layout, n_candidates)))
        # How many frames the moments count for.
        self.frames = 0.0

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the moments."""
        gram, match = (self.grid.kernels.numpy(part).copy() for part in (self.gram, self.match))
        return {"gram": gram, "match": match, "frames": np.array(self.frames)}

    @staticmethod
    def schema(grid: Grid, n_candidates: int) -> dict[str, Field]:
        """What `get_state` gives."""
        match = Field((*grid.layout, n_candidates), "float32")
        gram = match._replace(shape=(*match.shape, n_candidates), check=MOMENT)
        return {"gram": gram, "match": match, "frames": Field(low=0.0)}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from the moments that `get_state` gave."""
        self.gram, self.match = (self.grid.kernels.levels(state[name].copy()) for name in ("gram", "match"))
        self.frames = float(state["frames"])

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
        self.grid.kernels.add_moments(self.gram, self.match, kept, candidates, change, weight, CELL)
        self.frames = kept * self.frames + 1.0

    def weights(self, prior: tuple[Levels, Levels] | None = None) -> Levels:
        """Weights (rows, columns, n_candidates), given the moments (n, n) and (n,) of a usual frame of other films."""
        ridge = self._RIDGE + self._YOUNG / (self.frames + 1.0)
        if prior is not None:
            prior = (self._PRIOR_FRAMES * prior[0], self._PRIOR_FRAMES * prior[1])
        return self.grid.kernels.cell_weights(self.gram, self.match, ridge, PULL, prior)


def common_weights(gram: Levels, match: Levels) -> Levels:
    """Weights (n,) that the moments (n, n) and (n,) of a whole film give, pulled to zero."""
    whole = gram.astype(np.float64)
    usual = np.diagonal(whole)
    floor = 1e-6 * usual.mean() + 1e-30
    solved: Levels = np.linalg.solve(whole + np.diag(PULL * usual + floor), match.astype(np.float64))
    return solved.astype(np.float32)
