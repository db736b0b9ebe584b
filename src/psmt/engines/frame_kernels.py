"""Kernels for whole frames that every engine has: tiles and their spectra, least squares by cell, weighted sums.

Arrays are engine arrays of float32 or complex64, which is precise enough: grey levels have few digits, and a sum over a
cell has a few dozen terms. Only the weights that all cells share are solved for in float64. A cell is a square of
pixels that share weights. Candidates are maps (height, width) whose weighted sum predicts the change of a frame.
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
CellSums = tuple[Levels, Levels]  # inner products of the candidates with each other, and with the change
Work = TypeVar("Work", bound=Callable[..., Any])


def hann(size: int) -> Array:
    """Return the Hann window (size,), sampled between its zeros so that every pixel has a positive weight."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size)


def common_weights(whole: Array, match: Array, prior: float) -> tuple[Array, Array, float]:
    """Return least-squares weights (n,) common to all cells, the mean energies (n,) of the candidates, and a floor.

    `whole` (n, n) and `match` (n,) are the mean moments of all cells. The weights are pulled towards zero by `prior`
    times the energies. The floor is added to the energies, so that a candidate without energy gets the weight zero.
    """
    usual = np.diagonal(whole)
    floor = 1e-6 * float(usual.mean()) + 1e-30
    common = np.linalg.solve(whole + np.diag(prior * usual + floor), match).astype(np.float64)
    return common, usual, floor


