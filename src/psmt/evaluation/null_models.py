"""Null models of a film (shuffled frames, and noise with the film's spatial spectrum), and tests against them."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np

from psmt.evaluation.intervals import Interval
from psmt.types import Array
from psmt.utils.disk_series import DiskSeries, blocks, mean_of, release_pages
from psmt.utils.files import temporary_name

_FRAMES = 1 << 12  # number of frames of a film on disk that are held in memory at a time

_number = count()


def shuffle_frames(film: Array, rng: np.random.Generator) -> Array:
    """Return the frames (time, n_features) in random order, so that no frame predicts the next."""
    if not isinstance(film, DiskSeries):
        return rng.permutation(film, axis=0)
    order = rng.permutation(len(film))
    parts = np.split(order, range(_FRAMES, len(film), _FRAMES))
    return DiskSeries.write(_beside(film), (film[part] for part in parts))


def draw_noise(film: Array, rng: np.random.Generator) -> Array:
    """Draw noise (time, n_features) with the covariance and the values of a film. No frame of it predicts the next.

    First, Gaussian noise is drawn with the film's covariance between features, and so with its spatial spectrum. Then
    the values of each feature are replaced by the film's values of the same rank, to get the film's distribution.
    """
    if isinstance(film, DiskSeries):
        return _noise_on_disk(film, rng)
    drawn = rng.standard_normal(film.shape) @ _colours(np.cov(film, rowvar=False).reshape(film.shape[1], -1))
    ranks = drawn.argsort(axis=0).argsort(axis=0)
    return np.asarray(np.take_along_axis(np.sort(film, axis=0), ranks, axis=0))


def _colours(covariance: Array) -> Array:
    """Return a matrix A (n_features, n_features) for which ``w @ A`` has the given covariance if w is white noise."""
    variances, directions = np.linalg.eigh(covariance)
    return np.asarray((directions * np.sqrt(np.maximum(variances, 0.0))).T)


def _noise_on_disk(film: DiskSeries, rng: np.random.Generator) -> Array:
    """Return the noise of `draw_noise` for a film on disk. Features are sorted one by one in temporary files."""
    mean, covariance = mean_of(film), np.zeros((film.shape[1], film.shape[1]))
    for block in blocks(film):
        covariance += (block - mean).T @ (block - mean) / (len(film) - 1)
    colours = _colours(covariance)
    with TemporaryFile(dir=_folder(film)) as noise_file, TemporaryFile(dir=_folder(film)) as own_file:
        noise = _by_feature(noise_file, film, (rng.standard_normal(part.shape) @ colours for part in _parts(film)))
        own = _by_feature(own_file, film, _parts(film))
        for feature in range(film.shape[1]):
            ranks = noise[:, feature].argsort().argsort()
            noise[:, feature] = np.sort(own[:, feature])[ranks]
            release_pages(noise)
            release_pages(own)
        return DiskSeries.write(_beside(film), _parts(noise))


def _parts(values: Array) -> Iterator[Array]:
    """Yield the rows of a memory-mapped array in parts (n, n_features). Only one part is in memory at a time."""
    for first in range(0, len(values), _FRAMES):
        yield values[first : first + _FRAMES]
        release_pages(values)


def _by_feature(file: BinaryIO, film: DiskSeries, parts: Iterable[Array]) -> Array:
    """Write all parts into a file in column-major order, and return the memory-mapped array (time, n_features)."""
    os.posix_fallocate(file.fileno(), 0, film.nbytes)  # a full disk raises here; while mapped it would end the process
    columns: Array = np.memmap(file, np.float64, "r+", shape=film.shape, order="F")
    for target, part in zip(_parts(columns), parts, strict=True):
        target[:] = part
    return columns


def _folder(film: DiskSeries) -> Path:
    return Path(str(film.filename)).parent


def _beside(film: DiskSeries) -> Path:
    return temporary_name(_folder(film) / f"null-{next(_number)}")


NULLS: dict[str, Callable[[Array, np.random.Generator], Array]] = {"shuffled": shuffle_frames, "noise": draw_noise}
"""Functions that draw a null model from a film (time, n_features), by name."""

NULL_NAMES = {"shuffled": "its frames shuffled", "noise": "noise of its spectrum"}
"""Names of the null models in sentences of reports."""

LEVEL = 0.05
"""Significance level: the largest p-value that speaks against chance."""


@dataclass(frozen=True, eq=False)
class NullTest:
    """A statistic and draws from its null distribution."""

    value: float
    """The statistic, or NaN if it is not defined."""
    null: Array
    """Draws (n_draws,) of the statistic under the null hypothesis."""

    @property
    def null_mean(self) -> float:
        """Mean of the draws, or NaN if there are none."""
        return float(self.null.mean()) if len(self.null) else np.nan

    @property
    def p_value(self) -> float:
        """One-sided p-value: (1 + number of draws that are at least as large as the statistic) / (1 + n_draws)."""
        at_least = int(np.count_nonzero(self.null >= self.value))
        return (1 + at_least) / (1 + len(self.null)) if np.isfinite(self.value) else np.nan

    @cached_property
    def excess(self) -> Interval:
        """The statistic minus the mean of the null draws, with a 90% interval.

        The bounds are the statistic minus the 95% quantile and minus the 5% quantile of the draws. Under the null
        hypothesis the statistic is exchangeable with the draws. So, for any distribution, the interval lies above 0 in
        1 of 20 cases and below 0 in 1 of 20. With 19 draws, the quantiles are the largest and the smallest draw.
        """
        outside = int(LEVEL * (len(self.null) + 1))
        if not np.isfinite(self.value):
            return Interval(np.nan, -np.inf, np.inf)
        less = self.value - np.sort(self.null)
        if outside == 0:
            return Interval(float(less.mean()) if len(less) else np.nan, -np.inf, np.inf)
        return Interval(float(less.mean()), float(less[-outside]), float(less[outside - 1]))

    def summary(self) -> dict[str, Any]:
        """Return the values to write to JSON."""
        return {
            "value": self.value,
            "null": self.null_mean,
            "draws": len(self.null),
            "beyond": self.excess._asdict(),
            "p_value": self.p_value,
        }
