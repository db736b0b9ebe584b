"""Dense optical flow (pyramidal Lucas-Kanade), and frames that are moved along it.

Fourier planes follow what moves by less than half a tile; flow is found from coarse to fine, so that it follows faster
motion, and it has sharp borders where a thing moves before a ground that does not.
"""

from __future__ import annotations

import numpy as np

from psmt.compiled import njit
from psmt.types import Levels

_LEVELS = 4
"""Halvings of the frame, at the most: motion of up to 16 pixels per frame is one or two pixels in the smallest."""

_SMALLEST = 12
"""No level of the pyramid is smaller than this many pixels along an edge."""

_STEPS = 3
"""Gauss-Newton steps per level."""

_RADIUS = 3
"""Of the box that motion is taken to be alike in; it is applied twice, which comes close to a Gaussian."""

_DAMPING = 0.01
"""Pull of each step to none, relative to the mean energy of the gradients: flat ground does not wander."""


def flow_between(before: Levels, now: Levels) -> Levels:
    """Return where each pixel of `now` came from: `before` at (y, x) + flow[:, y, x]; (2, height, width)."""
    pyramid = [(before, now)]
    while len(pyramid) <= _LEVELS and min(pyramid[-1][0].shape) >= 2 * _SMALLEST:
        pyramid.append((_halved(pyramid[-1][0]), _halved(pyramid[-1][1])))
    flow: Levels = np.zeros((2, *pyramid[-1][0].shape), np.float32)
    for smaller_before, smaller_now in pyramid[::-1]:
        if flow.shape[1:] != smaller_now.shape:
            flow = _doubled(flow, *smaller_now.shape)
        _refine(smaller_before, smaller_now, flow)
    return flow


@njit(cache=True, nogil=True, fastmath=True)
def moved(frame: Levels, flow: Levels) -> Levels:
    """Return the frame (height, width) read at (y, x) + flow[:, y, x], by Catmull-Rom interpolation."""
    height, width = frame.shape
    result = np.empty_like(frame)
    down, right = np.empty(4, np.float32), np.empty(4, np.float32)
    for y in range(height):
        for x in range(width):
            row = min(max(y + flow[0, y, x], np.float32(0)), np.float32(height - 1))
            column = min(max(x + flow[1, y, x], np.float32(0)), np.float32(width - 1))
            i, j = int(row), int(column)
            _catmull_rom(np.float32(row - i), down)
            _catmull_rom(np.float32(column - j), right)
            total = np.float32(0)
            for k in range(4):
                one = min(max(i + k - 1, 0), height - 1)
                part = np.float32(0)
                for m in range(4):
                    part += right[m] * frame[one, min(max(j + m - 1, 0), width - 1)]
                total += down[k] * part
            result[y, x] = total
    return result


@njit(cache=True, nogil=True, fastmath=True)
def _catmull_rom(t: np.float32, weights: Levels) -> None:
    """Fill the weights (4,) of the pixels around a position a fraction `t` after the second of them."""
    half = np.float32(0.5)
    weights[0] = half * t * (t * (2 - t) - 1)
    weights[1] = half * (t * t * (3 * t - 5) + 2)
    weights[2] = half * t * (t * (4 - 3 * t) + 1)
    weights[3] = half * t * t * (t - 1)


@njit(cache=True, nogil=True, fastmath=True)
def _refine(before: Levels, now: Levels, flow: Levels) -> None:
    """Improve the flow (2, height, width) from `before` to `now` in place, by Gauss-Newton steps."""
    height, width = now.shape
    room = np.empty_like(now)
    slopes = np.empty((2, height, width), np.float32)
    for y in range(height):
        for x in range(width):
            slopes[0, y, x] = np.float32(0.5) * (now[min(y + 1, height - 1), x] - now[max(y - 1, 0), x])
            slopes[1, y, x] = np.float32(0.5) * (now[y, min(x + 1, width - 1)] - now[y, max(x - 1, 0)])
    tensor = np.empty((3, height, width), np.float32)
    for y in range(height):
        for x in range(width):
            a, b = slopes[0, y, x], slopes[1, y, x]
            tensor[0, y, x], tensor[1, y, x], tensor[2, y, x] = a * a, a * b, b * b
    damping = np.float32(_DAMPING) * (tensor[0].mean() + tensor[2].mean()) + np.float32(1e-12)
    for k in range(3):
        _blur(tensor[k], room)
    pull = np.empty((2, height, width), np.float32)
    given, kept = flow.copy(), np.empty_like(now)
    _misfit(before, now, flow, kept)
    _blur(kept, room)
    for _ in range(_STEPS):
        for y in range(height):
            for x in range(width):
                gap = _between(before, y + flow[0, y, x], x + flow[1, y, x]) - now[y, x]
                pull[0, y, x], pull[1, y, x] = slopes[0, y, x] * gap, slopes[1, y, x] * gap
        _blur(pull[0], room)
        _blur(pull[1], room)
        for y in range(height):
            for x in range(width):
                a, b, c = tensor[0, y, x] + damping, tensor[1, y, x], tensor[2, y, x] + damping
                over = np.float32(1) / (a * c - b * b)
                down = over * (b * pull[1, y, x] - c * pull[0, y, x])
                right = over * (b * pull[0, y, x] - a * pull[1, y, x])
                flow[0, y, x] += min(max(down, np.float32(-1)), np.float32(1))
                flow[1, y, x] += min(max(right, np.float32(-1)), np.float32(1))
    # A step may lead astray where the picture repeats itself or leaves the frame: what explains less is taken back.
    # Standing still explains most of most films, and wins a tie.
    refined, still = pull[0], pull[1]
    _misfit(before, now, flow, refined)
    _misfit(before, now, np.zeros_like(flow), still)
    _blur(refined, room)
    _blur(still, room)
    for y in range(height):
        for x in range(width):
            if kept[y, x] < refined[y, x]:
                flow[0, y, x], flow[1, y, x], refined[y, x] = given[0, y, x], given[1, y, x], kept[y, x]
            if still[y, x] <= refined[y, x]:
                flow[0, y, x] = flow[1, y, x] = np.float32(0)
    _blur(flow[0], room)
    _blur(flow[1], room)


