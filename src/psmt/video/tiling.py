"""Overlapping tiles under Hann windows, cut from a frame and overlap-added to one."""

from __future__ import annotations

from psmt.engines import engine_for
from psmt.engines.frame_kernels import FrameKernels, Tiles, hann
from psmt.types import Levels

__all__ = ["Tiling", "hann"]


class Tiling:
    """Square tiles that cover a frame, each under a Hann window, and weighted overlap-add to join them.

    The frame is continued by its mirror image. The mean of each tile is taken out, so that only what varies in it is
    seen through the window.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    size : int
        Side of a tile, a multiple of `stride`.
    stride : int
        Distance between neighbouring tiles.
    kernels : FrameKernels, optional
        Of the device that the frames are on; by default the CPU's.

    Attributes
    ----------
    layout : (rows, columns)
        Of tiles.
    window : (size, size) array
    """

    def __init__(self, shape: tuple[int, int], size: int, stride: int, kernels: FrameKernels | None = None) -> None:
        self.tiles = Tiles(shape, size, stride)
        self.layout, self.window = self.tiles.layout, self.tiles.window
        self._kernels = kernels or engine_for("cpu").frames

    def cut(self, frame: Levels) -> Levels:
        """Windowed tiles (rows, columns, size, size) of a frame (height, width), less their means."""
        return self._kernels.cut(frame, self.tiles)

    def join(self, tiles: Levels) -> Levels:
        """Return the least-squares frame (height, width) of windowed tiles (rows, columns, size, size)."""
        return self._kernels.join(tiles, self.tiles)
