"""Operations on whole frames that every engine has: spectra of tiles, optical flow, least squares in cells, networks.

Arrays are float32 or complex64, which is precise enough: grey levels have few digits, and a sum over a cell has a few
dozen terms. A candidate is a map (height, width), and a weighted sum of candidates predicts the change of a frame. A
cell is a square of pixels with the same weights. Only the regression over all cells together is solved in float64.
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
Factors = tuple[float, ...]
CellSums = tuple[Levels, Levels]  # inner products of the candidates with each other, and with the change
Work = TypeVar("Work", bound=Callable[..., Any])


def hann(size: int) -> Array:
    """Return a Hann window (size,) without zeros. It is sampled at half-integers, so every pixel has some weight."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size)


def common_weights(whole: Array, match: Array, prior: float) -> tuple[Array, Array, float]:
    """Return ridge weights (n,) of one regression over all cells, the candidates' energies (n,), and a penalty floor.

    `whole` (n, n) and `match` (n,) are the normal equations, averaged over cells. The energies are the diagonal of
    `whole`. The penalty is ``prior * energy + floor``, so a candidate without energy gets the weight zero.
    """
    usual = np.diagonal(whole)
    floor = 1e-6 * float(usual.mean()) + 1e-30
    common = np.linalg.solve(whole + np.diag(prior * usual + floor), match).astype(np.float64)
    return common, usual, floor