@njit(cache=True, nogil=True, fastmath=True)
def _misfit(before: Levels, now: Levels, flow: Levels, errors: Levels) -> None:
    """Fill the squared errors (height, width) of explaining `now` by `before` and the flow."""
    height, width = now.shape
    for y in range(height):
        for x in range(width):
            gap = _between(before, y + flow[0, y, x], x + flow[1, y, x]) - now[y, x]
            errors[y, x] = gap * gap


@njit(cache=True, nogil=True, fastmath=True)
def _between(frame: Levels, row: np.float32, column: np.float32) -> np.float32:
    """Grey level between four pixels, by bilinear interpolation; the edge goes on outside."""
    height, width = frame.shape
    row = min(max(row, np.float32(0)), np.float32(height - 1))
    column = min(max(column, np.float32(0)), np.float32(width - 1))
    i, j = min(int(row), max(height - 2, 0)), min(int(column), max(width - 2, 0))
    a, b = np.float32(row - i), np.float32(column - j)
    below, right = min(i + 1, height - 1), min(j + 1, width - 1)
    upper = frame[i, j] + b * (frame[i, right] - frame[i, j])
    lower = frame[below, j] + b * (frame[below, right] - frame[below, j])
    return np.float32(upper + a * (lower - upper))


@njit(cache=True, nogil=True, fastmath=True)
def _blur(values: Levels, room: Levels) -> None:
    """Smooth values (height, width) in place by a box along both axes, twice; `room` is as large."""
    height, width = values.shape
    size = np.float32(1.0 / (2 * _RADIUS + 1))
    line = np.empty(width, np.float32)
    for _ in range(2):
        for y in range(height):
            total = np.float32(0)
            for k in range(-_RADIUS, _RADIUS + 1):
                total += values[y, min(max(k, 0), width - 1)]
            for x in range(width):
                room[y, x] = size * total
                total += values[y, min(x + _RADIUS + 1, width - 1)] - values[y, max(x - _RADIUS, 0)]
        line[:] = 0
        for k in range(-_RADIUS, _RADIUS + 1):
            line += room[min(max(k, 0), height - 1)]
        for y in range(height):
            for x in range(width):
                values[y, x] = size * line[x]
            gone, came = max(y - _RADIUS, 0), min(y + _RADIUS + 1, height - 1)
            for x in range(width):
                line[x] += room[came, x] - room[gone, x]


def _halved(frame: Levels) -> Levels:
    """Return the frame (height, width) at half its size; an odd row or column at its edge is left out."""
    height, width = (length // 2 * 2 for length in frame.shape)
    padded = np.pad(frame[:height, :width], 1, mode="edge")
    # Binomial weights (1, 3, 3, 1) / 8: two pixels and their outer neighbours.
    inner, outer = np.float32(0.375), np.float32(0.125)
    rows = outer * (padded[0:-2:2] + padded[3::2]) + inner * (padded[1:-2:2] + padded[2:-1:2])
    small = outer * (rows[:, 0:-2:2] + rows[:, 3::2]) + inner * (rows[:, 1:-2:2] + rows[:, 2:-1:2])
    halved: Levels = small.astype(np.float32, copy=False)
    return halved


@njit(cache=True, nogil=True, fastmath=True)
def _doubled(flow: Levels, height: int, width: int) -> Levels:
    """Return the flow (2, ..) of a frame of half the size, for one of (height, width)."""
    result = np.empty((2, height, width), np.float32)
    for k in range(2):
        for y in range(height):
            for x in range(width):
                row, column = np.float32(0.5 * y - 0.25), np.float32(0.5 * x - 0.25)
                result[k, y, x] = np.float32(2) * _between(flow[k], row, column)
    return result
