"""Films of whole frames with a known motion."""

import numpy as np
from scipy.ndimage import gaussian_filter


def texture(shape=(48, 56), seed=0, width=1.5):
    """A smooth random picture (height, width) with levels around 128, periodic at its edges."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    smooth = gaussian_filter(noise, width, mode="wrap")
    return 128 + 40 * smooth / smooth.std()


def waves(height=48, width=56):
    """A periodic pattern (height, width) without fine detail: the sum of twelve plane waves."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    pattern = np.zeros((height, width))
    for _ in range(12):
        turns, angle = rng.integers(-6, 7, size=2), rng.uniform(0, 2 * np.pi)
        pattern += np.cos(2 * np.pi * (turns[0] * y / height + turns[1] * x / width) + angle)
    return 0.5 + 0.4 * pattern / np.abs(pattern).max()


def gliding(velocity, n, picture=None, **kwargs):
    """A film (n, height, width) of a periodic picture that moves by `velocity` (down, right) pixels per frame."""
    spectrum = np.fft.fft2(texture(**kwargs) if picture is None else picture)
    down, right = np.fft.fftfreq(spectrum.shape[0])[:, None], np.fft.fftfreq(spectrum.shape[1])
    shifts = np.exp(-2j * np.pi * np.arange(n)[:, None, None] * (velocity[0] * down + velocity[1] * right))
    return np.fft.ifft2(spectrum * shifts).real
