"""Least squares in the cells of a frame on the CPU: moments, ridge weights and weighted sums."""

from __future__ import annotations

import numpy as np

from psmt.engines.frame_kernels import CellSums, Factors, Shape, common_weights
from psmt.engines.numba.fan_out import in_threads
from psmt.types import Levels
from psmt.utils.jit import njit

_ROWS = 3  # rows of cells that one thread takes at a time
_MANY = 32  # with fewer candidates, one thread takes more rows at a time
_NONE = np.float32(1e-36)  # smaller pivots count as zero: this is close to the smallest normal number of float32


def add_moments(
    known: CellSums, kept: Factors, maps: Levels, change: Levels, weight: float, cell: Shape, out: CellSums
) -> None:
    """Write ``kept[k] * known[k] + weight * new`` to `out`, for each k; see `FrameKernels.add_moments`."""
    _, n_rows, n_columns, n = known[1].shape

    def add(rows: slice) -> None:
        seen: Levels = np.empty((rows.stop - rows.start, n_columns, n + 1, cell[0] * cell[1]), np.float32)
        _gather(maps, change, rows.start, *cell, seen)
        # The change is treated as one more candidate, so one product gives all moments.
        found = seen[:, :, :n] @ seen.swapaxes(2, 3)
        for k, factor in enumerate(kept):
            old, new = ((gram[k, rows], match[k, rows]) for gram, match in (known, out))
            _fade_in(old, np.float32(factor), np.float32(weight), found, new)

    in_threads(add, n_rows, _ROWS)


