"""Where claims are tested: many starts of the film, and its nulls, which are the film without its order in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from psmt.experiments.phases import Phase
from psmt.experiments.prediction.stored_nulls import store_noise, store_shuffled
from psmt.stored import StoredSeries
from psmt.types import Array


def choose_starts(phases: Sequence[Phase], n_frames: int, *, window: int, horizon: int, n_starts: int) -> list[Phase]:
    """The phases and, at even distances, more starts: `n_starts` at the most, in order, no two with a common frame.

    >>> [start.start for start in choose_starts([Phase("calm", 14)], 41, window=10, horizon=4, n_starts=4)]
    [14, 23, 36]
    """
    length = horizon + 1
    first, last = window, n_frames - length
    count = min(n_starts - len(phases), (last - first) // length + 1)
    places = [first + i * (last - first) // max(count - 1, 1) for i in range(count)]
    more = [place for place in places if all(abs(place - phase.start) >= length for phase in phases)]
    return sorted([*phases, *(Phase(f"start-{place}", place) for place in more)], key=lambda start: start.start)


def choose_null_starts(starts: Sequence[Phase], n_null: int) -> list[Phase]:
    """Of the starts, `n_null` at even distances, or all of them where there are fewer."""
    places = np.linspace(0, len(starts) - 1, min(n_null, len(starts))).round().astype(int)
    return [starts[place] for place in places]


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
