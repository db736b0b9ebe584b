"""Kernels for whole frames on the CPU (see `psmt.engines.frame_kernels.FrameKernels`): bands, neighbours, networks.

Tiles, cells and motion have modules of their own.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from psmt.engines.frame_kernels import Complex, Layers, Tiles, Work
from psmt.engines.numba import cells
from psmt.engines.numba import flow as flow_kernels
from psmt.engines.numba import tiles as tile_kernels
from psmt.engines.numba.fan_out import in_threads, together
from psmt.types import AnyArray, Ints, Levels
from psmt.utils.jit import njit

_ROWS = 100  # rows of a map that one thread takes at a time
_PIXELS = 8192  # pixels on which a thread runs a network at a time: the values between its layers stay in the cache


class NumbaFrameKernels:
    """NumPy, pocketfft and compiled kernels, in as many threads as numba may use.

    Limit BLAS to one thread meanwhile (`psmt.utils.threads.one_blas_thread`).
    """

    together = staticmethod(together)
    next_spectra = staticmethod(tile_kernels.next_spectra)
    advanced = staticmethod(tile_kernels.advanced)
    flow = staticmethod(flow_kernels.flow_between)
    moved = staticmethod(flow_kernels.moved)
    add_moments = staticmethod(cells.add_moments)
    cell_energy = staticmethod(cells.cell_energy)
    cell_weights = staticmethod(cells.cell_weights)
    weighted = staticmethod(cells.weighted)

    def levels(self, values: ArrayLike) -> AnyArray:
        given = np.asarray(values)
        return np.asarray(given, np.complex64 if np.iscomplexobj(given) else np.float32)

    def numpy(self, values: AnyArray) -> AnyArray:
        return values

    def capture(self, work: Work) -> Work:
        return work

    def spectra(self, frame: Levels, tiles: Tiles) -> Complex:
        return tile_kernels.next_spectra(frame, tiles, None, (), ())[0]

    def cell_moments(self, candidates: Levels, change: Levels, cell: int) -> tuple[Levels, Levels]:
        layout = [-(-length // cell) for length in change.shape]
        n = len(candidates)
        gram, match = np.zeros((*layout, n, n), np.float32), np.zeros((*layout, n), np.float32)
        cells.add_moments(gram, match, 0.0, candidates, change, 1.0, (cell, cell))
        return gram, match

    def bands(self, changes: Levels, widths: tuple[float, ...], parts: Levels) -> None:
        _, height, width = changes.shape
        pieces = -(-height // _ROWS)
        left: Levels = changes
        for k, deviation in enumerate(widths):
            taps = _gaussian_taps(deviation)
            down, right = (_mirrored(length, len(taps) // 2) for length in (height, width))
            # The rest is read around each pixel, so it must not share memory with the next band.
            smooth: Levels = np.empty_like(changes) if k + 1 < len(widths) else parts[-1]
            _split_maps(left, taps, down, right, parts[k], smooth, pieces)
            left = smooth

    def neighbours(self, frame: Levels, offsets: tuple[tuple[int, int], ...], base: Levels, found: Levels) -> None:
        def shift(some: slice) -> None:
            for (down, right), levels in zip(offsets[some], found[some], strict=True):
                _shift(frame, down, right, base, levels)

        in_threads(shift, len(offsets), 4)

    def perceptron(self, inputs: tuple[Levels, ...], layers: Layers) -> Levels:
        flat = [part.reshape(len(part), -1) for part in inputs]
        seen = [*zip(np.split(layers[0][0], np.cumsum([len(part) for part in flat])[:-1]), flat, strict=True)]
        found: Levels = np.empty((1, flat[0].shape[1]), np.float32)

        def run(pixels: slice) -> None:
            first, *more = (weights.T @ part[:, pixels] for weights, part in seen)
            values = sum(more, start=first)
            _rectify(values, layers[0][1])
            for weights, biases in layers[1:-1]:
                values = weights.T @ values
                _rectify(values, biases)
            weights, biases = layers[-1]
            np.add(weights.T @ values, biases[:, None], out=found[:, pixels])

        in_threads(run, found.shape[1], _PIXELS)
        return found.reshape(inputs[0].shape[1:])


def _split_maps(left: Levels, taps: Levels, down: Ints, right: Ints, fine: Levels, smooth: Levels, pieces: int) -> None:
    """Split maps (n, height, width) into fine detail and a smooth rest, each in several pieces of rows."""

    def split(item: slice) -> None:
        which, piece = divmod(item.start, pieces)
        rows = slice(piece * _ROWS, (piece + 1) * _ROWS)
        _split(left[which], taps, down, right, rows.start, fine[which, rows], smooth[which, rows])

    in_threads(split, len(left) * pieces, 1)


@cache
def _mirrored(length: int, radius: int) -> Ints:
    """Indices along an axis, continued at either end by `radius` indices of its mirror image."""
    places: Ints = np.pad(np.arange(length), radius, mode="symmetric")
    return places


@cache
def _gaussian_taps(deviation: float) -> Levels:
    """Sampled Gaussian (2 radius + 1,) that sums to 1, cut off at four standard deviations."""
    radius = int(4.0 * deviation + 0.5)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation) ** 2)
    normalised: Levels = (taps / taps.sum()).astype(np.float32)
    return normalised


@njit(cache=True, nogil=True, fastmath=True)
def _split(levels: Levels, taps: Levels, down: Ints, right: Ints, first: int, fine: Levels, smooth: Levels) -> None:
    """Fill the fine detail and the smooth version of some rows of a map (height, width), starting at row `first`."""
    tall, width = smooth.shape
    column, padded = np.empty(width, np.float32), np.empty(right.size, np.float32)
    for i in range(tall):
        column[:] = 0
        for k in range(taps.size):
            seen, tap = levels[down[first + i + k]], taps[k]
            for x in range(width):
                column[x] += tap * seen[x]
        for x in range(right.size):
            padded[x] = column[right[x]]
        into = smooth[i]
        into[:] = 0
        for k in range(taps.size):
            tap, seen = taps[k], padded[k : k + width]
            for x in range(width):
                into[x] += tap * seen[x]
        for x in range(width):
            fine[i, x] = levels[first + i, x] - into[x]


@njit(cache=True, nogil=True)
def _shift(frame: Levels, down: int, right: int, base: Levels, found: Levels) -> None:
    """Fill the levels (height, width) of the pixels at one offset from each, less `base`."""
    height, width = frame.shape
    # For the pixels [first, last) of a row, the neighbour lies inside the frame.
    first = min(max(-right, 0), width)
    last = max(min(width - right, width), first)
    for y in range(height):
        row, own, into = frame[min(max(y + down, 0), height - 1)], base[y], found[y]
        seen, less, inside = row[first + right :], own[first:last], into[first:last]
        for x in range(last - first):
            inside[x] = seen[x] - less[x]
        for x in range(first):
            into[x] = row[0] - own[x]
        for x in range(last, width):
            into[x] = row[width - 1] - own[x]


@njit(cache=True, nogil=True, fastmath=True)
def _rectify(values: Levels, biases: Levels) -> None:
    """Add biases (n,) to values (n, pixels), and set negative results to zero; in place."""
    for k in range(biases.size):
        row, bias = values[k], biases[k]
        for j in range(row.size):
            row[j] = max(row[j] + bias, np.float32(0.0))
