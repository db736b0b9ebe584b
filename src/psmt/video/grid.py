"""The grid of cells over a frame: moments per cell, and sums whose weights are interpolated between cells."""

from __future__ import annotations

import numpy as np

from psmt.compiled import njit
from psmt.types import Levels

CELL = 8
"""Side of a cell in pixels."""


class Grid:
    """Square cells that cover frames of a shape (height, width).

    Attributes
    ----------
    shape : (height, width)
        Of the frames.
    layout : (rows, columns)
        Of cells.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.layout = tuple(-(-length // CELL) for length in shape)

    def split(self, maps: Levels) -> Levels:
        """Return maps (n, height, width) by cell (rows, columns, n, pixels); what is beyond the frame is zero."""
        n, height, width = maps.shape
        rows, columns = self.layout
        padded = np.pad(maps, ((0, 0), (0, rows * CELL - height), (0, columns * CELL - width)))
        cells = padded.reshape(n, rows, CELL, columns, CELL).transpose(1, 3, 0, 2, 4)
        return np.ascontiguousarray(cells).reshape(rows, columns, n, CELL * CELL)

    def moments(self, candidates: Levels, change: Levels) -> tuple[Levels, Levels]:
        """Inner products of the candidates (n, height, width), with each other and with the change (height, width).

        (rows, columns, n, n) and (rows, columns, n).
        """
        seen, truth = self.split(candidates), self.split(change[None])
        return seen @ seen.swapaxes(2, 3), (seen @ truth.swapaxes(2, 3))[..., 0]

    def weighted(self, candidates: Levels, weights: Levels) -> Levels:
        """Sum (height, width) of the candidates (n, height, width) with weights (rows, columns, n).

        Weights hold at the centres of cells and are interpolated bilinearly between them.
        """
        total: Levels = np.zeros(self.shape, np.float32)
        _add_weighted(candidates, weights, total)
        return total


def pooled(moments: Levels) -> Levels:
    """Moments (rows, columns, ..) smoothed by the binomial kernel (1, 2, 1) / 4 along both axes of the grid."""
    for _ in range(2):
        padded = np.concatenate([moments[:1], moments, moments[-1:]])
        moments = (0.25 * (padded[2:] + padded[:-2]) + 0.5 * moments).swapaxes(0, 1)
    return moments


@njit(cache=True, nogil=True)
def _between(pixel: int, n_cells: int) -> tuple[int, int, np.float32]:
    """Return the cells whose centres lie before and after a pixel, and its share of the way between them."""
    position = min(max((pixel + 0.5) / CELL - 0.5, 0.0), n_cells - 1.0)
    cell = int(position)
    return cell, min(cell + 1, n_cells - 1), np.float32(position - cell)


@njit(cache=True, nogil=True, fastmath=True)
def _add_weighted(candidates: Levels, weights: Levels, total: Levels) -> None:
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
