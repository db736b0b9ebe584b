"""What an engine gives for whole frames: tiles and their spectra, least squares by cell, and weighted sums.

All arrays are an engine's own, in float32 (or complex64): grey levels have few digits, and what is summed over a cell
is a few dozen numbers. What must be exact, the common weights of all cells, is solved in float64.
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

Work = TypeVar("Work", bound=Callable[..., Any])


def hann(size: int) -> Array:
    """Hann window (size,), sampled between its zeros so that no pixel is lost."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size)


def common_weights(whole: Array, match: Array, prior: float) -> tuple[Array, Array, float]:
    """Weights (n,) of all groups together, the usual energy (n,) of candidates, and a floor for energies.

    Candidates that never moved anything have no energy: the floor leaves their weights at zero.
    """
    usual = np.diagonal(whole)
    floor = 1e-6 * float(usual.mean()) + 1e-30
    common = np.linalg.solve(whole + np.diag(prior * usual + floor), match).astype(np.float64)
    return common, usual, floor


@dataclass(frozen=True)
class Tiles:
    """Where overlapping square tiles lie in a frame that is continued by its mirror image.

    Every pixel lies in the same number of tiles, and frames smaller than a tile need no other treatment. Two are equal
    if their numbers are: engines keep what they make of them.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    size : int
        Side of a tile, a multiple of `stride`.
    stride : int
        Distance between neighbouring tiles.
    """

    shape: tuple[int, int]
    size: int
    stride: int

    def __post_init__(self) -> None:
        if self.size % self.stride:
            raise ValueError(
                f"size={self.size} is not a multiple of stride={self.stride}; use a stride that divides it"
            )

    @property
    def lead(self) -> int:
        """Rows, and columns, of mirror image before the frame."""
        return self.size - self.stride

    @cached_property
    def mirrored(self) -> tuple[Ints, Ints]:
        """Rows and columns of the frame that those of the continued frame show."""
        ends = ((self.lead, self.lead + -(length + self.lead) % self.stride) for length in self.shape)
        down, right = (np.pad(np.arange(n), end, mode="symmetric") for n, end in zip(self.shape, ends, strict=True))
        return down, right

    @cached_property
    def layout(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        down, right = ((len(indices) - self.size) // self.stride + 1 for indices in self.mirrored)
        return down, right

    @cached_property
    def window(self) -> Levels:
        """Hann window (size, size)."""
        return np.outer(hann(self.size), hann(self.size)).astype(np.float32)

    @cached_property
    def weight(self) -> Levels:
        """Sum (height, width) of the squared windows over each pixel, which overlap-add is divided by."""
        sums = []
        for n_tiles, length in zip(self.layout, self.shape, strict=True):
            total = np.zeros((n_tiles - 1) * self.stride + self.size)
            for k in range(n_tiles):
                total[k * self.stride : k * self.stride + self.size] += hann(self.size) ** 2
            sums.append(total[self.lead : self.lead + length])
        return np.outer(*sums).astype(np.float32)


class FrameKernels(Protocol):
    """Kernels for whole frames on one kind of hardware."""

    # Arrays

    def levels(self, values: ArrayLike) -> AnyArray:
        """Own array of float32 with these values, or of complex64 where they are complex."""

    def numpy(self, values: AnyArray) -> AnyArray:
        """A NumPy array with the values of an own one."""

    def capture(self, work: Work) -> Work:
        """Work on own arrays, and tuples of them, that never looks at a result: on a GPU all of it is one launch."""

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        """What each of several independent pieces of work returns, done side by side; the longest should come first.

        None may change what another one reads: nothing depends on who comes first. A GPU is busy as it is, so there
        they are done in turn.
        """

    # Short-space Fourier transform

    def spectra(self, frame: Levels, tiles: Tiles) -> Complex:
        """Fourier coefficients (rows, columns, size, size // 2 + 1) of the tiles of a frame under the window.

        Each tile is taken less its weighted mean, so that only what varies in it is seen through the window.
        """

    def next_spectra(
        self, frame: Levels, tiles: Tiles, before: Complex, cross: tuple[Complex, ...], kept: tuple[float, ...]
    ) -> tuple[Complex, tuple[Complex, ...]]:
        """`spectra` of a frame, and cross-spectra ``kept * cross + now * conj(before)``; none is changed in place."""

    def advanced(self, now: Complex, cross: tuple[Complex, ...], tiles: Tiles) -> Levels:
        """Changes (n, height, width) of a frame if its coefficients turn on by the phases of n cross-spectra.

        Where there is no phase, coefficients stay as they are.
        """

    # Motion

    def flow(self, before: Levels, now: Levels) -> Levels:
        """Where each pixel of a frame came from in the one before, (2, height, width): pyramidal Lucas-Kanade."""

    def moved(self, frame: Levels, flow: Levels) -> Levels:
        """The frame (height, width) read at (y, x) + flow[:, y, x], by Catmull-Rom interpolation; the edge goes on."""

    # Detail

    def bands(self, changes: Levels, widths: tuple[float, ...], parts: Levels) -> None:
        """Fill the bands (n_widths + 1, n, height, width), fine first, of changes (n, height, width).

        They add up to the changes: differences of Gaussians, each applied to what the one before has left. The frame
        goes on beyond its edge as its mirror image.
        """

    def neighbours(self, frame: Levels, offsets: tuple[tuple[int, int], ...], base: Levels, found: Levels) -> None:
        """Fill the levels (n, height, width) of the pixels so far (down, right) of each, less `base`.

        The edge goes on.
        """

    # Cells: squares of `cell` pixels

    def cell_moments(self, candidates: Levels, change: Levels, cell: int) -> tuple[Levels, Levels]:
        """Inner products by cell of candidates (n, height, width), with each other and with the change (height, width).

        (rows, columns, n, n) and (rows, columns, n).
        """

    def add_moments(
        self,
        gram: Levels,
        match: Levels,
        kept: float,
        candidates: Levels,
        change: Levels,
        weight: float,
        cell: tuple[int, int],
    ) -> None:
        """Scale moments by `kept` and add those of cells so tall and wide, times the weight, to them in place.

        There may be more cells than the frame fills.
        """

    def cell_energy(self, change: Levels, cell: int) -> Levels:
        """Sum of squares (rows, columns) of a change (height, width) by cell."""

    def cell_weights(
        self,
        gram: Levels,
        match: Levels,
        ridge: float,
        prior: float,
        known: tuple[Levels, Levels] | None,
        rows: slice = slice(None),
    ) -> Levels:
        """Ridge-regression weights (rows, columns, n) of cells, from moments pooled with those of the cells around.

        Pooling is by the binomial kernel (1, 2, 1) / 4 along both axes. The penalty is `ridge` times the energy of each
        candidate, in the cell and on average, and pulls to the common weights of all cells. These are pulled to zero by
        `prior` times the energy. What is `known` beforehand, (n, n) and (n,) on the host, is added to their moments.
        Only these `rows` of cells, which lie together, are solved for.
        """

    def weighted(self, candidates: Levels, weights: Levels, cell: int) -> Levels:
        """Sum (height, width) of candidates (n, height, width) with weights (rows, columns, n).

        Weights hold at the centres of cells and are interpolated bilinearly between them.
        """

    # Networks

    def perceptron(self, inputs: tuple[Levels, ...], layers: Layers) -> Levels:
        """Output (height, width) of a network at every pixel, from inputs (n, height, width), some here, some there.

        Layers are weights (inputs, outputs) and biases (outputs,); units of all but the last are rectified.
        """
