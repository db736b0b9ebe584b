"""Which candidate to believe where: least squares that go on while the film runs, by place and by sparse code."""

from __future__ import annotations

import numpy as np

from psmt.coding import SparseCoder
from psmt.engines import engine_for
from psmt.engines.frame_kernels import FrameKernels
from psmt.types import Array, Levels
from psmt.video.grid import CELL, Grid
from psmt.video.tiling import Tiling

_PRIOR = 1e-3
"""Pull of the common weights to zero, which is copying, relative to the energy of the candidates."""

_SAMPLES = 4000
"""Tiles that the dictionary is learned from."""

_GAP_TOL = 1e-4
"""Codes only weigh candidates: a few digits serve."""


class WeightedLeastSquares:
    """Recursive least squares with a forgetting factor: moments of candidates and true changes, by group.

    The moments are exponentially weighted sums over the frames; the weights that they give are solved for when asked.

    Parameters
    ----------
    groups : tuple of int
        Shape of the groups that have weights of their own: cells of the frame, or atoms.
    n_candidates : int
    memory : float
        Frames after which old ones have faded to 1/e.
    kernels : FrameKernels
        Of the device that the moments are on.
    """

    def __init__(
        self, groups: tuple[int, ...], n_candidates: int, *, memory: float, kernels: FrameKernels
    ) -> None:
        self._kept = float(np.exp(-1.0 / memory))
        self._kernels = kernels
        self.gram: Levels = kernels.levels(np.zeros((*groups, n_candidates, n_candidates)))
        self.match: Levels = kernels.levels(np.zeros((*groups, n_candidates)))

    def get_state(self) -> dict[str, Levels]:
        """Return copies of the moments."""
        return {"gram": self._kernels.numpy(self.gram).copy(), "match": self._kernels.numpy(self.match).copy()}

    def set_state(self, state: dict[str, Levels]) -> None:
        """Go on from the moments that `get_state` gave."""
        self.gram, self.match = (self._kernels.levels(state[name].copy()) for name in ("gram", "match"))

    def forget(self, kept: float) -> None:
        """Let what was learned count for a fraction of what it did."""
        self.gram *= kept
        self.match *= kept

    def _add(self, gram: Levels, match: Levels) -> None:
        """Take in the moments of one frame, after those before it have faded."""
        self.forget(self._kept)
        self.gram += gram
        self.match += match


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

    def __init__(self, grid: Grid, n_candidates: int) -> None:
        super().__init__(grid.layout, n_candidates, memory=self._MEMORY, kernels=grid.kernels)
        self.grid = grid

    def learn(self, candidates: Levels, change: Levels, weight: float = 1.0) -> None:
        """Take in candidate changes (n_candidates, height, width) and the change (height, width) that came.

        The frame counts `weight` times: both changes divided by the root of their usual energy are a weight of its
        inverse.
        """
        self._kernels.add_moments(self.gram, self.match, self._kept, candidates, change, weight, CELL)

    def weights(self) -> Levels:
        """Weights (rows, columns, n_candidates)."""
        return self._kernels.cell_weights(self.gram, self.match, self._RIDGE, _PRIOR)


