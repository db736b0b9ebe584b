"""Nulls of a film, which claims must hold beyond: the film without its order in time, and noise that looks like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from psmt.evaluation.disk_null_models import store_noise, store_shuffled
from psmt.types import Array
from psmt.utils.disk_series import StoredSeries


def shuffle_frames(film: Array, rng: np.random.Generator) -> Array:
    """The frames (time, n_features) in another order: each is as it was, and none foretells the next."""
    if isinstance(film, StoredSeries):
        return cast(Array, store_shuffled(film, rng))
    return rng.permutation(film, axis=0)


def draw_noise(film: Array, rng: np.random.Generator) -> Array:
    """Noise (time, n_features) with the film's spatial spectrum: no frame foretells the next, and none was ever seen.

    Gaussian, with the film's covariance between features, so with its spectrum in space; then each feature takes the
    film's own values in the order of the noise, so that it has the same distribution.
    """
    if isinstance(film, StoredSeries):
        return cast(Array, store_noise(film, rng))
    variances, directions = np.linalg.eigh(np.cov(film, rowvar=False).reshape(film.shape[1], -1))
    drawn = rng.standard_normal(film.shape) @ (directions * np.sqrt(np.maximum(variances, 0.0))).T
    ranks = drawn.argsort(axis=0).argsort(axis=0)
    noise: Array = np.take_along_axis(np.sort(film, axis=0), ranks, axis=0)
    return noise


NULLS: dict[str, Callable[[Array, np.random.Generator], Array]] = {"shuffled": shuffle_frames, "noise": draw_noise}
"""Nulls by name, each made from a film (time, n_features)."""

NULL_NAMES = {"shuffled": "its frames shuffled", "noise": "noise of its spectrum"}
"""Nulls as a sentence has them."""
