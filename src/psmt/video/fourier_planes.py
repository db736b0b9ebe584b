"""Local Fourier phase advance: a moving picture turns the phases of a short-space Fourier transform.

Each plane is spanned by a cosine and a sine under the window of a tile: one complex Fourier coefficient. A shift of
what the tile shows turns each plane by an angle of its own, so that the angle between the last two frames, applied
once more, is motion. That angle is the phase of the cross-spectrum of the two frames. One cross-spectrum is noisy; an
exponentially weighted sum of several, in which each counts by how loud the picture is in that plane, is less so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft
from numba import njit
from numpy.typing import NDArray

from psmt.schema import Field
from psmt.types import Levels
from psmt.video.tiling import Tiling

Complex = NDArray[np.complex64]


class LocalSpectra(NamedTuple):
    """What `FourierPlanes` know of a film."""

    now: Complex
    """Coefficients (rows, columns, size, size // 2 + 1) of the latest frame."""
    cross: tuple[Complex, ...]
    """For each memory the exponentially weighted cross-spectrum, the sum of ``c_t * conj(c_(t-1))``: its phase is the
    turn per frame."""


class FourierPlanes:
    """Short-space Fourier transform whose coefficients are turned on by the phases of the cross-spectra.

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

    @staticmethod
    def cross_field(shape: tuple[int, int], size: int, memories: tuple[float, ...]) -> Field:
        """What the cross-spectra of all memories together are, saved."""
        return Field((len(memories), *Tiling.layout_of(shape, size, size // 4), size, size // 2 + 1), "complex64")

    def start(self, frame: Levels) -> LocalSpectra:
        """Spectra of one frame (height, width): nothing has turned yet."""
        now = self._transform(frame)
        return LocalSpectra(now, tuple(np.zeros_like(now) for _ in self.memories))

    def update(self, spectra: LocalSpectra, frame: Levels) -> LocalSpectra:
        """Spectra after one more frame (height, width); those given stay as they are."""
        now = self._transform(frame)
        cross = (
            _faded_sum(np.float32(memory), old, now, spectra.now)
            for memory, old in zip(self.memories, spectra.cross, strict=True)
        )
        return LocalSpectra(now, tuple(cross))

    def changes(self, spectra: LocalSpectra) -> Levels:
        """How the next frame differs from the last if every phase goes on, (n_memories, height, width)."""
        return np.array([self._inverse(_phase_advance(spectra.now, cross)) for cross in spectra.cross])

    def _transform(self, frame: Levels) -> Complex:
        return np.asarray(scipy.fft.rfft2(self.tiling.cut(frame), workers=-1))

    def _inverse(self, coefficients: Complex) -> Levels:
        size = self.tiling.size
        return self.tiling.join(scipy.fft.irfft2(coefficients, s=(size, size), workers=-1))


@njit(cache=True, nogil=True, fastmath=True)
def _faded_sum(kept: np.float32, old: Complex, now: Complex, before: Complex) -> Complex:
    """Return the weighted cross-spectrum with one more frame: ``kept * old + now * conj(before)``."""
    cross = np.empty_like(now)
    for i in range(now.size):
        cross.flat[i] = kept * old.flat[i] + now.flat[i] * np.conj(before.flat[i])
    return cross


@njit(cache=True, nogil=True)
def _phase_advance(now: Complex, cross: Complex) -> Complex:
    """Return the change of the coefficients when they turn on by the phase of `cross`; none where it has no phase."""
    change = np.zeros_like(now)
    for i in range(now.size):
        one = cross.flat[i]
        square = one.real * one.real + one.imag * one.imag
        if square > 0:
            change.flat[i] = now.flat[i] * (one / np.sqrt(square) - np.float32(1.0))
    return change