class CodeBlend(WeightedLeastSquares):
    """Least-squares weights of candidate changes for each atom of a dictionary: what a place shows, not where it is.

    One dictionary serves all places. Each atom keeps its own moments, pooled over all places and weighted by the
    atom's activity; the weights of a place are those of its atoms.

    Parameters
    ----------
    grid : Grid
    n_candidates : int
    coder : SparseCoder
        Of tiles of 16 x 16 pixels, as `fit_tile_coder` learns it.
    scale : float
        Norm of the tiles that counts as 1.
    """

    _MEMORY = 60.0
    _RIDGE = 0.03
    """Pull of an atom's weights to those of all atoms, relative to the energy of the candidates."""

    def __init__(self, grid: Grid, n_candidates: int, coder: SparseCoder, scale: float) -> None:
        # Codes and what is learned of atoms are small, and stay on the host whatever the device.
        cpu = engine_for("cpu").frames
        super().__init__((len(coder.dictionary_),), n_candidates, memory=self._MEMORY, kernels=cpu)
        self.grid = grid
        self.coder, self.scale = coder, scale
        self._tiling = _tiling(grid)

    def activity(self, frame: Levels) -> Levels:
        """Codes (rows, columns, n_atoms) of the cells of a frame: the mean of those of the four tiles around each."""
        tiles = self._tiling.cut(self.grid.kernels.numpy(frame)).reshape(-1, 4 * CELL**2)
        codes: Levels = self.coder.transform(tiles / self.scale).astype(np.float32).reshape(*self._tiling.layout, -1)
        along = codes[1:] + codes[:-1]
        return np.float32(0.25) * (along[:, 1:] + along[:, :-1])

    def learn(self, candidates: Levels, change: Levels, activity: Levels) -> None:
        """Take in candidates (n_candidates, height, width), the change (height, width) that came, and the codes."""
        gram, match = map(self.grid.kernels.numpy, self.grid.moments(candidates, change))
        active = activity.reshape(-1, activity.shape[-1])
        self._add(
            np.tensordot(active, gram.reshape(len(active), *gram.shape[2:]), axes=(0, 0)),
            active.T @ match.reshape(len(active), -1),
        )

    def blend(self, candidates: Levels, activity: Levels) -> Levels:
        """Return the change (height, width) that the candidates (n_candidates, height, width) amount to."""
        by_atom, common = shrunk_weights(self.gram, self.match, self._RIDGE)
        # A place without any code is treated as all places are.
        total = activity.sum(axis=-1, keepdims=True)
        weights = (activity @ by_atom + 1e-6 * common) / (total + 1e-6)
        return self.grid.weighted(candidates, self.grid.kernels.levels(weights))


def shrunk_weights(gram: Levels, match: Levels, ridge: float) -> tuple[Levels, Levels]:
    """Ridge-regression weights (groups, n) of each group, and the common ones (n,) that they are shrunk to.

    `gram` (groups, n, n) and `match` (groups, n) are the moments of the groups. The penalty is `ridge` times the energy
    of each candidate, in the group and on average; the common weights, of all groups together, are shrunk to zero.
    """
    whole, energy = gram.mean(axis=0, dtype=np.float64), np.einsum("gkk->gk", gram)
    usual = np.diagonal(whole)
    # Candidates that never moved anything have no energy: the floor leaves their weights at zero.
    floor = 1e-6 * usual.mean() + 1e-30
    common = np.linalg.solve(whole + np.diag(_PRIOR * usual + floor), match.mean(axis=0, dtype=np.float64))
    pull = (ridge * (usual + energy) + floor).astype(np.float32)
    common = common.astype(np.float32)
    pulled = gram + pull[..., None] * np.eye(len(usual), dtype=np.float32)
    return np.linalg.solve(pulled, (match + pull * common)[..., None])[..., 0], common


def fit_tile_coder(
    frames: Levels, grid: Grid, *, n_atoms: int, alpha: float, rng: np.random.RandomState
) -> tuple[SparseCoder, float]:
    """Return a coder of the tiles of frames (time, height, width), and the root mean square norm of a tile.

    `n_atoms` and `alpha` are as in `SparseCoder`, for tiles of norm 1.
    """
    picked = frames[np.unique(np.linspace(0, len(frames) - 1, 100).round().astype(int))]
    tiling = _tiling(grid)
    cut = [tiling.cut(frame).reshape(-1, 4 * CELL**2) for frame in picked]
    each = min(-(-_SAMPLES // len(cut)), len(cut[0]))
    tiles = np.concatenate([some[rng.choice(len(some), each, replace=False)] for some in cut])
    scale = float(np.sqrt(np.mean(np.sum(tiles**2, axis=1)))) or 1.0
    coder = SparseCoder(n_atoms=n_atoms, alpha=alpha, max_epochs=3, gap_tol=_GAP_TOL, random_state=rng)
    return coder.fit(tiles / scale), scale


def tile_coder_of(dictionary: Array, alpha: float) -> SparseCoder:
    """Return the coder over a dictionary (n_atoms, 256) that `fit_tile_coder` has learned."""
    return SparseCoder.from_dictionary(dictionary, alpha=alpha, gap_tol=_GAP_TOL)


def _tiling(grid: Grid) -> Tiling:
    """Tiles whose corners are the middles of cells: each cell is the overlap of four."""
    return Tiling(grid.shape, 2 * CELL, CELL)
