"""Planes in which the scene turns: a moving picture is, tile by tile, a set of complex numbers that change their angle.

The untrained planes are the pairs of a cosine and a sine under the window of a tile. A shift of what the tile shows
turns each of them by an angle of its own, so that the angle between the last two frames, applied once more, is motion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from psmt.whole_frames.tiling import Array, Tiling

Complex = NDArray[np.complex64]

MEMORIES = (0.0, 0.5, 0.9)
"""How much of the turns before the last one each estimate of the present turn keeps, per frame."""


class Angles(NamedTuple):
    """What a `FourierPlanes` knows of a film."""

    now: Complex
    """Coefficients (rows, columns, size, size // 2 + 1) of the latest frame."""
    turns: tuple[Complex, ...]
    """For each of `MEMORIES` the faded sum of ``c_t * conj(c_(t-1))``: its angle is the turn per frame, and energy
    decides which frames have a say in it."""


class FourierPlanes:
    """Local Fourier phase advance with several memories of the turn.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    size : int
        Side of a tile; tiles lie a quarter of it apart.
    """

    def __init__(self, shape: tuple[int, int], size: int) -> None:
        self.tiling = Tiling(shape, size, size // 4)
        self._bell = self.tiling.window / self.tiling.window.sum()

    def start(self, frame: Array) -> Angles:
        """What one frame (height, width) shows: nothing has turned yet."""
        now = self._transform(frame)
        return Angles(now, tuple(np.zeros_like(now) for _ in MEMORIES))

    def receive(self, angles: Angles, frame: Array) -> Angles:
        """What is known after one more frame (height, width)."""
        now = self._transform(frame)
        turn = now * angles.now.conj()
        return Angles(now, tuple(kept * old + turn for kept, old in zip(MEMORIES, angles.turns, strict=True)))

    def changes(self, angles: Angles) -> Array:
        """How the next frame differs from the last if everything turns on, (n_memories, height, width)."""
        return np.array([self._join(angles.now * (_unit(turn) - 1)) for turn in angles.turns])

    def _transform(self, frame: Array) -> Complex:
        tiles = self.tiling._tiles(frame)
        mean = np.einsum("ijkl,kl->ij", tiles, self._bell)
        return scipy.fft.rfft2((tiles - mean[..., None, None]) * self.tiling.window, workers=-1)

    def _join(self, coefficients: Complex) -> Array:
        size = self.tiling.size
        return self.tiling.join(scipy.fft.irfft2(coefficients, s=(size, size), workers=-1))


def _unit(turn: Complex) -> Complex:
    """Numbers of modulus one at the angles of `turn`; one where it is zero and has no angle."""
    size = np.abs(turn)
    return np.divide(turn, size, out=np.ones_like(turn), where=size > np.finfo(np.float32).tiny)
