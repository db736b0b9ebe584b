"""What surrounds a pixel: bands of detail (differences of Gaussians), and its neighbours."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from psmt.engines.numba.fan_out import in_threads
from psmt.types import Ints, Levels
from psmt.utils.jit import njit

_ROWS = 100
"""Rows of a map that one thread takes at a time."""


def bands(changes: Levels, widths: tuple[float, ...], parts: Levels) -> None:
    """Fill the bands of detail (n_widths + 1, n, height, width), fine first, of changes (n, height, width)."""
    n, height, width = changes.shape
    pieces = -(-height // _ROWS)
    left: Levels = changes
    for k, deviation in enumerate(widths):
        taps = gaussian_taps(deviation)
        radius = len(taps) // 2
        down, right = (_mirrored(length, radius) for length in (height, width))

        # What is left is read around each pixel, so it may not lie where the next band comes to lie.
        smooth: Levels = np.empty_like(changes) if k + 1 < len(widths) else parts[-1]
        work = partial(_part_map, left, taps, down, right, parts[k], smooth, pieces)
        in_threads(work, n * pieces, 1)
        left = smooth


def _part_map(
    left: Levels, taps: Levels, down: Ints, right: Ints, fine: Levels, smooth: Levels, pieces: int, item: slice
) -> None:
    """Part one piece of one of the maps (n, height, width)."""
    which, piece = divmod(item.start, pieces)
    rows = slice(piece * _ROWS, (piece + 1) * _ROWS)
    _part(left[which], taps, down, right, rows.start, fine[which, rows], smooth[which, rows])


def neighbours(frame: Levels, offsets: tuple[tuple[int, int], ...], base: Levels, found: Levels) -> None:
    """Fill the levels (n, height, width) of the pixels so far (down, right) of each, less `base`; the edge goes on."""

    def shift(some: slice) -> None:
        for (down, right), levels in zip(offsets[some], found[some], strict=True):
            _shift(frame, down, right, base, levels)

    in_threads(shift, len(offsets), 4)


@cache
def _mirrored(length: int, radius: int) -> Ints:
    """Places along an axis, and on either side as many of its mirror image as the radius."""
    places: Ints = np.pad(np.arange(length), radius, mode="symmetric")
    return places


@cache
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


@njit(cache=True, nogil=True)
def _shift(frame: Levels, down: int, right: int, base: Levels, found: Levels) -> None:
    """Fill the levels (height, width) of the pixels so far from each, less `base`."""
    height, width = frame.shape
    # From the first to before the last pixel of a row, the one to the right lies in the frame.
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
