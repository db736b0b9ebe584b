"""Operations on whole frames on the CPU (see `psmt.engines.frame_kernels.FrameKernels`): tiles, bands, networks.

Operations on cells and motion are in the modules `cells` and `flow`.
"""

from __future__ import annotations

from functools import cache
from math import isqrt

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike

from psmt.engines.frame_kernels import CellSums, Complex, Layers, Shape, Tiles, Work
from psmt.engines.numba import cells
from psmt.engines.numba import flow as flow_kernels
from psmt.engines.numba.fan_out import in_threads, together
from psmt.types import AnyArray, Ints, Levels
from psmt.utils.jit import njit

_ROWS = 100  # rows of a map that one thread takes at a time
_PIECES = 4  # pieces into which the rows of tiles are divided among threads
_SMALL = 12  # up to this side, a tile is transformed by one matrix product, which is faster than many short FFTs
_NONE = np.float32(1e-36)  # smaller squares count as zero and have no phase; close to the smallest normal float32
_PIXELS = 8192  # pixels on which a thread runs a network at a time, so that intermediate values stay in the cache


class NumbaFrameKernels:
    """Operations on whole frames by NumPy, pocketfft and numba, in as many threads as numba may use.

    Callers should limit BLAS to one thread (`psmt.utils.threads.one_blas_thread`).
    """

    convolves = False
    together = staticmethod(together)
    flow = staticmethod(flow_kernels.flow_between)
    moved = staticmethod(flow_kernels.moved)
    add_moments = staticmethod(cells.add_moments)
    cell_energy = staticmethod(cells.cell_energy)
    cell_weights = staticmethod(cells.cell_weights)
    weighted = staticmethod(cells.weighted)

    def levels(self, values: ArrayLike) -> AnyArray:
        given = np.asarray(values)
        # In C order, because numba would compile every kernel again for parts of larger frames.
        return np.asarray(given, np.complex64 if np.iscomplexobj(given) else np.float32, order="C")

    def numpy(self, values: AnyArray) -> AnyArray:
        return values

    def capture(self, work: Work) -> Work:
        return work

    def spectra(self, frame: Levels, tiles: Tiles) -> Complex:
        return self.next_spectra(frame, tiles, None, (), ())[0]

    def next_spectra(
        self, frame: Levels, tiles: Tiles, before: Complex | None, cross: tuple[Complex, ...], kept: tuple[float, ...]
    ) -> tuple[Complex, tuple[Complex, ...]]:
        down, right = tiles.mirrored
        padded: Levels = frame.take(down, axis=0).take(right, axis=1)
        now = np.empty((*tiles.layout, tiles.size, tiles.size // 2 + 1), np.complex64)
        faded = tuple(np.empty_like(now) for _ in cross)

        def transform(rows: slice) -> None:
            part: Levels = np.empty((rows.stop - rows.start, tiles.layout[1], tiles.size, tiles.size), np.float32)
            _cut(padded, tiles.window, tiles.stride, rows.start, part)
            _transform(part, now[rows])
            for memory, old, new in zip(kept, cross, faded, strict=True):
                assert before is not None
                own, last = _flat(now[rows]), _flat(before[rows])
                _faded_sum(np.float32(memory), _flat(old[rows]), own, last, _flat(new[rows]))

        in_threads(transform, *_pieces(tiles))
        return now, faded

    def advanced(self, now: Complex, cross: tuple[Complex, ...], tiles: Tiles) -> Levels:
        n_rows, chunk = _pieces(tiles)
        n_chunks = -(-n_rows // chunk)
        sums: list[Levels] = [np.empty((0, 0), np.float32)] * (len(cross) * n_chunks)

        def add(item: slice) -> None:
            which, k = divmod(item.start, n_chunks)
            rows = slice(k * chunk, min((k + 1) * chunk, n_rows))
            change = np.empty_like(now[rows])
            _phase_advance(_flat(now[rows]), _flat(cross[which][rows]), _flat(change))
            tall = (rows.stop - rows.start - 1) * tiles.stride + tiles.size
            total: Levels = np.zeros((tall, len(tiles.mirrored[1])), np.float32)
            _add(_transformed_back(change), tiles.window, tiles.stride, total)
            sums[item.start] = total

        in_threads(add, len(sums), 1)
        frames: Levels = np.empty((len(cross), *tiles.shape), np.float32)
        across = slice(tiles.lead, tiles.lead + tiles.shape[1])
        for which, frame in enumerate(frames):
            whole: Levels = np.zeros((len(tiles.mirrored[0]), tiles.shape[1]), np.float32)
            for k in range(n_chunks):
                part, top = sums[which * n_chunks + k], k * chunk * tiles.stride
                whole[top : top + len(part)] += part[:, across]
            np.divide(whole[tiles.lead : tiles.lead + tiles.shape[0]], tiles.weight, out=frame)
        return frames

    def cell_moments(self, candidates: Levels, change: Levels, cell: int) -> CellSums:
        layout = [-(-length // cell) for length in change.shape]
        n = len(candidates)
        gram, match = np.zeros((1, *layout, n, n), np.float32), np.zeros((1, *layout, n), np.float32)
        cells.add_moments((gram, match), (0.0,), candidates, change, 1.0, (cell, cell), (gram, match))
        return gram[0], match[0]

    def bands(self, changes: Levels, widths: tuple[float, ...], parts: Levels) -> None:
        _, height, width = changes.shape
        pieces = -(-height // _ROWS)
        left: Levels = changes
        for k, deviation in enumerate(widths):
            taps = _gaussian_taps(deviation)
            down, right = (_mirrored(length, len(taps) // 2) for length in (height, width))
            # `smooth` is read around each pixel in the next round, so it must not share memory with the next band.
            smooth: Levels = np.empty_like(changes) if k + 1 < len(widths) else parts[-1]
            _split_maps(left, taps, down, right, parts[k], smooth, pieces)
            left = smooth

    def neighbours(self, frame: Levels, offsets: tuple[Shape, ...], base: Levels, found: Levels) -> None:
        def shift(some: slice) -> None:
            for (down, right), levels in zip(offsets[some], found[some], strict=True):
                _shift(frame, down, right, base, levels)

        in_threads(shift, len(offsets), 4)

    def network(self, inputs: tuple[Levels, ...], layers: Layers) -> Levels:
        if any(len(weights) > 1 for weights, _ in layers):
            return _convolved(np.concatenate(inputs), layers)
        layers = tuple((weights[0], biases) for weights, biases in layers)
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


def _convolved(inputs: Levels, layers: Layers) -> Levels:
    """Return the output (height, width) of a convolutional network; see `FrameKernels.network`."""
    height, width = inputs.shape[1:]
    sides = [isqrt(len(weights)) for weights, _ in layers]
    beyond = sum(side // 2 for side in sides)
    padded = np.pad(inputs, ((0, 0), (beyond, beyond), (beyond, beyond)), mode="edge")
    found: Levels = np.empty((height, width), np.float32)

    def run(rows: slice) -> None:
        values = padded[:, rows.start : rows.stop + 2 * beyond]
        for k, (side, (weights, biases)) in enumerate(zip(sides, layers, strict=True)):
            tall, wide = (length - side + 1 for length in values.shape[1:])
            if k:
                values.clip(0, None, out=values)
            around = [values[:, i : i + tall, j : j + wide] for i in range(side) for j in range(side)]
            matrix = weights.reshape(-1, len(biases))
            flat = matrix.T @ np.concatenate(around).reshape(len(matrix), -1) + biases[:, None]
            values = flat.reshape(-1, tall, wide)
        found[rows] = values[0]

    in_threads(run, height, -(-_PIXELS // width))
    return found


def _transform(parts: Levels, spectra: Complex) -> None:
    """Fill `spectra` (..., size, size // 2 + 1) with the 2-D FFT of tiles (rows, columns, size, size)."""
    size = parts.shape[-1]
    if size > _SMALL:
        spectra[...] = scipy.fft.rfft2(parts, workers=1)
    else:
        there, _ = _small_transform(size)
        np.matmul(parts.reshape(-1, size * size), there, out=_flat(spectra).reshape(-1, there.shape[1]))


def _transformed_back(spectra: Complex) -> Levels:
    """Return the inverse FFT (rows, columns, size, size) of spectra (..., size, size // 2 + 1), and overwrite these."""
    size = spectra.shape[-2]
    parts: Levels
    if size > _SMALL:
        parts = scipy.fft.irfft2(spectra, s=(size, size), workers=1, overwrite_x=True)
    else:
        _, back = _small_transform(size)
        parts = (_flat(spectra).reshape(-1, len(back)) @ back).reshape(*spectra.shape[:-1], size)
    return parts


@cache
def _small_transform(size: int) -> tuple[Levels, Levels]:
    """Return the matrices of the FFT and the inverse FFT of a flat tile (size * size,), for spectra as in `_flat`."""
    n_coefficients = size * (size // 2 + 1)
    units = np.eye(size * size).reshape(-1, size, size)
    there = np.fft.rfft2(units).reshape(-1, n_coefficients).view(np.float64)
    pairs = np.eye(2 * n_coefficients).view(np.complex128).reshape(-1, size, size // 2 + 1)
    back = np.fft.irfft2(pairs, s=(size, size)).reshape(-1, size * size)
    return there.astype(np.float32), back.astype(np.float32)


def _pieces(tiles: Tiles) -> tuple[int, int]:
    """Return the number of rows of tiles, and the number of rows that a thread takes at a time."""
    return tiles.layout[0], -(-tiles.layout[0] // _PIECES)


def _flat(spectra: Complex) -> Levels:
    """Return a view of n contiguous complex numbers as (2 n,) alternating real and imaginary parts."""
    flat: Levels = spectra.reshape(-1).view(np.float32)
    return flat


@njit(cache=True, nogil=True, fastmath=True)
def _cut(padded: Levels, window: Levels, stride: int, first: int, tiles: Levels) -> None:
    """Cut rows of tiles (rows, columns, size, size), from row `first` on. Subtract tile means and apply the window."""
    rows, columns, size, _ = tiles.shape
    whole = window.sum()
    for r in range(rows):
        top = (first + r) * stride
        for c in range(columns):
            left = c * stride
            mean = np.float32(0.0)
            for i in range(size):
                seen = padded[top + i, left : left + size]
                for j in range(size):
                    mean += window[i, j] * seen[j]
            mean /= whole
            for i in range(size):
                seen = padded[top + i, left : left + size]
                for j in range(size):
                    tiles[r, c, i, j] = window[i, j] * (seen[j] - mean)


@njit(cache=True, nogil=True, fastmath=True)
def _add(tiles: Levels, window: Levels, stride: int, total: Levels) -> None:
    """Multiply tiles (rows, columns, size, size) by the window and add them to `total` where they lie (overlap-add)."""
    rows, columns, size, _ = tiles.shape
    for r in range(rows):
        for c in range(columns):
            for i in range(size):
                row = total[r * stride + i, c * stride : c * stride + size]
                for j in range(size):
                    row[j] += window[i, j] * tiles[r, c, i, j]


@njit(cache=True, nogil=True, fastmath=True)
def _faded_sum(kept: np.float32, old: Levels, now: Levels, before: Levels, cross: Levels) -> None:
    """Fill `cross` with ``kept * old + now * conj(before)``, for arrays made by `_flat`."""
    for k in range(now.size // 2):
        i = 2 * k
        cross[i] = kept * old[i] + now[i] * before[i] + now[i + 1] * before[i + 1]
        cross[i + 1] = kept * old[i + 1] + now[i + 1] * before[i] - now[i] * before[i + 1]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _phase_advance(now: Levels, cross: Levels, change: Levels) -> None:
    """Fill `change` with ``now * cross / |cross| - now``, or zero where `cross` is zero, for arrays made by `_flat`."""
    one = np.float32(1.0)
    for k in range(now.size // 2):
        i = 2 * k
        square = cross[i] * cross[i] + cross[i + 1] * cross[i + 1]
        seen = square > _NONE
        inverse = one / np.sqrt(square if seen else one)
        cosine = cross[i] * inverse - one if seen else np.float32(0.0)
        sine = cross[i + 1] * inverse if seen else np.float32(0.0)
        change[i] = now[i] * cosine - now[i + 1] * sine
        change[i + 1] = now[i] * sine + now[i + 1] * cosine


def _split_maps(left: Levels, taps: Levels, down: Ints, right: Ints, fine: Levels, smooth: Levels, pieces: int) -> None:
    """Apply `_split` to maps `left` (n, height, width) in threads. Each map is divided into `pieces` pieces."""

    def split(item: slice) -> None:
        which, piece = divmod(item.start, pieces)
        rows = slice(piece * _ROWS, (piece + 1) * _ROWS)
        _split(left[which], taps, down, right, rows.start, fine[which, rows], smooth[which, rows])

    in_threads(split, len(left) * pieces, 1)


@cache
def _mirrored(length: int, radius: int) -> Ints:
    """Return the indices (length + 2 * radius,) of an axis that is extended by mirroring at both ends."""
    places: Ints = np.pad(np.arange(length), radius, mode="symmetric")
    return places


@cache
def _gaussian_taps(deviation: float) -> Levels:
    """Return a Gaussian filter (2 * radius + 1,) that sums to 1, cut off at four standard deviations."""
    radius = int(4.0 * deviation + 0.5)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation) ** 2)
    normalised: Levels = (taps / taps.sum()).astype(np.float32)
    return normalised


@njit(cache=True, nogil=True, fastmath=True)
def _split(levels: Levels, taps: Levels, down: Ints, right: Ints, first: int, fine: Levels, smooth: Levels) -> None:
    """Smooth the rows of a map from `first` on by the filter `taps`. Write the result to `smooth`, the rest to `fine`.

    The filter is applied along both axes. `down` and `right` are the row and column indices, extended by `_mirrored`.
    """
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
    """Fill `found` (height, width) with the grey level at the offset (down, right) from each pixel, minus `base`."""
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
    """Add biases (n,) to values (n, pixels) in place, then apply a ReLU."""
    for k in range(biases.size):
        row, bias = values[k], biases[k]
        for j in range(row.size):
            row[j] = max(row[j] + bias, np.float32(0.0))