@dataclass(frozen=True)
class Tiles:
    """Positions of overlapping square tiles in a frame that is extended by mirroring at its borders.

    Every pixel lies in the same number of tiles, even if the frame is smaller than a tile. Tiles with equal fields
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
        """Return the number of mirrored rows above the frame. There are as many mirrored columns to its left."""
        return self.size - self.stride

    @cached_property
    def mirrored(self) -> tuple[Ints, Ints]:
        """Return the frame's row index for each row of the extended frame, and the column index for each column."""
        ends = ((self.lead, self.lead + -(length + self.lead) % self.stride) for length in self.shape)
        down, right = (np.pad(np.arange(n), end, mode="symmetric") for n, end in zip(self.shape, ends, strict=True))
        return down, right

    @cached_property
    def layout(self) -> Shape:
        """Return the number of rows and the number of columns of tiles."""
        down, right = ((len(indices) - self.size) // self.stride + 1 for indices in self.mirrored)
        return down, right

    @cached_property
    def window(self) -> Levels:
        """Return the two-dimensional Hann window (size, size) of a tile."""
        return np.outer(hann(self.size), hann(self.size)).astype(np.float32)

    @cached_property
    def weight(self) -> Levels:
        """Return the sum (height, width) of the squared windows of all tiles, by which overlap-add divides."""
        sums = []
        for n_tiles, length in zip(self.layout, self.shape, strict=True):
            total = np.zeros((n_tiles - 1) * self.stride + self.size)
            for k in range(n_tiles):
                total[k * self.stride : k * self.stride + self.size] += hann(self.size) ** 2
            sums.append(total[self.lead : self.lead + length])
        return np.outer(*sums).astype(np.float32)


class FrameKernels(Protocol):
    """Operations on whole frames, on one device."""

    # Arrays and how work is carried out

    def levels(self, values: ArrayLike) -> AnyArray:
        """Return the values as a float32 array on the engine's device, or complex64 if they are complex."""

    def numpy(self, values: AnyArray) -> AnyArray:
        """Return an array of the engine as a NumPy array."""

    def capture(self, work: Work) -> Work:
        """Return a function that runs `work` as one GPU launch (a CUDA graph), or `work` itself on a CPU.

        `work` takes arrays of the engine or tuples of them, and must not read a result on the host.
        """

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        """Call independent functions and return their results. A CPU calls them in parallel, a GPU one after the other.

        No function may change what another one reads. Put the function that takes longest first.
        """

    # Short-space Fourier transform

    def spectra(self, frame: Levels, tiles: Tiles) -> Complex:
        """Return the Fourier coefficients (rows, columns, size, size // 2 + 1) of the windowed tiles of a frame.

        The window-weighted mean of each tile is subtracted first.
        """

    def next_spectra(
        self, frame: Levels, tiles: Tiles, before: Complex, cross: tuple[Complex, ...], kept: tuple[float, ...]
    ) -> tuple[Complex, tuple[Complex, ...]]:
        """Return the spectra ``now`` of a frame, and updated cross-spectra ``kept * cross + now * conj(before)``."""

    def advanced(self, now: Complex, cross: tuple[Complex, ...], tiles: Tiles) -> Levels:
        """Return n predicted changes (n, height, width) of a frame, one for each of n cross-spectra of earlier frames.

        For change i, each Fourier coefficient in `now` is rotated by the phase of cross-spectrum i. The change is the
        resulting frame minus the present one. A coefficient whose cross-spectrum is zero is not rotated.
        """

    # Motion

    def flow(self, before: Levels, now: Levels) -> Levels:
        """Return the optical flow (2, height, width) from each pixel of `now` to its origin in `before`.

        The method is pyramidal Lucas-Kanade. The components are down and right.
        """

    def moved(self, frame: Levels, flow: Levels) -> Levels:
        """Return the frame (height, width) warped by a flow: pixel (y, x) is read at (y, x) + flow[:, y, x].

        Interpolation is Catmull-Rom. Positions outside the frame take the value of the nearest edge.
        """

    # Detail

    def bands(self, changes: Levels, widths: tuple[float, ...], parts: Levels) -> None:
        """Split changes (n, height, width) into spatial bands, written to `parts` (n_widths + 1, n, height, width).

        Bands are differences of Gaussians with standard deviations `widths`, from fine to coarse. They add up to the
        changes. Frames are mirrored at their borders.
        """

    def neighbours(self, frame: Levels, offsets: tuple[Shape, ...], base: Levels, found: Levels) -> None:
        """Fill `found` (n, height, width) with differences: the level at n offsets (down, right) minus `base`.

        Positions outside the frame take the value of the nearest edge.
        """

    # Cells: squares with sides of `cell` pixels

    def cell_moments(self, candidates: Levels, change: Levels, cell: int) -> CellSums:
        """Return the normal equations of each cell for the regression of the true change on n candidates.

        The first array (rows, columns, n, n) has the inner products of candidates (n, height, width) over the pixels of
        each cell. The second (rows, columns, n) has their inner products with the true change (height, width).
        """

    def add_moments(
        self, known: CellSums, kept: Factors, maps: Levels, change: Levels, weight: float, cell: Shape, out: CellSums
    ) -> None:
        """Write ``kept[k] * known[k] + weight * new`` to `out`, for each k.

        The arrays are moments, as `cell_moments` returns them, with one more axis (k) before the others. The moments
        ``new`` are computed from the candidates `maps` and the true change. `cell` is the height and width of a cell.
        The moments may have more cells than the frame. `out` may be the same arrays as `known`.
        """

    def cell_energy(self, change: Levels, cell: int) -> Levels:
        """Return the sum of squares (rows, columns) of a change (height, width) over the pixels of each cell."""

    def cell_weights(
        self, gram: Levels, match: Levels, ridge: float, prior: float, known: CellSums | None, rows: slice = slice(None)
    ) -> Levels:
        """Return the weights (rows, columns, n) of the candidates in each cell, by ridge regression.

        `gram` and `match` are the arrays of `cell_moments`. They are first averaged over neighbouring cells by the
        binomial kernel (1, 2, 1) / 4 along both axes. A penalty shrinks the weights of a cell towards those of one
        regression over all cells. For a candidate, it is ``ridge * (e + m)``, where e is its energy in the cell and m
        its mean energy over cells. The regression over all cells shrinks weights towards zero, by ``prior * m``. If
        NumPy arrays `known`, (n, n) and (n,), are given, they are added to the moments of this regression. The slice
        `rows` selects the rows of cells to solve.
        """

    def weighted(self, candidates: Levels, weights: Levels, cell: int) -> Levels:
        """Return the weighted sum (height, width) of candidates (n, height, width), with weights (rows, columns, n).

        A cell's weights apply at its centre. Between centres they are interpolated bilinearly.
        """

    # Networks

    convolves: bool  # whether a convolutional network at every pixel takes little time

    def network(self, inputs: tuple[Levels, ...], layers: Layers) -> Levels:
        """Return the output (height, width) of a convolutional network with square filters.

        The inputs (n, height, width) may come in several arrays. A layer has weights (side * side, inputs, outputs) and
        biases (outputs,), where `side` is odd. A ReLU follows each layer but the last. Positions outside the frame take
        the inputs of the nearest edge.
        """
