"""Cells of the frame that have weights of their own: moments, what was learned, shrunk least squares, weighted sums."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float32]

CELL = 8
"""Side of a cell in pixels."""

_PRIOR = 1e-3
"""Pull of the common weights to zero, which is copying, relative to the energy of the candidates."""


class Cells:
    """The grid of cells over frames of a shape (height, width)."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.grid = tuple(-(-length // CELL) for length in shape)

    def split(self, maps: Array) -> Array:
        """Maps (n, height, width) by cell (rows, columns, n, pixels); what is beyond the frame is zero."""
        n, height, width = maps.shape
        rows, columns = self.grid
        padded = np.pad(maps, ((0, 0), (0, rows * CELL - height), (0, columns * CELL - width)))
        cells = padded.reshape(n, rows, CELL, columns, CELL).transpose(1, 3, 0, 2, 4)
        return np.ascontiguousarray(cells).reshape(rows, columns, n, CELL * CELL)

    def moments(self, candidates: Array, change: Array) -> tuple[Array, Array]:
        """Inner products of the candidates (n, height, width), with each other and with the change (height, width).

        (rows, columns, n, n) and (rows, columns, n).
        """
        seen, truth = self.split(candidates), self.split(change[None])
        return seen @ seen.swapaxes(2, 3), (seen @ truth.swapaxes(2, 3))[..., 0]

    def weighted(self, candidates: Array, weights: Array) -> Array:
        """Sum (height, width) of the candidates (n, height, width) with weights (rows, columns, n).

        Weights hold at the centres of cells and are interpolated between them.
        """
        return _weighted(candidates, weights, np.zeros(self.shape, np.float32))


class Evidence:
    """How candidate changes did so far: their moments with each other and with the changes that came, by group.

    Parameters
    ----------
    groups : tuple of int
        Shape of the groups that have weights of their own: cells of the frame, or atoms.
    n_candidates : int
    """

    def __init__(self, groups: tuple[int, ...], n_candidates: int) -> None:
        self.gram = np.zeros((*groups, n_candidates, n_candidates), np.float32)
        self.match = np.zeros((*groups, n_candidates), np.float32)

    @property
    def state(self) -> dict[str, Array]:
        """What was learned."""
        return {"gram": self.gram, "match": self.match}

    @state.setter
    def state(self, state: dict[str, Array]) -> None:
        self.gram, self.match = state["gram"], state["match"]

    def forget(self, kept: float) -> None:
        """Let what was learned count for a fraction of what it did."""
        self.gram *= np.float32(kept)
        self.match *= np.float32(kept)


def shrunk_weights(gram: Array, match: Array, ridge: float) -> tuple[Array, Array]:
    """Least-squares weights (groups, n) of each group, and the common ones (n,) that they are pulled to.

    `gram` (groups, n, n) and `match` (groups, n) are the moments of the groups. The pull is `ridge` times the energy
    of each candidate, in the group and on average; the common weights, of all groups together, are pulled to zero.
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


def pooled(moments: Array) -> Array:
    """Moments (rows, columns, ..) of each cell and its neighbours, which count a half, and a quarter at the corners."""
    for _ in range(2):
        padded = np.concatenate([moments[:1], moments, moments[-1:]])
        moments = (0.25 * (padded[2:] + padded[:-2]) + 0.5 * moments).swapaxes(0, 1)
    return moments


@njit(cache=True, nogil=True)
def _between(pixel, n_cells):
    """The cell whose centre lies before a pixel, the one after it, and how far the pixel is on its way to that one."""
    position = min(max((pixel + 0.5) / CELL - 0.5, 0.0), n_cells - 1.0)
    cell = int(position)
    return cell, min(cell + 1, n_cells - 1), np.float32(position - cell)


@njit(cache=True, nogil=True, fastmath=True)
def _weighted(candidates, weights, total):
    """Add up candidates (n, height, width) with weights (rows, columns, n), interpolated, in `total`."""
    n, height, width = candidates.shape
    rows, columns, _ = weights.shape
    column = np.empty(columns, np.float32)
    for k in range(n):
        for y in range(height):
            above, below, down = _between(y, rows)
            for c in range(columns):
                column[c] = weights[above, c, k] + down * (weights[below, c, k] - weights[above, c, k])
            for x in range(width):
                left, right, across = _between(x, columns)
                total[y, x] += candidates[k, y, x] * (column[left] + across * (column[right] - column[left]))
    return total
