"""Fourier planes with a memory: coefficients of the past turn along with the picture and are averaged.

Turning the last frame on carries its noise along. A running mean of all frames of the scene, each turned to where the
picture is now (the constant-gain Kalman filter of a coefficient that turns), carries less of it.
"""

from __future__ import annotations

import numpy as np
import scipy.fft
from numba import njit

from psmt.types import Levels
from psmt.video.fourier_planes import Complex, LocalSpectra
from psmt.video.tiling import Tiling

_KEPT = 0.7
"""How much of the past the mean keeps per frame."""


def filtered_update(old: Complex, spectra: LocalSpectra) -> Complex:
    """Return the mean with one more frame: the old one, turned by the latest cross-spectrum, and the new one."""
    return _mixed(old, spectra.now, spectra.cross[-1], np.float32(_KEPT))


def filtered_change(tiling: Tiling, filtered: Complex, spectra: LocalSpectra) -> Levels:
    """How the next frame (height, width) differs from the last if the filtered coefficients turn on."""
    ahead = _mixed(filtered, spectra.now, spectra.cross[-1], np.float32(1.0))
    change = scipy.fft.irfft2(ahead - spectra.now, s=(tiling.size, tiling.size), workers=-1)
    return tiling.join(change)


@njit(cache=True, nogil=True)
def _mixed(old: Complex, now: Complex, cross: Complex, kept: np.float32) -> Complex:
    """Return ``now + kept * (turn * old - now)`` with the turn of a cross-spectrum; none where it has no phase."""
    mixed = np.empty_like(now)
    for i in range(now.size):
        one, turned = cross.flat[i], old.flat[i]
        square = one.real * one.real + one.imag * one.imag
        if square > 0:
            turned = turned * (one / np.sqrt(square))
        mixed.flat[i] = now.flat[i] + kept * (turned - now.flat[i])
    return mixed
