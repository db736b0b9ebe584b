"""Planes in which the scene turns: a moving picture is, tile by tile, a set of complex numbers that change their angle.

Each plane is spanned by a cosine and a sine under the window of a tile. A shift of what the tile shows turns each
plane by an angle of its own, so that the angle between the last two frames, applied once more, is motion. The turn of
one frame is noisy; turns that are summed over several frames, each as loud as the picture in that plane, are less so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft
from numba import njit
from numpy.typing import NDArray

from psmt.video.tiling import Array, Tiling

Complex = NDArray[np.complex64]


class Angles(NamedTuple):
    """What `FourierPlanes` know of a film."""

    now: Complex
    """Coefficients (rows, columns, size, size // 2 + 1) of the latest frame."""
    turns: tuple[Complex, ...]
    """For each memory the faded sum of ``c_t * conj(c_(t-1))``, whose angle is the turn per frame."""


class FourierPlanes:
    """Local Fourier phase advance.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    size : int
        Side of a tile; tiles lie a quarter of it apart.
    memories : tuple of float
        How much of the turns before the last one each estimate of the present turn keeps per frame, 0 <= memory < 1.
    """

    def __init__(self, shape: tuple[int, int], size: int, memories: tuple[float, ...]) -> None:
        self.tiling = Tiling(shape, size, size // 4)
        self.memories = memories

    def start(self, frame: Array) -> Angles:
        """What one frame (height, width) shows: nothing has turned yet."""
        now = self._transform(frame)
        return Angles(now, tuple(np.zeros_like(now) for _ in self.memories))

    def receive(self, angles: Angles, frame: Array) -> Angles:
        """What is known after one more frame (height, width)."""
        now = self._transform(frame)
        turns = (
            _remembered(np.float32(m), old, now, angles.now) for m, old in zip(self.memories, angles.turns, strict=True)
        )
        return Angles(now, tuple(turns))

    def changes(self, angles: Angles) -> Array:
        """How the next frame differs from the last if everything turns on, (n_memories, height, width)."""
        return np.array([self._inverse(_turned_on(angles.now, turn)) for turn in angles.turns])

    def _transform(self, frame: Array) -> Complex:
        return scipy.fft.rfft2(self.tiling.cut(frame), workers=-1)

    def _inverse(self, coefficients: Complex) -> Array:
        size = self.tiling.size
        return self.tiling.join(scipy.fft.irfft2(coefficients, s=(size, size), workers=-1))


@njit(cache=True, nogil=True, fastmath=True)
def _remembered(kept, old, now, before):
    """The faded sum of turns with one more: ``kept * old + now * conj(before)``."""
    turns = np.empty_like(now)
    for i in range(now.size):
        turns.flat[i] = kept * old.flat[i] + now.flat[i] * np.conj(before.flat[i])
    return turns


@njit(cache=True, nogil=True)
def _turned_on(now, turn):
    """The change of the coefficients when they turn on by the angle of `turn`; none where it has no angle."""
    change = np.zeros_like(now)
    for i in range(now.size):
        one = turn.flat[i]
        square = one.real * one.real + one.imag * one.imag
        if square > 0:
            change.flat[i] = now.flat[i] * (one / np.sqrt(square) - np.float32(1.0))
    return change
