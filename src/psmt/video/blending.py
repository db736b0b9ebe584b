"""Which candidate to believe where: least squares that go on while the film runs, by place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.types import Levels
from psmt.video.grid import Grid, pooled

_PRIOR = 1e-3
"""Pull of the common weights to zero, which is copying, relative to the energy of the candidates."""


class WeightedLeastSquares:
    """Recursive least squares with a forgetting factor: moments of candidates and true changes, by group.

    The moments are exponentially weighted sums over the frames; the weights that they give are solved for when asked.

    Parameters
    ----------
    groups : tuple of int
        Shape of the groups that have weights of their own: cells of the frame.
    n_candidates : int
    memory : float
        Frames after which old ones have faded to 1/e.
    """

    def __init__(self, groups: tuple[int, ...], n_candidates: int, *, memory: float) -> None:
        self._kept = float(np.exp(-1.0 / memory))
        self.gram: Levels = np.zeros((*groups, n_candidates, n_candidates), np.float32)
        self.match: Levels = np.zeros((*groups, n_candidates), np.float32)
        # How many frames the moments count for.
        self.frames = 0.0

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the moments."""
        return {"gram": self.gram.copy(), "match": self.match.copy(), "frames": np.array(self.frames)}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from the moments that `get_state` gave."""
        self.gram, self.match = state["gram"].copy(), state["match"].copy()
        self.frames = float(state["frames"])

    def forget(self, kept: float) -> None:
        """Let what was learned count for a fraction of what it did."""
        self.gram *= np.float32(kept)
        self.match *= np.float32(kept)
        self.frames *= kept

    def _add(self, gram: Levels, match: Levels) -> None:
        """Take in the moments of one frame, after those before it have faded."""
        self.forget(self._kept)
        self.gram += gram
        self.match += match
        self.frames += 1.0


class PlaceBlend(WeightedLeastSquares):
    """Least-squares weights of candidate changes for each cell of the frame.

    Parameters
    ----------
    grid : Grid
    n_candidates : int
    """

    _MEMORY = 30.0
    _RIDGE = 0.01
    """Pull of a cell's weights to those of the whole frame, relative to the energy of the candidates."""

    _YOUNG = 0.3
    """What is added to it after one frame, and a part of it after more: a cell that has seen little knows little."""

    _PRIOR_FRAMES = 3.0
    """Frames that a prior counts for, in the weights of the whole frame."""

    def __init__(self, grid: Grid, n_candidates: int) -> None:
        super().__init__(grid.layout, n_candidates, memory=self._MEMORY)
        self.grid = grid

    def learn(self, candidates: Levels, change: Levels) -> None:
        """Take in candidate changes (n_candidates, height, width) and the change (height, width) that came."""
        self._add(*self.grid.moments(candidates, change))

    def weights(self, prior: tuple[Levels, Levels] | None = None) -> Levels:
        """Weights (rows, columns, n_candidates), given the moments (n, n) and (n,) of a usual frame of other films."""
        gram, match = (pooled(part).reshape(-1, *part.shape[2:]) for part in (self.gram, self.match))
        ridge = self._RIDGE + self._YOUNG / (self.frames + 1.0)
        if prior is not None:
            prior = (self._PRIOR_FRAMES * prior[0], self._PRIOR_FRAMES * prior[1])
        return shrunk_weights(gram, match, ridge, prior)[0].reshape(self.match.shape)


def shrunk_weights(
    gram: Levels, match: Levels, ridge: float, prior: tuple[Levels, Levels] | None = None
) -> tuple[Levels, Levels]:
    """Ridge-regression weights (groups, n) of each group, and the common ones (n,) that they are shrunk to.

    `gram` (groups, n, n) and `match` (groups, n) are the moments of the groups. The penalty is `ridge` times the energy
    of each candidate, in the group and on average; the common weights are those of all groups together and of a `prior`
    (n, n), (n,), where there is one, and are shrunk to zero.
    """
    whole, target = gram.mean(axis=0, dtype=np.float64), match.mean(axis=0, dtype=np.float64)
    if prior is not None:
        whole, target = whole + prior[0], target + prior[1]
    energy, usual = np.einsum("gkk->gk", gram), np.diagonal(whole)
    # Candidates that never moved anything have no energy: the floor leaves their weights at zero.
    floor = 1e-6 * usual.mean() + 1e-30
    common = np.linalg.solve(whole + np.diag(_PRIOR * usual + floor), target)
    pull = (ridge * (usual + energy) + floor).astype(np.float32)
    common = common.astype(np.float32)
    pulled = gram + pull[..., None] * np.eye(len(usual), dtype=np.float32)
    return np.linalg.solve(pulled, (match + pull * common)[..., None])[..., 0], common
