"""Speed and noise of a film, measured on its patches.

Speed is measured by registration. The first estimate is the whole-pixel shift that maps a patch best onto a later one.
Gauss-Newton steps on the squared difference refine it (Lucas and Kanade, 1981). Slow motion is measured over several
frames, so that it exceeds the measurement error. Noise is the residual of registration. It need not be white in space.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter

from psmt.plot.shared import looks_like_pictures
from psmt.types import Array, Ints
from psmt.utils.constraints import check_count
from psmt.utils.validation import check_series

SMALLEST_SIDE = 8
"""Smallest side of a patch in pixels. Registration needs some overlap of the shifted patches."""

SHORTEST = 32
"""Smallest number of frames that can be measured."""

LONGEST_LAG = 16
"""Largest number of frames over which slow motion is measured."""

LARGEST_SHIFT = 2.5
"""Largest shift in pixels over a lag of more than one frame."""

SMOOTHING = 1.0
"""Width in pixels of the blur before registration. Noise in the gradients would bias speeds towards zero."""

POOLED = 4
"""Number of successive frames that are assumed to have the same motion."""

GAUSS_NEWTON_STEPS = 4

NOISE_ALONE = 0.9
"""Upper bound on the fraction of a patch's variance that is noise. The noise is then three times the contrast."""


@dataclass(frozen=True)
class Regime:
    """Speed and noise of a film."""

    speed: float
    """Median speed, pixels per frame."""
    noise: float
    """Standard deviation of the noise, as a fraction of the patch's contrast."""
    slow: float
    """First quartile of the speeds, pixels per frame."""
    fast: float
    """Third quartile of the speeds, pixels per frame."""


def measure_regime(values: ArrayLike, *, n_samples: int = 120) -> Regime | None:
    """Measure the speed and noise of standardised patches ``(time, side * side)`` at up to `n_samples` times.

    The result is None if there are fewer than 32 frames, if the features do not form a square of at least 8 x 8, or if
    neighbouring features are not correlated.

    Notes
    -----
    These figures are for 16 x 16 patches of the built-in film at speeds of 0.05 to 4 pixels per frame. If the noise is
    at most 0.1 of the contrast, the error of the speed is at most 10% and the error of the noise at most 0.03. If the
    noise is 0.3 of the contrast, the errors are at most 50% and 0.06. Shifts of more than a third of the patch are not
    found. A patch with one straight edge shows only motion across that edge, so samples are weighted by the smaller
    eigenvalue of their structure tensor.

    Examples
    --------
    >>> from psmt import read_patches
    >>> film = "builtin:glide?frames=600&speed=0.5&noise=0.1&size=16"
    >>> regime = measure_regime(read_patches(film, frame_size=16).values)
    >>> round(regime.speed, 1), round(regime.noise, 1)
    (0.5, 0.1)
    """
    series = check_series(values)
    check_count("n_samples", n_samples)
    side = isqrt(series.shape[1])
    if side**2 != series.shape[1] or side < SMALLEST_SIDE or len(series) < SHORTEST:
        return None
    last = len(series) - LONGEST_LAG - POOLED
    times = np.unique(np.linspace(0, last, n_samples).astype(int))
    # Read only what is needed: a film may be long.
    needed = np.unique(times[:, None] + np.arange(LONGEST_LAG + POOLED))
    patches = np.asarray(series[needed]).reshape(-1, side, side)
    times = np.searchsorted(needed, times)
    if not looks_like_pictures(patches[times]):
        return None
    speeds, steps, weights = _motion(patches, times)
    slow, speed, fast = _quantiles(speeds, weights, (0.25, 0.5, 0.75))
    return Regime(speed, _noise(patches[times], patches[times + 1], steps), slow, fast)


def _motion(patches: Array, times: Ints) -> tuple[Array, Array, Array]:
    """Measure the motion at each of `times` (n,). Return speeds (n,), shifts (n, 2) to the next frame, weights (n,)."""
    smooth = gaussian_filter(patches, (0, SMOOTHING, SMOOTHING))
    stretch = times[:, None] + np.arange(POOLED)
    first, _ = _register(smooth[stretch], smooth[stretch + 1])
    # The largest power of two over which the patch still overlaps with itself.
    room = np.clip(LARGEST_SHIFT / np.maximum(np.hypot(*first.T), 1e-9), 1, LONGEST_LAG)
    lags = 2 ** np.floor(np.log2(room)).astype(int)
    shifts, weights = _register(smooth[stretch], smooth[stretch + lags[:, None]])
    steps = shifts / lags[:, None]
    return np.hypot(*steps.T), steps, weights


