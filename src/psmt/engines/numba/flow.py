"""Dense optical flow (pyramidal Lucas-Kanade) and warping along it, on the CPU.

Flow complements the phases of tile spectra, which follow only motion of less than half a tile. It is estimated from
coarse to fine, so it follows faster motion. It also has sharp borders where an object moves in front of a background.
"""

from __future__ import annotations

import numpy as np

from psmt.types import Levels
from psmt.utils.jit import njit

_LEVELS = 4  # largest number of halvings of the frame: motion of 16 pixels per frame is one pixel in the smallest frame
_SMALLEST = 12  # shortest edge of a level of the pyramid, in pixels
_STEPS = 3  # Gauss-Newton steps per level
_RADIUS = 3  # radius of the box in which motion is assumed constant; applied twice, the box is close to a Gaussian
_DAMPING = 0.01  # damping of each step, relative to the mean energy of the gradients; it keeps flat areas in place


def flow_between(before: Levels, now: Levels) -> Levels:
    """Return the optical flow (2, height, width) from each pixel of `now` to its origin in `before`."""
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
    """Return the frame (height, width) warped by a flow (2, height, width), with Catmull-Rom interpolation."""
    height, width = frame.shape
    wide = width + 3
    # Repeat the edge by one pixel before the frame and by two pixels after it.
    around = np.empty((height + 3, wide), np.float32)
    for y in range(height + 3):
        into, row = around[y], frame[min(max(y - 1, 0), height - 1)]
        into[0], into[width + 1], into[width + 2] = row[0], row[width - 1], row[width - 1]
        for x in range(width):
            into[x + 1] = row[x]
    seen = around.reshape(-1)
    result = np.empty_like(frame)
    # Compute positions and weights of a whole row first: this compiles to vector instructions. Reading pixels does not.
    place = np.empty(width, np.int32)
    down, right = np.empty((4, width), np.float32), np.empty((4, width), np.float32)
    e, f, g, h = down[0], down[1], down[2], down[3]
    a, b, c, d = right[0], right[1], right[2], right[3]
    # Indices are unsigned, because numba checks signed indices for being negative.
    one, two, three, below = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(wide)
    for y in range(height):
        rows, columns, into = flow[0, y], flow[1, y], result[y]
        for x in range(width):
            row = min(max(np.float32(y) + rows[x], np.float32(0)), np.float32(height - 1))
            i = np.int32(row)
            place[x] = i * np.int32(wide)
            e[x], f[x], g[x], h[x] = _catmull_rom(row - np.float32(i))
        for x in range(width):
            column = min(max(np.float32(x) + columns[x], np.float32(0)), np.float32(width - 1))
            j = np.int32(column)
            place[x] += j
            a[x], b[x], c[x], d[x] = _catmull_rom(column - np.float32(j))
        for x in range(width):
            p, q, r, s = a[x], b[x], c[x], d[x]
            k = np.uint64(place[x])
            total = e[x] * (p * seen[k] + q * seen[k + one] + r * seen[k + two] + s * seen[k + three])
            k += below
            total += f[x] * (p * seen[k] + q * seen[k + one] + r * seen[k + two] + s * seen[k + three])
            k += below
            total += g[x] * (p * seen[k] + q * seen[k + one] + r * seen[k + two] + s * seen[k + three])
            k += below
            total += h[x] * (p * seen[k] + q * seen[k + one] + r * seen[k + two] + s * seen[k + three])
            into[x] = total
    return result


