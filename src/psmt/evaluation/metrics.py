"""Errors of predictions: MSE of patches and frames, and PSNR and SSIM of grey levels between 0 and 1."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from psmt.types import Array
from psmt.utils.validation import real_array

FLOOR = 1e-12
"""Smaller errors are replaced by this before a logarithm is taken. Copying a repeated patch has no error."""

FLAWLESS = 1e-10
"""Lower bound of the MSE in the PSNR. So the PSNR is at most 100 dB."""

TRIMMED = 0.25
"""Fraction of the errors that Table 1 omits at each end."""

# Of Wang, Bovik, Sheikh and Simoncelli (2004): a Gaussian of 11 x 11 pixels, and the two constants.
_SIGMA, _RADIUS = 1.5, 5
_LUMINANCE, _CONTRAST = 0.01**2, 0.03**2
_SSIM_WINDOW = 2 * _RADIUS + 1


class FrameScore(NamedTuple):
    """MSE, PSNR and SSIM of one predicted frame."""

    mse: float
    psnr: float
    """Peak signal-to-noise ratio in decibels. Higher is better."""
    ssim: float
    """Structural similarity. It is 1 for a prediction without error."""


def mse(predicted: ArrayLike, truth: ArrayLike, *, axes: int = 1) -> Array:
    """Return mean squared errors over the last `axes` axes. Use 1 for patches and 2 for whole frames."""
    gap = np.subtract(*_as_floats(predicted, truth))
    return np.asarray(np.mean(gap**2, axis=tuple(range(-axes, 0)), dtype=np.float64))


def log_mse(errors: ArrayLike) -> Array:
    """Return the natural logarithm of errors. Errors below `FLOOR` are replaced by `FLOOR`.

    >>> [round(float(value), 2) for value in log_mse([1.0, 0.1, 0.0])]
    [0.0, -2.3, -27.63]
    """
    return np.log(np.maximum(errors, FLOOR))


def trimmed(errors: Array) -> Array:
    """Return the errors in ascending order, without the smallest and the largest quarter, as in the paper's Table 1.

    >>> trimmed(np.array([[8.0, 1.0], [2.0, 900.0]]))
    array([2., 8.])
    """
    ordered = np.sort(errors, axis=None)
    cut = int(TRIMMED * ordered.size)
    return ordered[cut : ordered.size - cut]


def error_ratio(error: float, reference: float) -> float:
    """Return `error` divided by the error of a reference, such as copying. The ratio to a zero error is NaN.

    >>> error_ratio(1.0, 4.0), error_ratio(0.0, 0.0)
    (0.25, nan)
    """
    return error / reference if reference > 0 else float("nan")


def score_frames(predicted: ArrayLike, truth: ArrayLike) -> list[FrameScore]:
    """Return the scores of n predictions (n, height, width) of one true frame (height, width).

    >>> truth = np.tile([0.0, 1.0], (12, 6))
    >>> [round(score.psnr, 1) for score in score_frames([truth, truth + 0.1], truth)]
    [100.0, 20.0]
    """
    errors = mse(predicted, truth, axes=2)
    return [FrameScore(*map(float, row)) for row in zip(errors, psnr(errors), ssim(predicted, truth), strict=True)]


def psnr(errors: ArrayLike) -> Array:
    """Return the peak signal-to-noise ratio (at most 100 dB) of mean squared errors (n,).

    >>> psnr([1e-2, 0.0])
    array([ 20., 100.])
    """
    return -10 * np.log10(np.maximum(errors, FLAWLESS))


def ssim(predicted: ArrayLike, truth: ArrayLike) -> Array:
    """Return the structural similarity (n,) of predictions (n, height, width) to one true frame (height, width).

    The weights are Gaussian, as in the original paper. Pixels whose window extends beyond the frame are left out.
    """
    stack, frame = _as_floats(predicted, truth)
    if frame.ndim != 2 or stack.ndim != 3:
        raise ValueError(
            f"predicted has shape {stack.shape}, truth {frame.shape}; give (n, height, width) and one (height, width)"
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
    return np.asarray(np.mean((luminance * structure)[:, inside, inside], axis=(1, 2), dtype=np.float64))


def _as_floats(predicted: ArrayLike, truth: ArrayLike) -> list[NDArray[Any]]:
    """Return both arguments as float32 or float64 arrays. Raise an error if their shapes are not compatible."""
    given = real_array(predicted, name="predicted"), real_array(truth, name="truth")
    shapes = [array.shape for array in given]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"predicted has shape {shapes[0]}, which does not fit truth of shape {shapes[1]}") from None
    return [np.asarray(array, np.float32 if array.dtype == np.float32 else np.float64) for array in given]


def _blur(frames: NDArray[Any]) -> NDArray[Any]:
    """Return the Gaussian-weighted mean around each pixel of frames (..., height, width)."""
    return np.asarray(gaussian_filter(frames, _SIGMA, radius=_RADIUS, axes=(-2, -1)))
