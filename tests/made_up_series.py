"""A smooth series for tests that need no film."""

import numpy as np


def wave(n_frames, n_features=8, seed=0):
    """A smooth film (n_frames, n_features): a few incommensurate oscillations and a little noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(n_frames)[:, None]
    pixel = np.arange(n_features)
    smooth = np.cos(t / 15 + pixel) + 0.5 * np.sin(t / 9 + pixel**2) + 0.3 * np.cos(t / 31 - 2 * pixel)
    return smooth + 0.02 * rng.standard_normal((n_frames, n_features))
