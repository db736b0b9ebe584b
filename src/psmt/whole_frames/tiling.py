"""Overlapping windowed tiles over a frame, and back."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float32]


class Tiling:
    """Square tiles on a grid that covers a frame, each seen through a Hann window.

    `cut` and `join` are inverse to each other. The frame is continued by its mirror image, so that every pixel lies
    in the same number of tiles and frames smaller than a tile need no other treatment.

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
            raise ValueError(f"size={size} is not a multiple of stride={stride}")
        self.shape, self.size, self.stride = shape, size, stride
        self._lead = size - stride
        self._tail = tuple(self._lead + (-(length + 2 * self._lead - size)) % stride for length in shape)
        bell = np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2
        self.window: Array = np.outer(bell, bell).astype(np.float32)
        tiles = self._tiles(np.zeros(shape, np.float32))
        self._weight = self._overlap_add(np.broadcast_to(self.window**2, tiles.shape))

    def cut(self, frame: Array) -> Array:
        """Windowed tiles (rows, columns, size, size) of a frame (height, width)."""
        return self._tiles(frame) * self.window

    def join(self, tiles: Array) -> Array:
        """The frame (height, width) that windowed tiles (rows, columns, size, size) fit best."""
        return self._overlap_add(tiles * self.window) / self._weight

    def _tiles(self, frame: Array) -> Array:
        padding = [(self._lead, tail) for tail in self._tail]
        padded = np.pad(frame, padding, mode="symmetric")
        return sliding_window_view(padded, (self.size, self.size))[:: self.stride, :: self.stride]

    def _overlap_add(self, tiles: Array) -> Array:
        """Sum (height, width) of tiles (rows, columns, size, size), each put where it was cut."""
        rows, columns = tiles.shape[:2]
        step = self.stride
        total = np.zeros([length + self._lead + tail for length, tail in zip(self.shape, self._tail, strict=True)])
        total = total.astype(np.float32)
        # All tiles at once, one stride x stride cell of them at a time: the cells of one kind never overlap.
        for i in range(0, self.size, step):
            for j in range(0, self.size, step):
                cells = total[i : i + rows * step, j : j + columns * step].reshape(rows, step, columns, step)
                cells += tiles[:, :, i : i + step, j : j + step].transpose(0, 2, 1, 3)
        return total[self._lead : self._lead + self.shape[0], self._lead : self._lead + self.shape[1]]
