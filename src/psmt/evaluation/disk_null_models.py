"""Nulls of a film that is stored on disk: the same draws as in `nulls`, by way of files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

import numpy as np

from psmt.types import Array
from psmt.utils.disk_series import StoredSeries, blocks, mean_of
from psmt.utils.files import temporary_name

_BLOCK = 1 << 12
"""Frames that are held at a time."""

_number = count()


def store_shuffled(film: StoredSeries, rng: np.random.Generator) -> StoredSeries:
    """The frames (time, n_features) in another order."""
    order = rng.permutation(len(film))
    parts = (film[order[first : first + _BLOCK]] for first in range(0, len(film), _BLOCK))
    return StoredSeries.write(_beside(film), parts)


def store_noise(film: StoredSeries, rng: np.random.Generator) -> StoredSeries:
    """Noise (time, n_features) with the film's covariance and, feature by feature, its values."""
    mean, covariance = mean_of(film), np.zeros((film.shape[1], film.shape[1]))
    for block in blocks(film):
        covariance += (block - mean).T @ (block - mean) / (len(film) - 1)
    variances, directions = np.linalg.eigh(covariance)
    colours = (directions * np.sqrt(np.maximum(variances, 0.0))).T
    drawn = (rng.standard_normal((len(part), film.shape[1])) @ colours for part in _parts(film))
    with _Columns(film, drawn) as noise, _Columns(film, (np.asarray(part) for part in _parts(film))) as own:
        for feature in range(film.shape[1]):
            ranks = noise.column(feature).argsort().argsort()
            noise.put(feature, 0, np.sort(own.column(feature))[ranks])
        return StoredSeries.write(_beside(film), noise.rows())


def _parts(film: StoredSeries) -> Iterator[StoredSeries]:
    return (film[first : first + _BLOCK] for first in range(0, len(film), _BLOCK))


def _beside(film: StoredSeries) -> Path:
    return temporary_name(film.path.with_name(f"null-{next(_number)}"))


class _Columns:
    """A series (time, n_features) in a file that holds feature after feature, so that each can be sorted alone."""

    def __init__(self, film: StoredSeries, parts: Iterator[Array]) -> None:
        self._n, self._n_features = film.shape
        self._path, self._parts = _beside(film), parts

    def __enter__(self) -> _Columns:
        self._file: BinaryIO = open(self._path, "wb+")
        try:
            first = 0
            for part in self._parts:
                for feature in range(self._n_features):
                    self.put(feature, first, part[:, feature])
                first += len(part)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def put(self, feature: int, first: int, values: Array) -> None:
        """Write values (n,) of a feature from a frame on."""
        self._file.seek(8 * (feature * self._n + first))
        self._file.write(np.ascontiguousarray(values).data)

    def column(self, feature: int, first: int = 0, size: int | None = None) -> Array:
        """Values (n,) of a feature: all, or some from a frame on."""
        self._file.seek(8 * (feature * self._n + first))
        return np.frombuffer(self._file.read(8 * (self._n if size is None else size)))

    def rows(self) -> Iterator[Array]:
        """Yield the frames (n, n_features) again, in order."""
        for first in range(0, self._n, _BLOCK):
            size = min(_BLOCK, self._n - first)
            yield np.stack([self.column(feature, first, size) for feature in range(self._n_features)], axis=1)
