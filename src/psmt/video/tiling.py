"""Overlapping tiles under Hann windows, cut from a frame and overlap-added to one."""

from __future__ import annotations

import numpy as np
from numba import njit

from psmt.types import Array, Levels


def hann(size: int) -> Array:
    """Hann window (size,), sampled between its zeros so that no pixel is lost."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size)


class Tiling:
    """Square tiles that cover a frame, each under a Hann window, and weighted overlap-add to join them.

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

    Attributes
    ----------
    layout : (rows, columns)
        Of tiles.
    window : (size, size) array
    """

    def __init__(self, shape: tuple[int, int], size: int, stride: int) -> None:
        if size % stride:
            raise ValueError(f"size={size} is not a multiple of stride={stride}; use a stride that divides it")
        self.shape, self.size, self.stride = shape, size, stride
        self._lead = size - stride
        self._padding = [(self._lead, self._lead + -(length + self._lead) % stride) for length in shape]
        self.layout = self.layout_of(shape, size, stride)
        self.window: Levels = np.outer(hann(size), hann(size)).astype(np.float32)
        self._weight: Levels = np.ones(shape, np.float32)
        self._weight = self.join(np.broadcast_to(self.window, (*self.layout, size, size)))

    @staticmethod
    def layout_of(shape: tuple[int, int], size: int, stride: int) -> tuple[int, int]:
        """Rows and columns of the tiles that cover a frame: each pixel is in ``size // stride`` of them both ways."""
        height, width = (-(-(length + size - stride) // stride) for length in shape)
        return height, width

    def cut(self, frame: Levels) -> Levels:
        """Windowed tiles (rows, columns, size, size) of a frame (height, width), less their means."""
        padded = np.pad(frame, self._padding, mode="symmetric")
        tiles: Levels = np.empty((*self.layout, self.size, self.size), np.float32)
        _cut(padded, self.window, self.stride, tiles)
        return tiles

    def join(self, tiles: Levels) -> Levels:
        """Return the least-squares frame (height, width) of windowed tiles (rows, columns, size, size)."""
        total: Levels = np.zeros([n + sum(ends) for n, ends in zip(self.shape, self._padding, strict=True)], np.float32)
        _add(tiles, self.window, self.stride, total)
        inside = tuple(slice(self._lead, self._lead + length) for length in self.shape)
        frame: Levels = total[inside] / self._weight
        return frame


@njit(cache=True, nogil=True, fastmath=True)
def _cut(padded: Levels, window: Levels, stride: int, tiles: Levels) -> None:
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


@njit(cache=True, nogil=True, fastmath=True)
def _add(tiles: Levels, window: Levels, stride: int, total: Levels) -> None:
    """Add tiles (rows, columns, size, size), seen through the window once more, where they were cut."""
    rows, columns, size, _ = tiles.shape
    for r in range(rows):
        for c in range(columns):
            for i in range(size):
                for j in range(size):
                    total[r * stride + i, c * stride + j] += window[i, j] * tiles[r, c, i, j]