def cell_energy(change: Levels, cell: int) -> Levels:
    """Return the sum of squares (rows, columns) of a change (height, width) over the pixels of each cell."""
    energy: Levels = np.zeros([-(-length // cell) for length in change.shape], np.float32)
    _add_energy(change, cell, energy)
    return energy


def cell_weights(
    gram: Levels, match: Levels, ridge: float, prior: float, known: CellSums | None, rows: slice = slice(None)
) -> Levels:
    """Return the ridge weights (rows, columns, n) of the candidates in each cell; see `FrameKernels.cell_weights`."""
    n_rows, n_columns, n = match.shape
    # Pooling does not change the mean. Sums over a row of cells are in float32, over rows in float64.
    whole, common_match = (
        part.sum(axis=1).astype(np.float64).sum(axis=0) / (n_rows * n_columns) for part in (gram, match)
    )
    if known is not None:
        whole, common_match = whole + known[0], common_match + known[1]
    common, usual, floor = common_weights(whole, common_match, prior)
    weights: Levels = np.empty_like(match[rows])
    first = rows.indices(n_rows)[0]
    pull = common.astype(np.float32), (ridge * usual + floor).astype(np.float32), np.float32(ridge)
    flat = gram.reshape(n_rows, n_columns, n * n)
    in_threads(lambda part: _solve_cells(flat, match, *pull, first + part.start, weights[part]), len(weights), _ROWS)
    return weights


def weighted(candidates: Levels, weights: Levels, cell: int) -> Levels:
    """Return the weighted sum (height, width) of candidates; see `FrameKernels.weighted`."""
    total: Levels = np.zeros(candidates.shape[1:], np.float32)
    # For a few candidates, small chunks would cost more time in threads than they save.
    chunk = _ROWS * cell * max(_MANY // len(candidates), 1)
    in_threads(lambda rows: _add_weighted(candidates, weights, cell, rows.start, total[rows]), len(total), chunk)
    return total


@njit(cache=True, nogil=True)
def _gather(candidates: Levels, change: Levels, first: int, tall: int, wide: int, seen: Levels) -> None:
    """Copy the pixels of n candidates and of the change, cell by cell, to `seen` (rows, columns, n + 1, pixels).

    Cells have `tall` x `wide` pixels. `first` is the index of the first row of cells. Pixels beyond the frame are zero.
    """
    n, height, width = candidates.shape
    rows, columns, _, _ = seen.shape
    for r in range(rows):
        for k in range(n + 1):
            source = change if k == n else candidates[k]
            for i in range(tall):
                y = (first + r) * tall + i
                for c in range(columns):
                    into = seen[r, c, k, i * wide : (i + 1) * wide]
                    inside = max(min(width - c * wide, wide), 0) if y < height else 0
                    for j in range(inside):
                        into[j] = source[y, c * wide + j]
                    for j in range(inside, wide):
                        into[j] = 0


@njit(cache=True, nogil=True, fastmath=True)
def _fade_in(known: CellSums, kept: np.float32, weight: np.float32, found: Levels, out: CellSums) -> None:
    """Write ``kept * known + weight * found`` to `out`. The last column of `found` (..., n, n + 1) is the match."""
    (gram, match), (new_gram, new_match) = known, out
    rows, columns, n = match.shape
    for r in range(rows):
        for c in range(columns):
            for k in range(n):
                old, new, into = gram[r, c, k], found[r, c, k], new_gram[r, c, k]
                for j in range(n):
                    into[j] = kept * old[j] + weight * new[j]
                new_match[r, c, k] = kept * match[r, c, k] + weight * new[n]


@njit(cache=True, nogil=True, fastmath=True)
def _add_energy(change: Levels, cell: int, energy: Levels) -> None:
    height, width = change.shape
    for y in range(height):
        row = energy[y // cell]
        for c in range(row.size):
            total = np.float32(0.0)
            for x in range(c * cell, min((c + 1) * cell, width)):
                total += change[y, x] * change[y, x]
            row[c] += total


@njit(cache=True, nogil=True, fastmath=True)
def _binomial(before: Levels, here: Levels, after: Levels, into: Levels) -> None:
    """Write the mean of three arrays (n,), weighted by (1, 2, 1) / 4, to `into`."""
    for k in range(into.size):
        into[k] = np.float32(0.25) * (before[k] + after[k]) + np.float32(0.5) * here[k]


@njit(cache=True, nogil=True, fastmath=True)
def _solve_cells(
    gram: Levels, match: Levels, common: Levels, pull: Levels, ridge: np.float32, first: int, weights: Levels
) -> None:
    """Fill `weights` (n_rows, columns, n) with the ridge weights of ``n_rows`` rows of cells, from row `first` on.

    `gram` (rows, columns, n * n) and `match` (rows, columns, n) are the moments of all cells. Weights shrink towards
    `common` (n,), with the penalties ``pull + ridge * diag(G)`` (n,), where G is the smoothed Gram matrix of the cell.
    """
    rows, columns, n = weights.shape
    own, right = np.empty(n * n, np.float32), np.empty(n, np.float32)
    # The last three columns, pooled with those above and below.
    grams, matches = np.empty((3, n * n), np.float32), np.empty((3, n), np.float32)
    for r in range(rows):
        y = first + r
        above, below = max(y - 1, 0), min(y + 1, gram.shape[0] - 1)
        for c in range(-1, columns):
            if c + 1 < columns:
                slot = (c + 1) % 3
                _binomial(gram[above, c + 1], gram[y, c + 1], gram[below, c + 1], grams[slot])
                _binomial(match[above, c + 1], match[y, c + 1], match[below, c + 1], matches[slot])
            if c >= 0:
                before, after = max(c - 1, 0) % 3, min(c + 1, columns - 1) % 3
                _binomial(grams[before], grams[c % 3], grams[after], own)
                _binomial(matches[before], matches[c % 3], matches[after], right)
                for k in range(n):
                    penalty = pull[k] + ridge * own[k * n + k]
                    own[k * n + k] += penalty
                    right[k] += penalty * common[k]
                _solve_positive(own.reshape(n, n), right)
                for k in range(n):
                    weights[r, c, k] = right[k]


@njit(cache=True, nogil=True, fastmath=True)
def _solve_positive(own: Levels, right: Levels) -> None:
    """Solve a positive definite system (n, n) by a Cholesky factorisation. The solution replaces `right` (n,).

    Only the upper triangle of `own` is read. Rows are subtracted four at a time, so that memory is read once for four
    products. An unknown whose pivot is not larger than `_NONE` is set to zero.
    """
    n = right.size
    for i in range(n):
        # Slices start at zero, because numba checks every other index for being negative.
        into, rest, after = own[i, i:], right[i:], n - i
        whole = i - i % 4
        for k in range(0, whole, 4):
            one, two, three, four = own[k, i:], own[k + 1, i:], own[k + 2, i:], own[k + 3, i:]
            a, b, c, d = one[0], two[0], three[0], four[0]
            for j in range(after):
                into[j] -= a * one[j] + b * two[j] + c * three[j] + d * four[j]
        for k in range(whole, i):
            one = own[k, i:]
            a = one[0]
            for j in range(after):
                into[j] -= a * one[j]
        pivot = into[0]
        inverse = np.float32(1.0) / np.sqrt(pivot) if pivot > _NONE else np.float32(0.0)
        solved = rest[0] * inverse
        for j in range(after):
            into[j] *= inverse
        for j in range(after):
            rest[j] -= solved * into[j]
        rest[0], into[0] = solved, inverse  # only the inverse of the diagonal is needed
    for k in range(n - 1, -1, -1):
        row, solutions, total = own[k, k + 1 :], right[k + 1 :], right[k]
        for j in range(n - k - 1):
            total -= row[j] * solutions[j]
        right[k] = total * own[k, k]


@njit(cache=True, nogil=True, fastmath=True)
def _add_weighted(candidates: Levels, weights: Levels, cell: int, first: int, total: Levels) -> None:
    """Add weighted candidates to `total` (rows, width), which holds the rows of the frame from `first` on."""
    n = candidates.shape[0]
    tall, width = total.shape
    rows, columns, _ = weights.shape
    column = np.empty((n, columns), np.float32)
    way = ((np.arange(cell) + 0.5) / cell).astype(np.float32)
    half = cell // 2
    for i in range(tall):
        y = first + i
        position = min(max((y + 0.5) / cell - 0.5, 0.0), rows - 1.0)
        above = int(position)
        below = min(above + 1, rows - 1)
        down = np.float32(position - above)
        for c in range(columns):
            for k in range(n):
                column[k, c] = weights[above, c, k] + down * (weights[below, c, k] - weights[above, c, k])
        into = total[i]
        for k in range(n):
            seen, own = candidates[k, y], column[k]
            # The weight is linear between two centres, and constant before the first and after the last.
            for c in range(columns + 1):
                here = own[max(c - 1, 0)]
                step = own[min(c, columns - 1)] - here
                start = c * cell - half
                if start >= 0 and start + cell <= width:
                    for j in range(cell):
                        into[start + j] += seen[start + j] * (here + way[j] * step)
                else:
                    for j in range(max(-start, 0), min(cell, width - start)):
                        into[start + j] += seen[start + j] * (here + way[j] * step)
