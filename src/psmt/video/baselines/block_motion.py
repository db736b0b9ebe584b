"""Causal block-matching motion compensation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from psmt.engines.frame_kernels import hann
from psmt.types import Levels
from psmt.utils.jit import njit
from psmt.utils.validation import Constraint, count
from psmt.video.baselines.base import FrameBaseline


class BlockMotion(FrameBaseline):
    """Block-matching motion compensation, causal and overlapped: what moved goes on as it moved.

    For each block of the last frame the place that it came from in the frame before is searched, to a fraction of a
    pixel; the prediction takes the block from as far again up the same way. Blocks overlap and fade into each other.

    Parameters
    ----------
    block : int, default 16
        Side of a block in pixels; neighbours are half a block apart.
    reach : int, default 8
        Largest motion in pixels per frame, along each axis.
    """

    n_last = 2
    _parameter_constraints: ClassVar[dict[str, Constraint]] = {"block": count(2), "reach": count()}

    def __init__(self, *, block: int = 16, reach: int = 8) -> None:
        self.block = block
        self.reach = reach

    def next_frame(self, last: Levels) -> Levels:
        """Return the frame after the last few."""
        # Half a block of margin on each side, so that corners are in as many blocks as the middle; the rest is the
        # reach of the search, and of the motion that goes on, and a pixel to interpolate with.
        half = self.block // 2
        margin = half + self.reach + 1
        before, now = (np.pad(frame, margin, mode="symmetric") for frame in last)
        height, width = self.shape_
        fade = hann(2 * half).astype(np.float32)
        return _move_blocks(before, now, height, width, half, self.reach, np.outer(fade, fade))


@njit(cache=True, nogil=True, fastmath=True)
def _move_blocks(before: Levels, now: Levels, height: int, width: int, half: int, reach: int, fade: Levels) -> Levels:
    """Frame (height, width) after `now`; both frames have a margin of half + reach + 1 pixels."""
    margin = half + reach + 1
    side = 2 * half
    total = np.zeros((height, width), dtype=np.float32)
    weight = np.zeros((height, width), dtype=np.float32)
    errors = np.empty((2 * reach + 1, 2 * reach + 1), dtype=np.float32)
    for top in range(-half, height, half):
        for left in range(-half, width, half):
            row, column = min(top + margin, height + reach + 1), min(left + margin, width + reach + 1)
            down, right = _search(before, now, row, column, side, reach, errors)
            for y in range(max(margin - row, 0), min(height + margin - row, side)):
                for x in range(max(margin - column, 0), min(width + margin - column, side)):
                    value = _between(now, row + y - down, column + x - right)
                    total[row - margin + y, column - margin + x] += fade[y, x] * value
                    weight[row - margin + y, column - margin + x] += fade[y, x]
    return total / weight


@njit(cache=True, nogil=True, fastmath=True)
def _search(
    before: Levels, now: Levels, row: int, column: int, side: int, reach: int, errors: Levels
) -> tuple[float, float]:
    """How far down and right the block at (row, column) of `now` came; `errors` is room to work in."""
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            error = np.float32(0.0)
            for y in range(side):
                for x in range(side):
                    gap = now[row + y, column + x] - before[row + reach - i + y, column + reach - j + x]
                    error += gap * gap
            errors[i, j] = error
    # Standing still wins a tie, so that flat ground does not wander.
    best_i, best_j, best = reach, reach, errors[reach, reach]
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            if errors[i, j] < np.float32(0.999) * best:
                best_i, best_j, best = i, j, errors[i, j]
    down, right = best_i - reach + _vertex(errors[:, best_j], best_i), best_j - reach + _vertex(errors[best_i], best_j)
    error = np.float32(0.0)
    for y in range(side):
        for x in range(side):
            gap = now[row + y, column + x] - _between(before, row + y - down, column + x - right)
            error += gap * gap
    # The parabola is a guess: it counts where it explains more than whole pixels do.
    if error < best:
        return down, right
    return float(best_i - reach), float(best_j - reach)


@njit(cache=True, nogil=True)
def _vertex(errors: Levels, k: int) -> float:
    """How far from k the parabola through three errors has its lowest point; 0 at the ends and where it has none."""
    if k == 0 or k == len(errors) - 1:
        return 0.0
    bend = errors[k - 1] - 2 * errors[k] + errors[k + 1]
    if bend <= 0:
        return 0.0
    offset: float = min(max(0.5 * (errors[k - 1] - errors[k + 1]) / bend, -0.5), 0.5)
    return offset


@njit(cache=True, nogil=True, fastmath=True)
def _between(frame: Levels, y: float, x: float) -> float:
    """Grey level between four pixels, by bilinear interpolation."""
    i, j = int(np.floor(y)), int(np.floor(x))
    a, b = np.float32(y - i), np.float32(x - j)
    upper = frame[i, j] + b * (frame[i, j + 1] - frame[i, j])
    lower = frame[i + 1, j] + b * (frame[i + 1, j + 1] - frame[i + 1, j])
    level: float = upper + a * (lower - upper)
    return level
