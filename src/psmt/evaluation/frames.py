"""How far a predicted frame is from the true one: MSE, PSNR and SSIM of grey levels, with white at 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

Array = NDArray[np.float64]

FLAWLESS = 1e-10
"""MSE below which a prediction counts as flawless, so that its PSNR is 100 dB and not infinite."""

# Of Wang, Bovik, Sheikh and Simoncelli (2004): a Gaussian of 11 x 11 pixels, and the two constants.
_SIGMA, _RADIUS = 1.5, 5
_LUMINANCE, _CONTRAST = 0.01**2, 0.03**2

SMALLEST = 2 * _RADIUS + 1
"""Side of the smallest frame that SSIM is defined for."""


class FrameScore(NamedTuple):
    """Figures of one predicted frame."""

    mse: float
    psnr: float
    """Decibels, higher is better."""
    ssim: float
    """At most 1, which is a flawless prediction."""


def score_frames(predicted: ArrayLike, truth: ArrayLike) -> list[FrameScore]:
    """Scores of predictions (n, height, width) of one frame (height, width).

    >>> truth = np.tile([0.0, 1.0], (12, 6))
    >>> [round(score.psnr, 1) for score in score_frames([truth, truth + 0.1], truth)]
    [100.0, 20.0]
    """
    stack, frame = np.asarray(predicted), np.asarray(truth)
    errors: Array = np.mean((stack - frame) ** 2, axis=(1, 2), dtype=np.float64)
    return [FrameScore(*map(float, row)) for row in zip(errors, psnr(errors), ssim(stack, frame), strict=True)]


def psnr(mse: ArrayLike) -> Array:
    """Peak signal-to-noise ratio in decibels of errors (n,): 100 at the most.

    >>> psnr([1e-2, 0.0])
    array([ 20., 100.])
    """
    return -10 * np.log10(np.maximum(mse, FLAWLESS))


def ssim(predicted: ArrayLike, truth: ArrayLike) -> Array:
    """Structural similarity (n,) of predictions (n, height, width) of one frame (height, width).

    With the Gaussian weights of the original; pixels whose neighbourhood leaves the frame are not counted.
    """
    stack, frame = np.asarray(predicted), np.asarray(truth)
    if min(frame.shape) < SMALLEST:
        height, width = frame.shape
        raise ValueError(f"SSIM looks at {SMALLEST} x {SMALLEST} pixels, but a frame has {height} x {width}")
    mean, other = _blur(stack), _blur(frame)
    variance, other_variance = _blur(stack**2) - mean**2, _blur(frame**2) - other**2
    covariance = _blur(stack * frame) - mean * other
    luminance = (2 * mean * other + _LUMINANCE) / (mean**2 + other**2 + _LUMINANCE)
    structure = (2 * covariance + _CONTRAST) / (variance + other_variance + _CONTRAST)
    inside = slice(_RADIUS, -_RADIUS)
    return np.mean((luminance * structure)[:, inside, inside], axis=(1, 2), dtype=np.float64)


def _blur(frames: NDArray[np.floating]) -> NDArray[np.floating]:
    """Weighted means around each pixel of frames (.., height, width)."""
    return gaussian_filter(frames, _SIGMA, radius=_RADIUS, axes=(-2, -1))
