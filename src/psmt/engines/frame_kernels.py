"""Kernels for whole frames that every engine has: tiles and their spectra, least squares by cell, weighted sums.

All arrays are engine arrays of float32 (or complex64): grey levels have few digits, and a sum over a cell has only a
few dozen terms. The common weights of all cells must be exact and are solved in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.types import AnyArray, Array, Ints, Levels

Complex = NDArray[np.complex64]
Layers = tuple[tuple[Levels, Levels], ...]
Shape = tuple[int, int]
CellSums = tuple[Levels, Levels]  # of candidates with each other, and with the change
Work = TypeVar("Work", bound=Callable[..., Any])


def hann(size: int) -> Array:
    """Hann window (size,), sampled between its zeros so that every pixel has a positive weight."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size)


def common_weights(whole: Array, match: Array, prior: float) -> tuple[Array, Array, float]:
    """Weights (n,) of all groups together, the mean energy (n,) of candidates, and a floor for energies.

    Candidates that never changed anything have no energy. The floor sets their weights to zero.
    """
    usual = np.diagonal(whole)
    floor = 1e-6 * float(usual.mean()) + 1e-30
    common = np.linalg.solve(whole + np.diag(prior * usual + floor), match).astype(np.float64)
    return common, usual, floor


@dataclass(frozen=True)
class Tiles:
    """Positions of overlapping square tiles in a frame that is continued by its mirror image.

    Every pixel lies in the same number of tiles, also in frames smaller than a tile. Tiles with the same numbers are
    equal, so engines can use them as keys of a cache.
    """

    shape: Shape  # (height, width) of the frames
    size: int  # side of a tile, a multiple of `stride`
    stride: int  # distance between neighbouring tiles

    def __post_init__(self) -> None:
        if self.size % self.stride:
            raise ValueError(
                f"size={self.size} is not a multiple of stride={self.stride}; use a stride that divides it"
            )

    @property
    def lead(self) -> int:
        """Number of mirrored rows, and of mirrored columns, before the frame."""
        return self.size - self.stride

    @cached_property
    def mirrored(self) -> tuple[Ints, Ints]:
        """For each row and each column of the continued frame, its index in the frame."""
        ends = ((self.lead, self.lead + -(length + self.lead) % self.stride) for length in self.shape)
        down, right = (np.pad(np.arange(n), end, mode="symmetric") for n, end in zip(self.shape, ends, strict=True))
        return down, right

    @cached_property
    def layout(self) -> Shape:
        """Numbers of rows and columns of tiles."""
        down, right = ((len(indices) - self.size) // self.stride + 1 for indices in self.mirrored)
        return down, right

    @cached_property
    def window(self) -> Levels:
        """Hann window (size, size)."""
        return np.outer(hann(self.size), hann(self.size)).astype(np.float32)

    @cached_property
    def weight(self) -> Levels:
        """Sum (height, width) of the squared windows over each pixel: the divisor of overlap-add."""
        sums = []
        for n_tiles, length in zip(self.layout, self.shape, strict=True):
            total = np.zeros((n_tiles - 1) * self.stride + self.size)
            for k in range(n_tiles):
                total[k * self.stride : k * self.stride + self.size] += hann(self.size) ** 2
            sums.append(total[self.lead : self.lead + length])
        return np.outer(*sums).astype(np.float32)


class FrameKernels(Protocol):
    """Kernels for whole frames on one kind of hardware."""

    # Arrays and how work is carried out

    def levels(self, values: ArrayLike) -> AnyArray:
        """Engine array of float32 with these values, or of complex64 if they are complex."""

    def numpy(self, values: AnyArray) -> AnyArray:
        """NumPy array with the values of an engine array."""

    def capture(self, work: Work) -> Work:
        """Work on engine arrays, and tuples of them, that never reads a result: on a GPU it becomes one launch."""

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        """Results of several independent functions, run in parallel on a CPU; put the longest first.

        None may change what another one reads, so that the order does not matter. A GPU runs them one after the other.
        """

    # Short-space Fourier transform

    def spectra(self, frame: Levels, tiles: Tiles) -> Complex:
        """Fourier coefficients (rows, columns, size, size // 2 + 1) of the tiles of a frame under the window.

        The weighted mean of each tile is subtracted first.
        """

    def next_spectra(
        self, frame: Levels, tiles: Tiles, before: Complex, cross: tuple[Complex, ...], kept: tuple[float, ...]
    ) -> tuple[Complex, tuple[Complex, ...]]:
        """`spectra` of a frame, and cross-spectra ``kept * cross + now * conj(before)``; no array is changed."""

    def advanced(self, now: Complex, cross: tuple[Complex, ...], tiles: Tiles) -> Levels:
        """Changes (n, height, width) of a frame if its coefficients turn by the phases of n cross-spectra.

        Coefficients without a phase stay as they are.
        """

    # Motion

    def flow(self, before: Levels, now: Levels) -> Levels:
        """Displacement (2, height, width) from each pixel to its origin in the frame before: pyramidal Lucas-Kanade."""

    def moved(self, frame: Levels, flow: Levels) -> Levels:
        """The frame (height, width) read at (y, x) + flow[:, y, x] by Catmull-Rom interpolation; edges are repeated."""

    # Detail

    def bands(self, changes: Levels, widths: tuple[float, ...], parts: Levels) -> None:
        """Fill the bands (n_widths + 1, n, height, width), fine first, of changes (n, height, width).

        The bands are differences of Gaussians, each of what the one before has left, and add up to the changes. Frames
        are continued by their mirror image.
        """

    def neighbours(self, frame: Levels, offsets: tuple[Shape, ...], base: Levels, found: Levels) -> None:
        """Fill the levels (n, height, width) of the pixels at n offsets (down, right) of each, less `base`.

        Edges are repeated.
        """

    # Cells: squares of `cell` pixels

    def cell_moments(self, candidates: Levels, change: Levels, cell: int) -> CellSums:
        """Inner products by cell of candidates (n, height, width), with each other and with the change (height, width).

        (rows, columns, n, n) and (rows, columns, n).
        """

    def add_moments(
        self, gram: Levels, match: Levels, kept: float, candidates: Levels, change: Levels, weight: float, cell: Shape
    ) -> None:
        """Scale moments by `kept` and add `weight` times those of cells (height, width), in place.

        There may be more cells than the frame fills.
        """

    def cell_energy(self, change: Levels, cell: int) -> Levels:
        """Sum of squares (rows, columns) of a change (height, width) by cell."""

    def cell_weights(
        self, gram: Levels, match: Levels, ridge: float, prior: float, known: CellSums | None, rows: slice = slice(None)
    ) -> Levels:
        """Ridge-regression weights (rows, columns, n) of cells, from moments pooled with those of the cells around.

        Pooling uses the binomial kernel (1, 2, 1) / 4 along both axes. The penalty is `ridge` times the energy of each
        candidate, in the cell and on average, and pulls to the common weights of all cells. These are pulled to zero by
        `prior` times the energy. Prior moments `known`, (n, n) and (n,) on the host, are added to the common ones.
        Only a contiguous range of `rows` of cells is solved for.
        """

    def weighted(self, candidates: Levels, weights: Levels, cell: int) -> Levels:
        """Sum (height, width) of candidates (n, height, width) with weights (rows, columns, n).

        Weights belong to the centres of cells and are interpolated bilinearly between them.
        """

    # Networks

    def perceptron(self, inputs: tuple[Levels, ...], layers: Layers) -> Levels:
        """Output (height, width) of a network at every pixel, from inputs (n, height, width) in several arrays.

        Layers are weights (inputs, outputs) and biases (outputs,). All layers but the last are rectified.
        """
