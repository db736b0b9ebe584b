"""The grid of cells over a frame: moments per cell, and sums whose weights are interpolated between cells."""

from __future__ import annotations

from psmt.engines import engine_for
from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.namespace import array_namespace
from psmt.types import Levels

CELL = 8
"""Side of a cell in pixels."""


class Grid:
    """Square cells that cover frames of a shape (height, width).

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    kernels : FrameKernels, optional
        Of the device that the frames are on; by default the CPU's.

    Attributes
    ----------
    layout : (rows, columns)
        Of cells.
    """

    def __init__(self, shape: tuple[int, int], kernels: FrameKernels | None = None) -> None:
        self.shape = shape
        self.layout = tuple(-(-length // CELL) for length in shape)
        self.kernels = kernels or engine_for("cpu").frames

    def moments(self, candidates: Levels, change: Levels) -> tuple[Levels, Levels]:
        """Inner products of the candidates (n, height, width), with each other and with the change (height, width).

        (rows, columns, n, n) and (rows, columns, n).
        """
        return self.kernels.cell_moments(candidates, change, CELL)

    def energy(self, change: Levels) -> Levels:
        """Sum of squares (rows, columns) of a change (height, width) in each cell."""
        return self.kernels.cell_energy(change, CELL)

    def weighted(self, candidates: Levels, weights: Levels) -> Levels:
        """Sum (height, width) of the candidates (n, height, width) with weights (rows, columns, n).

        Weights hold at the centres of cells and are interpolated bilinearly between them.
        """
        return self.kernels.weighted(candidates, weights, CELL)


def pooled(moments: Levels) -> Levels:
    """Moments (rows, columns, ..) smoothed by the binomial kernel (1, 2, 1) / 4 along both axes of the grid."""
    concat = array_namespace(moments).concat
    for _ in range(2):
        padded = concat([moments[:1], moments, moments[-1:]])
        moments = (0.25 * (padded[2:] + padded[:-2]) + 0.5 * moments).swapaxes(0, 1)
    return moments