def _register(before: Array, after: Array) -> tuple[Array, Array]:
    """Return the shifts (n, 2) in rows and columns between two arrays of patches (n, POOLED, side, side).

    Also return the smaller eigenvalue of the structure tensor (n,), which is near zero if all edges are parallel.
    """
    side = before.shape[-1]
    reach = side // 3
    best = np.full(len(before), np.inf)
    shifts = np.zeros((len(before), 2))
    for row in range(-reach, reach + 1):
        for column in range(-reach, reach + 1):
            gap = _standardised(_overlap(before, -row, -column)) - _standardised(_overlap(after, row, column))
            error = np.mean(gap**2, axis=(1, 2, 3))
            better = error < best
            best[better] = error[better]
            shifts[better] = row, column
    cut = 1 + reach // 2
    still = _standardised(before[..., cut:-cut, cut:-cut])
    for _ in range(GAUSS_NEWTON_STEPS):
        moved = _standardised(_shifted(after, shifts, cut))
        down, right = np.gradient(moved, axis=(2, 3))
        a, b, c, u, v = (
            np.mean(x * y, axis=(1, 2, 3))
            for x, y in ((down, down), (down, right), (right, right), (down, still - moved), (right, still - moved))
        )
        # Motion along an edge is undetermined: take the shortest step that explains the difference.
        lift = 1e-3 * (a + c) + 1e-12
        step = np.stack([(c + lift) * u - b * v, (a + lift) * v - b * u], axis=1)
        shifts += np.clip(step / ((a + lift) * (c + lift) - b**2)[:, None], -1, 1)
        np.clip(shifts, -reach, reach, out=shifts)
    return shifts, np.maximum((a + c) / 2 - np.sqrt(((a - c) / 2) ** 2 + b**2), 1e-12)


def _overlap(patches: Array, row: int, column: int) -> Array:
    """Return the part of patches (.., side, side) that overlaps with a copy shifted by whole rows and columns."""
    return patches[..., max(row, 0) : min(row, 0) or None, max(column, 0) : min(column, 0) or None]


def _standardised(patches: Array) -> Array:
    """Scale each patch of (.., side, side) to zero mean and unit variance."""
    centred = _centred(patches)
    standardised: Array = centred / np.maximum(centred.std(axis=(-2, -1), keepdims=True), 1e-12)
    return standardised


def _centred(patches: Array) -> Array:
    centred: Array = patches - patches.mean(axis=(-2, -1), keepdims=True)
    return centred


def _shifted(patches: Array, shifts: Array, cut: int) -> Array:
    """Shift patches (n, .., side, side) by (n, 2) pixels with interpolation, and cut `cut` pixels off each border."""
    down, right = (_cubic(patches.shape[-1], shift, cut) for shift in shifts.T)
    moved: Array = np.einsum("nij,n...jk,nlk->n...il", down, patches, right, optimize=True)
    return moved


def _cubic(side: int, shift: Array, cut: int) -> Array:
    """Return interpolation weights (n, side - 2 cut, side) for shifts (n,) along one axis. The border is repeated."""
    at = np.arange(cut, side - cut) + shift[:, None]
    left = np.floor(at).astype(int)
    u = at - left
    weights = np.zeros((*at.shape, side))
    n, i = np.indices(at.shape)
    # Cubic convolution (Keys, 1981).
    taps = (
        ((-0.5 * u + 1.0) * u - 0.5) * u,
        (1.5 * u - 2.5) * u * u + 1.0,
        ((-1.5 * u + 2.0) * u + 0.5) * u,
        (0.5 * u - 0.5) * u * u,
    )
    for k, tap in enumerate(taps):
        np.add.at(weights, (n, i, np.clip(left + k - 1, 0, side - 1)), tap)
    return weights


def _noise(before: Array, after: Array, steps: Array) -> float:
    """Return the median noise of patches (n, side, side) that move by steps (n, 2), relative to their contrast."""
    side = before.shape[-1]
    cut = min(side // 3, 1 + int(np.ceil(np.quantile(np.abs(steps), 0.75))))
    moved, still = _shifted(after, steps, cut), before[:, cut:-cut, cut:-cut]
    # The covariance of two registered frames comes from the picture; the rest of their variance is noise.
    shared = np.mean(_centred(moved) * _centred(still), axis=(1, 2))
    energy = np.sqrt(np.mean(_centred(moved) ** 2, axis=(1, 2)) * np.mean(_centred(still) ** 2, axis=(1, 2)))
    # Interpolation averages noise and keeps only this share of its variance.
    down, right = (np.mean(np.sum(_cubic(side, shift, cut) ** 2, axis=2), axis=1) for shift in steps.T)
    noise = np.clip(2 * (energy - shared) / (1 + down * right), 0, NOISE_ALONE)
    # The variance of a standardised patch is 1, including its noise.
    return float(np.median(np.sqrt(noise / (1 - noise))))


def _quantiles(values: Array, weights: Array, shares: tuple[float, ...]) -> list[float]:
    """Return the weighted quantiles of the values (n,) at the given levels from 0 to 1."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return [float(values[order][min(np.searchsorted(below, share * below[-1]), len(values) - 1)]) for share in shares]
