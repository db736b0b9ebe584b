"""Bands of detail: differences of Gaussians."""

from __future__ import annotations

from functools import partial

import numpy as np

from psmt.compiled import njit
from psmt.engines.numba.fan_out import in_threads
from psmt.types import Ints, Levels

_ROWS = 32
"""Rows of a map that one thread takes at a time."""


def bands(changes: Levels, widths: tuple[float, ...]) -> Levels:
    """Changes (n, height, width) in bands (n_widths + 1, n, height, width) of detail, fine first."""
    n, height, width = changes.shape
    parts: Levels = np.empty((len(widths) + 1, *changes.shape), np.float32)
    pieces = -(-height // _ROWS)
    left: Levels = changes
    for k, deviation in enumerate(widths):
        taps = gaussian_taps(deviation)
        radius = len(taps) // 2
        down, right = (np.pad(np.arange(length), radius, mode="symmetric") for length in (height, width))

        # What is left is read around each pixel, so it may not lie where the next band comes to lie.
        smooth: Levels = np.empty_like(changes) if k + 1 < len(widths) else parts[-1]
        work = partial(_part_map, left, taps, down, right, parts[k], smooth, pieces)
        in_threads(work, n * pieces, 1)
        left = smooth
    return parts


def _part_map(
    left: Levels, taps: Levels, down: Ints, right: Ints, fine: Levels, smooth: Levels, pieces: int, item: slice
) -> None:
    """Part one piece of one of the maps (n, height, width)."""
    which, piece = divmod(item.start, pieces)
    rows = slice(piece * _ROWS, (piece + 1) * _ROWS)
    _part(left[which], taps, down, right, rows.start, fine[which, rows], smooth[which, rows])


def gaussian_taps(deviation: float) -> Levels:
    """Sampled Gaussian (2 radius + 1,) that sums to 1, cut off at four standard deviations."""
    radius = int(4.0 * deviation + 0.5)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation) ** 2)
    normalised: Levels = (taps / taps.sum()).astype(np.float32)
    return normalised


@njit(cache=True, nogil=True, fastmath=True)
def _part(levels: Levels, taps: Levels, down: Ints, right: Ints, first: int, fine: Levels, smooth: Levels) -> None:
    """Fill some rows of a map (height, width), from the first on, less their smooth version, and that."""
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
