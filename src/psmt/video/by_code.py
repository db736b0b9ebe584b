"""What a place shows says which candidate to believe there: layer 1 on tiles of the frame.

One dictionary serves all places. Each atom keeps its own moments of candidates and true changes, pooled over all
places and weighted by the atom's activity; the weights of a place are those of its atoms. So what is learned does not
depend on where it was seen.
"""

from __future__ import annotations

import numpy as np

from psmt.coding import SparseCoder
from psmt.video.grid import CELL, Array, Cells, Evidence, shrunk_weights
from psmt.video.tiling import Tiling

_MEMORY = 60.0
"""Frames after which old ones have faded to 1/e."""

_RIDGE = 0.03
"""Pull of an atom's weights to those of all atoms, relative to the energy of the candidates."""

_SAMPLES = 4000
"""Tiles that the dictionary is learned from."""


class Content(Evidence):
    """Weights of candidate changes by sparse code.

    Parameters
    ----------
    cells : Cells
    n_candidates : int
    coder : SparseCoder
        Of tiles of 16 x 16 pixels, as `tile_coder` learns it.
    scale : float
        Norm of the tiles that counts as 1.
    """

    def __init__(self, cells: Cells, n_candidates: int, coder: SparseCoder, scale: float) -> None:
        super().__init__((len(coder.dictionary_),), n_candidates)
        self.cells = cells
        self.coder, self.scale = coder, scale
        self._tiling = _tiling(cells)

    def activity(self, frame: Array) -> Array:
        """Codes (rows, columns, n_atoms) of the cells of a frame: the mean of those of the four tiles around each."""
        tiles = self._tiling.cut(frame).reshape(-1, 4 * CELL**2)
        codes: Array = self.coder.transform(tiles / self.scale).astype(np.float32).reshape(*self._tiling.grid, -1)
        along = codes[1:] + codes[:-1]
        return np.float32(0.25) * (along[:, 1:] + along[:, :-1])

    def learn(self, candidates: Array, change: Array, activity: Array) -> None:
        """Take in candidates (n_candidates, height, width), the change (height, width) that came, and the codes."""
        gram, match = self.cells.moments(candidates, change)
        active = activity.reshape(-1, activity.shape[-1])
        self.forget(np.exp(-1.0 / _MEMORY))
        self.gram += np.tensordot(active, gram.reshape(len(active), *gram.shape[2:]), axes=(0, 0))
        self.match += active.T @ match.reshape(len(active), -1)

    def __call__(self, candidates: Array, activity: Array) -> Array:
        """The change (height, width) that the candidates (n_candidates, height, width) amount to."""
        by_atom, common = shrunk_weights(self.gram, self.match, _RIDGE)
        # A place without any code is treated as all places are.
        total = activity.sum(axis=-1, keepdims=True)
        weights = (activity @ by_atom + 1e-6 * common) / (total + 1e-6)
        return self.cells.weighted(candidates, weights)


def tile_coder(
    frames: Array, cells: Cells, *, n_atoms: int, alpha: float, rng: np.random.RandomState
) -> tuple[SparseCoder, float]:
    """A coder of the tiles of frames (time, height, width), and the root mean square norm of a tile.

    `n_atoms` and `alpha` are as in `SparseCoder`, for tiles of norm 1.
    """
    picked = frames[np.unique(np.linspace(0, len(frames) - 1, 100).round().astype(int))]
    tiling = _tiling(cells)
    cut = [tiling.cut(frame).reshape(-1, 4 * CELL**2) for frame in picked]
    each = min(-(-_SAMPLES // len(cut)), len(cut[0]))
    tiles = np.concatenate([some[rng.choice(len(some), each, replace=False)] for some in cut])
    scale = float(np.sqrt(np.mean(np.sum(tiles**2, axis=1)))) or 1.0
    coder = SparseCoder(n_atoms=n_atoms, alpha=alpha, max_epochs=3, gap_tol=1e-4, random_state=rng)
    return coder.fit(tiles / scale), scale


def _tiling(cells: Cells) -> Tiling:
    """Tiles whose corners are the middles of cells: each cell is the overlap of four."""
    return Tiling(cells.shape, 2 * CELL, CELL)
