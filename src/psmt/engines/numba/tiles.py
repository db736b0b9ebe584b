"""Tiles of a frame, their spectra and the inverse on the CPU: a few tile rows at a time, so that they stay in cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import scipy.fft

from psmt.engines.frame_kernels import Complex, Tiles
from psmt.engines.numba.fan_out import in_threads
from psmt.types import Levels
from psmt.utils.jit import njit

_PIECES = 4  # pieces of tile rows: enough for a few threads, few enough to be large
_SMALL = 12  # up to this side, the transform of a tile is one product with a matrix: faster than many short FFTs
_NONE = np.float32(1e-36)  # smaller squares have no phase: this is close to the smallest normal number of float32


def next_spectra(
    frame: Levels, tiles: Tiles, before: Complex | None, cross: tuple[Complex, ...], kept: tuple[float, ...]
) -> tuple[Complex, tuple[Complex, ...]]:
    """See `FrameKernels.next_spectra`."""
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
            _faded_sum(np.float32(memory), _flat(old[rows]), _flat(now[rows]), _flat(before[rows]), _flat(new[rows]))

    in_threads(transform, *_pieces(tiles))
    return now, faded


def advanced(now: Complex, cross: tuple[Complex, ...], tiles: Tiles) -> Levels:
    """See `FrameKernels.advanced`."""

    def turned_back(which: int, rows: slice) -> Levels:
        change = np.empty_like(now[rows])
        _phase_advance(_flat(now[rows]), _flat(cross[which][rows]), _flat(change))
        return _transformed_back(change)

    return _overlap_added(turned_back, len(cross), tiles)


def _transform(parts: Levels, spectra: Complex) -> None:
    """Fill the Fourier coefficients (rows, columns, size, size // 2 + 1) of tiles (rows, columns, size, size)."""
    size = parts.shape[-1]
    if size > _SMALL:
        spectra[...] = scipy.fft.rfft2(parts, workers=1)
    else:
        there, _ = _small_transform(size)
        np.matmul(parts.reshape(-1, size * size), there, out=_flat(spectra).reshape(-1, there.shape[1]))


def _transformed_back(spectra: Complex) -> Levels:
    """Tiles (rows, columns, size, size) of coefficients (rows, columns, size, size // 2 + 1), which are overwritten."""
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
    """Matrices that map a tile (size size,) to its Fourier coefficients, real and imaginary in turn, and back."""
    n_coefficients = size * (size // 2 + 1)
    units = np.eye(size * size).reshape(-1, size, size)
    there = np.fft.rfft2(units).reshape(-1, n_coefficients).view(np.float64)
    pairs = np.eye(2 * n_coefficients).view(np.complex128).reshape(-1, size, size // 2 + 1)
    back = np.fft.irfft2(pairs, s=(size, size)).reshape(-1, size * size)
    return there.astype(np.float32), back.astype(np.float32)


def _overlap_added(part_of: Callable[[int, slice], Levels], n: int, tiles: Tiles) -> Levels:
    """Weighted overlap-add (n, height, width) of n sets of tiles; `part_of` returns some rows of one set."""
    n_rows, chunk = _pieces(tiles)
    n_chunks = -(-n_rows // chunk)
    sums: list[Levels] = [np.empty((0, 0), np.float32)] * (n * n_chunks)

    def add(item: slice) -> None:
        which, k = divmod(item.start, n_chunks)
        rows = slice(k * chunk, min((k + 1) * chunk, n_rows))
        tall = (rows.stop - rows.start - 1) * tiles.stride + tiles.size
        total: Levels = np.zeros((tall, len(tiles.mirrored[1])), np.float32)
        _add(part_of(which, rows), tiles.window, tiles.stride, total)
        sums[item.start] = total

    in_threads(add, n * n_chunks, 1)
    frames: Levels = np.empty((n, *tiles.shape), np.float32)
    across = slice(tiles.lead, tiles.lead + tiles.shape[1])
    for which in range(n):
        whole: Levels = np.zeros((len(tiles.mirrored[0]), tiles.shape[1]), np.float32)
        for k in range(n_chunks):
            part = sums[which * n_chunks + k]
            top = k * chunk * tiles.stride
            whole[top : top + len(part)] += part[:, across]
        np.divide(whole[tiles.lead : tiles.lead + tiles.shape[0]], tiles.weight, out=frames[which])
    return frames


def _pieces(tiles: Tiles) -> tuple[int, int]:
    """Number of tile rows, and the number in one piece."""
    return tiles.layout[0], -(-tiles.layout[0] // _PIECES)


def _flat(spectra: Complex) -> Levels:
    """Contiguous spectra as real and imaginary parts in turn (2 n,), without a copy."""
    flat: Levels = spectra.reshape(-1).view(np.float32)
    return flat


@njit(cache=True, nogil=True, fastmath=True)
def _cut(padded: Levels, window: Levels, stride: int, first: int, tiles: Levels) -> None:
    """Fill rows of tiles (rows, columns, size, size), starting at tile row `first`, from a padded frame."""
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
    """Add tiles (rows, columns, size, size), multiplied by the window once more, where they were cut."""
    rows, columns, size, _ = tiles.shape
    for r in range(rows):
        for c in range(columns):
            for i in range(size):
                row = total[r * stride + i, c * stride : c * stride + size]
                for j in range(size):
                    row[j] += window[i, j] * tiles[r, c, i, j]


@njit(cache=True, nogil=True, fastmath=True)
def _faded_sum(kept: np.float32, old: Levels, now: Levels, before: Levels, cross: Levels) -> None:
    """Fill ``cross = kept * old + now * conj(before)``; complex numbers are pairs."""
    for k in range(now.size // 2):
        i = 2 * k
        cross[i] = kept * old[i] + now[i] * before[i] + now[i + 1] * before[i + 1]
        cross[i + 1] = kept * old[i + 1] + now[i + 1] * before[i] - now[i] * before[i + 1]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _phase_advance(now: Levels, cross: Levels, change: Levels) -> None:
    """Fill ``turn * now - now``, where turn is the phase of `cross`; zero where it has none. Complex as pairs."""
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
