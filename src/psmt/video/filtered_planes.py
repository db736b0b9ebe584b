"""Fourier planes with a memory: coefficients of the past turn along with the picture and are averaged.

Turning the last frame on carries its noise along. A running mean of all frames of the scene, each turned to where the
picture is now (the constant-gain Kalman filter of a coefficient that turns), carries less of it.
"""

from __future__ import annotations

from psmt.engines.frame_kernels import Complex, FrameKernels
from psmt.video.fourier_planes import LocalSpectra

_KEPT = 0.7
"""How much of the past the mean keeps per frame."""


def filtered_update(kernels: FrameKernels, old: Complex, spectra: LocalSpectra) -> Complex:
    """Return the mean with one more frame: the old one, turned by the latest cross-spectrum, and the new one."""
    return kernels.turned(old, spectra.now, spectra.cross[-1], _KEPT)
