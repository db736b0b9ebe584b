"""Films of whole frames with a known motion."""

import numpy as np
import pytest


def texture(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    """A periodic pattern (n_rows, n_columns) without fine detail, so that it can be moved by fractions of a pixel."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:n_rows, :n_columns]
    pattern = np.zeros((n_rows, n_columns))
    for _ in range(12):
        turns, angle = rng.integers(-6, 7, size=2), rng.uniform(0, 2 * np.pi)
        pattern += np.cos(2 * np.pi * (turns[0] * y / n_rows + turns[1] * x / n_columns) + angle)
    return 0.5 + 0.4 * pattern / np.abs(pattern).max()


@pytest.fixture
def moving():
    """A texture (n_frames, 48, 56) that moves by (down, right) pixels per frame, round and round."""

    def make(down: float, right: float, n_frames: int = 8, seed: int = 0) -> np.ndarray:
        spectrum = np.fft.fft2(texture(48, 56, seed))
        rows, columns = np.fft.fftfreq(48)[:, None], np.fft.fftfreq(56)
        steps = np.arange(n_frames)[:, None, None]
        shifted = spectrum * np.exp(-2j * np.pi * steps * (down * rows + right * columns))
        return np.fft.ifft2(shifted).real.astype(np.float32)

    return make
