"""Local Fourier phase advance: motion turns the phases of a short-space Fourier transform."""

from __future__ import annotations

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view

from psmt.engines.frame_kernels import hann
from psmt.types import Levels
from psmt.video.baselines.base import FrameBaseline

WINDOW, STRIDE = 16, 4
"""Side of a window, and the distance from one to the next, in pixels."""


class FourierPhase(FrameBaseline):
    """Local Fourier phase advance (a short-space Fourier transform with overlap-add): nothing is learned.

    The frame is seen through overlapping Hann windows. In each, every Fourier coefficient is turned on by the angle
    that it turned between the last two frames: what moves steadily through a window turns steadily.
    """

    n_last = 2

    def next_frame(self, last: Levels) -> Levels:
        """Return the frame after the last few."""
        before, now = (scipy.fft.rfft2(_windows(frame)) for frame in last)
        turn = now * before.conj()
        size = np.abs(turn)
        # Where a coefficient was or is zero it has no angle, and stays.
        turn = np.divide(turn, size, out=np.ones_like(turn), where=size > np.finfo(np.float32).tiny)
        return _overlap_add(scipy.fft.irfft2(now * turn, s=(WINDOW, WINDOW)), self.shape_)


_HANN = hann(WINDOW).astype(np.float32)
_FADE = np.outer(_HANN, _HANN)


def _windows(frame: Levels) -> Levels:
    """Windowed patches (rows, columns, WINDOW, WINDOW) of a frame; every pixel is in as many of them."""
    ends = [-size % STRIDE + WINDOW - STRIDE for size in frame.shape]
    padded = np.pad(frame, [(WINDOW - STRIDE, end) for end in ends], mode="symmetric")
    return sliding_window_view(padded, (WINDOW, WINDOW))[::STRIDE, ::STRIDE] * _FADE


def _overlap_add(windows: Levels, shape: tuple[int, ...]) -> Levels:
    """Frame of `shape` from patches as `_windows` makes them, faded once more so that no seam shows."""
    rows, columns = windows.shape[:2]
    steps = WINDOW // STRIDE
    parts = (windows * _FADE).reshape(rows, columns, steps, STRIDE, steps, STRIDE)
    weights = (_FADE**2).reshape(steps, STRIDE, steps, STRIDE).sum(axis=(0, 2))
    total = np.zeros((rows + steps - 1, columns + steps - 1, STRIDE, STRIDE), dtype=np.float32)
    for i in range(steps):
        for j in range(steps):
            total[i : i + rows, j : j + columns] += parts[:, :, i, :, j]
    frame = (total / weights).transpose(0, 2, 1, 3).reshape(len(total) * STRIDE, -1)
    first = WINDOW - STRIDE
    return np.ascontiguousarray(frame[first : first + shape[0], first : first + shape[1]], dtype=np.float32)
