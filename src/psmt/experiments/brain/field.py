"""What the field uses: sliding-window correlations with k-means, a Gaussian hidden Markov model, dynamic modes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
from sklearn.cluster import KMeans

from psmt.model.baselines import SeriesBaseline
from psmt.types import Array, Ints, Levels

WINDOWS_PER_LENGTH = 4
"""Sliding windows begin each quarter of their length."""


def window_states(people: Sequence[Array], n_states: int, *, length: int, seed: int = 0) -> list[Ints]:
    """States (time,) of each person (time, n_regions): k-means of the correlations in sliding windows.

    A volume has the state of the window whose middle is nearest. There are no more states than windows.
    """
    correlations, middles = zip(*(_windows(series, min(length, len(series))) for series in people), strict=True)
    joined = np.concatenate(correlations)
    labels = KMeans(min(n_states, len(joined)), n_init=4, random_state=seed).fit_predict(joined)
    states, first = [], 0
    for series, own in zip(people, middles, strict=True):
        # Midway from one middle to the next: all distances at once would take memory with the square of the length.
        nearest = np.searchsorted(0.5 * (own[:-1] + own[1:]), np.arange(len(series)))
        states.append(labels[first : first + len(own)][nearest].astype(np.int64))
        first += len(own)
    return states


def _windows(series: Array, length: int) -> tuple[Levels, Array]:
    """Correlations (n_windows, n_pairs) of a person, in float32 as there are many, and the middles of the windows."""
    starts = np.arange(0, len(series) - length + 1, max(1, length // WINDOWS_PER_LENGTH))
    pairs = np.triu_indices(series.shape[1], 1)
    found = [correlation(series[start : start + length])[pairs].astype(np.float32) for start in starts]
    return np.array(found, dtype=np.float32), (starts + (length - 1) / 2).astype(np.float64)


def correlation(series: Array) -> Array:
    """Correlations (n_regions, n_regions); 0 for a region that stands still."""
    own = series - series.mean(axis=0)
    norms = np.linalg.norm(own, axis=0)
    unit = np.divide(own, norms, out=np.zeros_like(own), where=norms > 1e-12)
    return np.asarray(unit.T @ unit)


def has_hmm() -> bool:
    """Whether hmmlearn is there."""
    return find_spec("hmmlearn") is not None


def hmm_states(people: Sequence[Array], n_states: int, *, n_components: int, seed: int = 0) -> list[Ints]:
    """States (time,) of each person (time, n_regions): hmmlearn's Gaussian model on principal components.

    Full covariances on as many components as our trajectory has, and diagonal ones on twice as many; the likelier per
    component of two starts each is taken.
    """
    from hmmlearn.hmm import GaussianHMM

    joined, lengths = np.concatenate(people), [len(series) for series in people]
    _, vectors = np.linalg.eigh(joined.T @ joined)
    best: tuple[float, list[Ints]] | None = None
    for kind, width in (("full", n_components), ("diag", 2 * n_components)):
        points = joined @ vectors[:, ::-1][:, :width]
        for start in range(2):
            model = GaussianHMM(n_states, covariance_type=kind, n_iter=50, random_state=seed + start)
            with _without_news():
                model.fit(points, lengths)
                # Against a single Gaussian of the same kind, so that different widths can be compared.
                alone = GaussianHMM(1, covariance_type=kind, n_iter=1, random_state=0).fit(points)
                score = float(model.score(points, lengths) - alone.score(points)) / width
                states = np.asarray(model.predict(points, lengths), dtype=np.int64)
            if best is None or score > best[0]:
                best = score, np.split(states, np.cumsum(lengths)[:-1])
    assert best is not None
    return best[1]


@contextmanager
def _without_news() -> Iterator[None]:
    """Let hmmlearn say nothing: the likeliest of several starts is taken, and that one does not converge is no news."""
    told = logging.getLogger("hmmlearn")
    before = told.level
    told.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        told.setLevel(before)


class DynamicModes(SeriesBaseline):
    """Dynamic mode decomposition: a linear map of the leading principal components, of a rank chosen on the past.

    The rank is the best of five on the last eighth of the past, one volume ahead.
    """

    n_last = 1
    learned = ("rank_", "map_")
    _RANKS = (4, 8, 16, 32, 64)

    def learn(self, past: Array) -> None:
        """Learn from the checked past."""
        cut = len(past) - max(len(past) // 8, 2)
        ranks = [rank for rank in self._RANKS if rank <= past.shape[1]] or [past.shape[1]]
        maps = [self._mapped(past[:cut], rank) for rank in ranks]
        errors = [float(np.mean((past[cut:-1] @ own - past[cut + 1 :]) ** 2)) for own in maps]
        self.rank_ = ranks[int(np.argmin(errors))]
        self.map_ = self._mapped(past, self.rank_)

    @staticmethod
    def _mapped(past: Array, rank: int) -> Array:
        """The map (n_features, n_features), applied from the right."""
        left, sizes, right = np.linalg.svd(past[:-1], full_matrices=False)
        kept = slice(min(rank, int(np.sum(sizes > 1e-9 * sizes[0]))))
        return np.asarray((right[kept].T / sizes[kept]) @ (left[:, kept].T @ past[1:]) @ right[kept].T @ right[kept])

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.asarray(last[-1] @ self.map_)