@dataclass(frozen=True)
class Tiles:
    """Positions of overlapping square tiles in a frame that is continued by its mirror image.

    Every pixel lies in the same number of tiles, also if the frame is smaller than a tile. Tiles with equal fields
    compare equal, so engines can use them as keys of a cache.
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
        """Return the number of mirrored rows before the frame, which equals the number of mirrored columns."""
        return self.size - self.stride

    @cached_property
    def mirrored(self) -> tuple[Ints, Ints]:
        """Return the index in the frame for each row, and for each column, of the frame with its mirrored borders."""
        ends = ((self.lead, self.lead + -(length + self.lead) % self.stride) for length in self.shape)
        down, right = (np.pad(np.arange(n), end, mode="symmetric") for n, end in zip(self.shape, ends, strict=True))
        return down, right

    @cached_property
    def layout(self) -> Shape:
        """Return the numbers of rows and columns of tiles."""
        down, right = ((len(indices) - self.size) // self.stride + 1 for indices in self.mirrored)
        return down, right

    @cached_property
    def window(self) -> Levels:
        """Return the Hann window (size, size)."""
        return np.outer(hann(self.size), hann(self.size)).astype(np.float32)

    @cached_property
    def weight(self) -> Levels:
        """Return the sum (height, width) of the squared windows at each pixel, by which overlap-add divides."""
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
        """Return an engine array of float32 with the given values, or of complex64 if they are complex."""

    def numpy(self, values: AnyArray) -> AnyArray:
        """Return a NumPy array with the values of an engine array."""

    def capture(self, work: Work) -> Work:
        """On a GPU, return a function that runs the work as one launch. On a CPU, return `work` unchanged.

        The work takes engine arrays or tuples of them, and must not read a result on the host.
        """

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        """Return the results of several independent functions, which a CPU runs in parallel and a GPU in order.

        No function may change what another one reads. Put the function that takes longest first.
        """

    # Short-space Fourier transform

    def spectra(self, frame: Levels, tiles: Tiles) -> Complex:
        """Return the Fourier coefficients (rows, columns, size, size // 2 + 1) of the windowed tiles of a frame.

        The weighted mean of each tile is subtracted first.
        """

    def next_spectra(
        self, frame: Levels, tiles: Tiles, before: Complex, cross: tuple[Complex, ...], kept: tuple[float, ...]
    ) -> tuple[Complex, tuple[Complex, ...]]:
        """Return the spectra ``now`` of a frame, and ``kept * cross + now * conj(before)`` for each cross-spectrum."""

    def advanced(self, now: Complex, cross: tuple[Complex, ...], tiles: Tiles) -> Levels:
        """Return n changes (n, height, width) of a frame, one for each cross-spectrum.

        Change i is the frame with coefficients `now` rotated by the phases of cross-spectrum i, minus the frame itself.
        A coefficient whose cross-spectrum is zero keeps its phase.
        """

    # Motion

    def flow(self, before: Levels, now: Levels) -> Levels:
        """Return the displacement (2, height, width) from each pixel of `now` to its origin in `before`.

        The method is pyramidal Lucas-Kanade.
        """

    def moved(self, frame: Levels, flow: Levels) -> Levels:
        """Return the frame (height, width) read at (y, x) + flow[:, y, x] by Catmull-Rom interpolation.

        Positions outside the frame take the value of the nearest edge.
        """

    # Detail

    def bands(self, changes: Levels, widths: tuple[float, ...], parts: Levels) -> None:
        """Split changes (n, height, width) into bands and write these to `parts` (n_widths + 1, n, height, width).

        Bands are differences of Gaussians, from fine to coarse, and add up to the changes. Frames are continued by
        their mirror image.
        """

    def neighbours(self, frame: Levels, offsets: tuple[Shape, ...], base: Levels, found: Levels) -> None:
        """Write the levels at n offsets (down, right) from each pixel, minus `base`, to `found` (n, height, width).

        Positions outside the frame take the value of the nearest edge.
        """

    # Cells: squares with sides of `cell` pixels

    def cell_moments(self, candidates: Levels, change: Levels, cell: int) -> CellSums:
        """Return two arrays of moments, which are inner products over the pixels of each cell.

        The first array (rows, columns, n, n) has the products of candidates (n, height, width) with each other. The
        second (rows, columns, n) has their products with the true change (height, width).
        """

    def add_moments(
        self, known: CellSums, kept: float, maps: Levels, change: Levels, weight: float, cell: Shape, out: CellSums
    ) -> None:
        """Write ``kept * known + weight * new`` to `out`, where ``new`` are the moments of `maps` and `change`.

        `maps` are the candidates, and `cell` is the height and width of a cell. The arrays of moments may have more
        cells than the frame fills. `out` may be `known` itself.
        """

    def cell_energy(self, change: Levels, cell: int) -> Levels:
        """Return the sum of squares (rows, columns) of a change (height, width) in each cell."""

    def cell_weights(
        self, gram: Levels, match: Levels, ridge: float, prior: float, known: CellSums | None, rows: slice = slice(None)
    ) -> Levels:
        """Return ridge-regression weights (rows, columns, n) of cells, from moments pooled with neighbouring cells.

        `gram` and `match` are the moments that `cell_moments` returns. They are pooled by the binomial kernel
        (1, 2, 1) / 4 along both axes. The ridge penalty pulls the weights of a cell towards the common weights of all
        cells. The penalty of a candidate is `ridge` times the sum of its energy in the cell and its mean energy. The
        common weights are pulled towards zero by `prior` times the energy. If `known` moments (n, n) and (n,) are
        given, on the host, they are added to the common moments. Only the contiguous range `rows` of cells is solved
        for.
        """

    def weighted(self, candidates: Levels, weights: Levels, cell: int) -> Levels:
        """Return the sum (height, width) of candidates (n, height, width) with weights (rows, columns, n).

        Weights belong to the centres of cells and are interpolated bilinearly in between.
        """

    # Networks

    convolves: bool  # whether a convolutional network at every pixel takes little time

    def network(self, inputs: tuple[Levels, ...], layers: Layers) -> Levels:
        """Return the output (height, width) of a network of convolutions by square filters.

        The inputs (n, height, width) may come in several arrays. A layer has weights (side * side, inputs, outputs) and
        biases (outputs,). The side of its filters is odd. All layers but the last are rectified. Positions outside the
        frame take the inputs of the nearest edge.
        """
