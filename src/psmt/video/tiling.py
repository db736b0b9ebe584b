"""Overlapping windowed tiles over a frame, and back."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float32]


class Tiling:
    """Square tiles on a grid that covers a frame, each seen through a Hann window.

    The frame is continued by its mirror image, so that every pixel lies in the same number of tiles and frames smaller
    than a tile need no other treatment. The mean of each tile is taken out, so that only what varies in it is seen
    through the window.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    size : int
        Side of a tile, a multiple of `stride`.
    stride : int
        Distance between neighbouring tiles.
    """

    def __init__(self, shape: tuple[int, int], size: int, stride: int) -> None:
        if size % stride:
            raise ValueError(f"size={size} is not a multiple of stride={stride}; use a stride that divides it")
        self.shape, self.size, self.stride = shape, size, stride
        self._lead = size - stride
        self._padding = [(self._lead, self._lead + -(length + self._lead) % stride) for length in shape]
        self.grid = tuple((n + sum(ends) - size) // stride + 1 for n, ends in zip(shape, self._padding, strict=True))
        bell = np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2
        self.window: Array = np.outer(bell, bell).astype(np.float32)
        self._weight = np.ones(shape, np.float32)
        self._weight = self.join(np.broadcast_to(self.window, (*self.grid, size, size)))

    def cut(self, frame: Array) -> Array:
        """Windowed tiles (rows, columns, size, size) of a frame (height, width), less their means."""
        padded = np.pad(frame, self._padding, mode="symmetric")
        return _cut(padded, self.window, self.stride, np.empty((*self.grid, self.size, self.size), np.float32))

    def join(self, tiles: Array) -> Array:
        """The frame (height, width) that windowed tiles (rows, columns, size, size) fit best."""
        total = np.zeros([n + sum(ends) for n, ends in zip(self.shape, self._padding, strict=True)], np.float32)
        _add(tiles, self.window, self.stride, total)
        top, left = self._lead, self._lead
        return total[top : top + self.shape[0], left : left + self.shape[1]] / self._weight


@njit(cache=True, nogil=True, fastmath=True)
def _cut(padded, window, stride, tiles):
    """Fill tiles (rows, columns, size, size) from a padded frame."""
    rows, columns, size, _ = tiles.shape
    whole = window.sum()
    for r in range(rows):
        for c in range(columns):
            mean = np.float32(0.0)
            for i in range(size):
                for j in range(size):
                    mean += window[i, j] * padded[r * stride + i, c * stride + j]
            mean /= whole
            for i in range(size):
                for j in range(size):
                    tiles[r, c, i, j] = window[i, j] * (padded[r * stride + i, c * stride + j] - mean)
    return tiles


@njit(cache=True, nogil=True, fastmath=True)
def _add(tiles, window, stride, total):
    """Add tiles (rows, columns, size, size), seen through the window once more, where they were cut."""
    rows, columns, size, _ = tiles.shape
    for r in range(rows):
        for c in range(columns):
            for i in range(size):
                for j in range(size):
                    total[r * stride + i, c * stride + j] += window[i, j] * tiles[r, c, i, j]