@njit(cache=True, nogil=True, fastmath=True)
def _catmull_rom(t: np.float32) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Return the interpolation weights of four pixels in a row, at the fraction `t` from the second to the third."""
    half = np.float32(0.5)
    first, second = half * t * (t * (2 - t) - 1), half * (t * t * (3 * t - 5) + 2)
    return first, second, half * t * (t * (4 - 3 * t) + 1), half * t * t * (t - 1)


@njit(cache=True, nogil=True, fastmath=True)
def _refine(before: Levels, now: Levels, flow: Levels) -> None:
    """Improve the flow (2, height, width) from `now` back to `before` in place, by Gauss-Newton steps."""
    height, width = now.shape
    room = np.empty_like(now)
    slopes = np.empty((2, height, width), np.float32)
    tensor = np.empty((3, height, width), np.float32)
    for y in range(height):
        above, here, below = now[max(y - 1, 0)], now[y], now[min(y + 1, height - 1)]
        for x in range(width):
            slopes[0, y, x] = np.float32(0.5) * (below[x] - above[x])
        for x in range(1, width - 1):
            slopes[1, y, x] = np.float32(0.5) * (here[x + 1] - here[x - 1])
        for x in (0, width - 1):
            slopes[1, y, x] = np.float32(0.5) * (here[min(x + 1, width - 1)] - here[max(x - 1, 0)])
        for x in range(width):
            a, b = slopes[0, y, x], slopes[1, y, x]
            tensor[0, y, x], tensor[1, y, x], tensor[2, y, x] = a * a, a * b, b * b
    damping = np.float32(_DAMPING) * (tensor[0].mean() + tensor[2].mean()) + np.float32(1e-12)
    for k in range(3):
        _blur(tensor[k], room)
    given, gap = flow.copy(), np.empty_like(now)
    kept, pull = np.empty_like(now), np.empty((2, height, width), np.float32)
    for step in range(_STEPS):
        _misfit(before, now, flow, gap)
        if step == 0:
            _multiply(gap, gap, kept)
        _multiply(slopes[0], gap, pull[0])
        _multiply(slopes[1], gap, pull[1])
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
    # A step may be wrong where the picture repeats itself or leaves the frame, so a flow that fits worse is reset. Zero
    # flow is correct in most parts of most films, so it wins a tie.
    _misfit(before, now, flow, gap)
    refined, still = pull[0], pull[1]
    _multiply(gap, gap, refined)
    for y in range(height):
        for x in range(width):
            still[y, x] = (before[y, x] - now[y, x]) ** 2
    _blur(kept, room)
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


# Numba compiles products and copies of whole arrays for seconds longer than loops, because it checks their shapes.
@njit(cache=True, nogil=True, fastmath=True)
def _multiply(values: Levels, others: Levels, into: Levels) -> None:
    for y in range(values.shape[0]):
        row, other, line = values[y], others[y], into[y]
        for x in range(row.size):
            line[x] = row[x] * other[x]


@njit(cache=True, nogil=True, fastmath=True)
def _misfit(before: Levels, now: Levels, flow: Levels, gap: Levels) -> None:
    """Fill `gap` (height, width) with ``warped - now``. ``warped`` is `before` moved along the flow (bilinearly)."""
    height, width = now.shape
    wide = width + 1
    around = np.empty((height + 1, wide), np.float32)
    for y in range(height + 1):
        into, row = around[y], before[min(y, height - 1)]
        into[width] = row[width - 1]
        for x in range(width):
            into[x] = row[x]
    seen = around.reshape(-1)
    # As in `moved`, the positions of a whole row are computed first, and indices are unsigned.
    place, down, right = np.empty(width, np.int32), np.empty(width, np.float32), np.empty(width, np.float32)
    one, below = np.uint64(1), np.uint64(wide)
    for y in range(height):
        rows, columns, into, target = flow[0, y], flow[1, y], gap[y], now[y]
        for x in range(width):
            row = min(max(np.float32(y) + rows[x], np.float32(0)), np.float32(height - 1))
            column = min(max(np.float32(x) + columns[x], np.float32(0)), np.float32(width - 1))
            i, j = np.int32(row), np.int32(column)
            place[x] = i * np.int32(wide) + j
            down[x], right[x] = row - np.float32(i), column - np.float32(j)
        for x in range(width):
            k = np.uint64(place[x])
            m = k + below
            upper = seen[k] + right[x] * (seen[k + one] - seen[k])
            lower = seen[m] + right[x] * (seen[m + one] - seen[m])
            into[x] = upper + down[x] * (lower - upper) - target[x]


@njit(cache=True, nogil=True, fastmath=True)
def _blur(values: Levels, room: Levels) -> None:
    """Smooth values (height, width) in place by applying a box filter twice. `room` (height, width) is a work array."""
    height, width = values.shape
    part = np.float32(1.0 / (2 * _RADIUS + 1) ** 2)
    line, around = np.empty(width, np.float32), np.empty(width + 2 * _RADIUS, np.float32)
    for _ in range(2):
        for y in range(height):
            row, into = values[y], room[y]
            for k in range(_RADIUS):
                around[k], around[_RADIUS + width + k] = row[0], row[width - 1]
            for x in range(width):
                around[_RADIUS + x] = row[x]
            for x in range(width):
                total = np.float32(0)
                for k in range(2 * _RADIUS + 1):
                    total += around[x + k]
                into[x] = total
        # Vertical sums are running sums of whole rows. Horizontal ones are not: they would go pixel by pixel.
        line[:] = 0
        for k in range(-_RADIUS, _RADIUS + 1):
            came = room[min(max(k, 0), height - 1)]
            for x in range(width):
                line[x] += came[x]
        for y in range(height):
            into = values[y]
            gone, came = room[max(y - _RADIUS, 0)], room[min(y + _RADIUS + 1, height - 1)]
            for x in range(width):
                into[x] = part * line[x]
                line[x] += came[x] - gone[x]


@njit(cache=True, nogil=True, fastmath=True)
def _halved(frame: Levels) -> Levels:
    """Return the frame (height, width) smoothed and reduced to half its size. An odd last row or column is left out."""
    tall, wide = frame.shape[0] // 2, frame.shape[1] // 2
    height, width = 2 * tall, 2 * wide
    small, line = np.empty((tall, wide), np.float32), np.empty(width + 2, np.float32)
    # Binomial weights (1, 3, 3, 1) / 8: two pixels and their outer neighbours.
    inner, outer = np.float32(0.375), np.float32(0.125)
    for y in range(tall):
        above, upper = frame[max(2 * y - 1, 0)], frame[2 * y]
        lower, below = frame[2 * y + 1], frame[min(2 * y + 2, height - 1)]
        for x in range(width):
            line[x + 1] = outer * (above[x] + below[x]) + inner * (upper[x] + lower[x])
        line[0], line[width + 1] = line[1], line[width]
        for x in range(wide):
            k = 2 * x
            small[y, x] = outer * (line[k] + line[k + 3]) + inner * (line[k + 1] + line[k + 2])
    return small


@njit(cache=True, nogil=True, fastmath=True)
def _doubled(flow: Levels, height: int, width: int) -> Levels:
    """Return a flow (2, height, width) of twice the resolution: interpolated bilinearly and multiplied by two."""
    _, tall, wide = flow.shape
    result, line = np.empty((2, height, width), np.float32), np.empty(wide, np.float32)
    # The centre of a pixel is a quarter of the way from the centre of the larger pixel around it to the next one.
    most, least = np.float32(1.5), np.float32(0.5)
    for k in range(2):
        for y in range(height):
            own, other = flow[k, min(y // 2, tall - 1)], flow[k, min(max((y - 1) // 2 + y % 2, 0), tall - 1)]
            for x in range(wide):
                line[x] = np.float32(0.75) * own[x] + np.float32(0.25) * other[x]
            into = result[k, y]
            for x in range(width):
                into[x] = most * line[min(x // 2, wide - 1)] + least * line[min(max((x - 1) // 2 + x % 2, 0), wide - 1)]
    return result
