"""Films and code sequences that the tests share."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from psmt import read_patches


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Matrices are small here: more threads would only wait for each other."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def glide():
    """Standardised 6 x 6 patches (420, 36) of the built-in film, a little noisy, so that every code moves."""
    return read_patches("builtin:glide?frames=420&noise=0.02&size=48", frame_size=48, patch_size=6).values


def wave(n_frames, n_features=8, seed=0):
    """A smooth film (n_frames, n_features): a few incommensurate oscillations and a little noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(n_frames)[:, None]
    pixel = np.arange(n_features)
    smooth = np.cos(t / 15 + pixel) + 0.5 * np.sin(t / 9 + pixel**2) + 0.3 * np.cos(t / 31 - 2 * pixel)
    return smooth + 0.02 * rng.standard_normal((n_frames, n_features))


@pytest.fixture(scope="session")
def film():
    """The smooth film (260, 8)."""
    return wave(260)
