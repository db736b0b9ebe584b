"""Errors of predictions: MSE of patches and frames, PSNR and SSIM of grey levels with white at 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from psmt.types import Array
from psmt.utils.validation import real_array

FLOOR = 1e-12
"""Lower bound of errors in a logarithm; copying a repeated patch has no error."""

FLAWLESS = 1e-10
"""Lower bound of the MSE in the PSNR, which is thus at most 100 dB."""

TRIMMED = 0.25
"""Fraction of the errors that Table 1 omits at each end."""

# Of Wang, Bovik, Sheikh and Simoncelli (2004): a Gaussian of 11 x 11 pixels, and the two constants.
_SIGMA, _RADIUS = 1.5, 5
_LUMINANCE, _CONTRAST = 0.01**2, 0.03**2
_SSIM_WINDOW = 2 * _RADIUS + 1


class FrameScore(NamedTuple):
    """Scores of one predicted frame."""

    mse: float
    psnr: float
    """In decibels; higher is better."""
    ssim: float
    """At most 1, for a prediction without error."""


def mse(predicted: ArrayLike, truth: ArrayLike, *, axes: int = 1) -> Array:
    """Mean squared errors (n,) of predictions (n, ..) over the last `axes` axes: 1 for patches, 2 for whole frames."""
    gap = np.subtract(*_as_floats(predicted, truth))
    errors: Array = np.mean(gap**2, axis=tuple(range(-axes, 0)), dtype=np.float64)
    return errors


def log_mse(errors: ArrayLike) -> Array:
    """Natural logarithm of errors, which are raised to at least `FLOOR`.

    >>> [round(float(value), 2) for value in log_mse([1.0, 0.1, 0.0])]
    [0.0, -2.3, -27.63]
    """
    return np.log(np.maximum(errors, FLOOR))


def trimmed(errors: Array) -> Array:
    """The errors in ascending order, without a quarter at each end, as in Table 1.

    >>> trimmed(np.array([[8.0, 1.0], [2.0, 900.0]]))
    array([2., 8.])
    """
    ordered = np.sort(errors, axis=None)
    cut = int(TRIMMED * ordered.size)
    return ordered[cut : ordered.size - cut]


def error_ratio(error: float, reference: float) -> float:
    """`error` divided by that of a reference, such as copying; NaN if that is zero.

    >>> error_ratio(1.0, 4.0), error_ratio(0.0, 0.0)
    (0.25, nan)
    """
    return error / reference if reference > 0 else float("nan")


def score_frames(predicted: ArrayLike, truth: ArrayLike) -> list[FrameScore]:
    """Scores of predictions (n, height, width) of one frame (height, width).

    >>> truth = np.tile([0.0, 1.0], (12, 6))
    >>> [round(score.psnr, 1) for score in score_frames([truth, truth + 0.1], truth)]
    [100.0, 20.0]
    """
    errors = mse(predicted, truth, axes=2)
    return [FrameScore(*map(float, row)) for row in zip(errors, psnr(errors), ssim(predicted, truth), strict=True)]


def psnr(errors: ArrayLike) -> Array:
    """Peak signal-to-noise ratio in decibels of mean squared errors (n,), at most 100.

    >>> psnr([1e-2, 0.0])
    array([ 20., 100.])
    """
    return -10 * np.log10(np.maximum(errors, FLAWLESS))


def ssim(predicted: ArrayLike, truth: ArrayLike) -> Array:
    """Structural similarity (n,) of predictions (n, height, width) of one frame (height, width).

    With the Gaussian weights of the original paper, and without pixels whose neighbourhood extends beyond the frame.
    """
    stack, frame = _as_floats(predicted, truth)
    if frame.ndim != 2 or stack.ndim != 3:
        raise ValueError(
            f"predicted has shape {stack.shape} and truth {frame.shape}; give frames (n, height, width) and one "
            "(height, width)"
        )
    if min(frame.shape) < _SSIM_WINDOW:
        height, width = frame.shape
        raise ValueError(f"SSIM needs {_SSIM_WINDOW} x {_SSIM_WINDOW} pixels, but a frame has {height} x {width}")
    mean, other = _blur(stack), _blur(frame)
    variance, other_variance = _blur(stack**2) - mean**2, _blur(frame**2) - other**2
    covariance = _blur(stack * frame) - mean * other
    luminance = (2 * mean * other + _LUMINANCE) / (mean**2 + other**2 + _LUMINANCE)
    structure = (2 * covariance + _CONTRAST) / (variance + other_variance + _CONTRAST)
    inside = slice(_RADIUS, -_RADIUS)
    similarity: Array = np.mean((luminance * structure)[:, inside, inside], axis=(1, 2), dtype=np.float64)
    return similarity


def _as_floats(predicted: ArrayLike, truth: ArrayLike) -> list[NDArray[Any]]:
    """Both as float32 or float64 arrays of compatible shapes."""
    given = real_array(predicted, name="predicted"), real_array(truth, name="truth")
    shapes = [array.shape for array in given]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"predicted has shape {shapes[0]}, which does not fit truth of shape {shapes[1]}") from None
    return [np.asarray(array, np.float32 if array.dtype == np.float32 else np.float64) for array in given]


def _blur(frames: NDArray[Any]) -> NDArray[Any]:
    """Gaussian-weighted means around each pixel of frames (.., height, width)."""
    return np.asarray(gaussian_filter(frames, _SIGMA, radius=_RADIUS, axes=(-2, -1)))
