"""Prediction of the next volumes of one person: PSMT and the linear models that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from psmt.experiments.brain.group import MAX_VOLUMES
from psmt.model import PSMT
from psmt.model.baselines import CopyLast, SeriesBaseline
from psmt.series import Scaling
from psmt.types import Array, Predictor, Result
from psmt.utils.constraints import Constraint, check_count, count

PREDICTORS = {
    "psmt": "PSMT",
    "ridge": "ridge autoregression",
    "dmd": "dynamic modes",
    "copy": "last volume copied",
    "mean": "mean of the past",
}
"""In the order of `predict_person`."""

SCORED = 0.25
"""Share of each series, at its end, that is predicted."""

ORDERS, PENALTIES = (1, 2, 3, 4), tuple(float(10.0**power) for power in np.arange(-3.0, 2.6, 0.5))
"""Candidates of ridge autoregression: the number of past rows, and penalties relative to the inputs' mean square."""


def predict_person(*, series: Array, horizon: int, seed: int) -> Result:
    """``errors`` (n_predictors, horizon) on the last quarter of a raw series (time, n_regions). One task.

    An error is the mean squared error divided by the variance of the scored part. Both are means over regions, each in
    units of its standard deviation in the past, so that no large or drifting region dominates. Everything is learned
    from the past, or from its last 12,000 volumes if it is longer.
    """
    n_scored = int(SCORED * len(series))
    series = series[max(len(series) - n_scored - MAX_VOLUMES, 0) :]
    start = len(series) - n_scored
    scaling = Scaling.of(series[:start])
    rows = scaling.standardise(series)
    psmt = PSMT.for_series(random_state=seed).fit(series[:start])
    linear: list[Predictor] = [DirectRidge(horizon=horizon), DynamicModes(), CopyLast()]
    for method in linear:
        method.fit(rows[:start])
    squared = np.zeros((len(PREDICTORS), horizon))
    counts = np.zeros(horizon)
    for t in range(start, len(rows)):
        truth = rows[t : t + horizon]
        ahead = len(truth)
        mean = np.zeros_like(truth)
        predicted = [scaling.standardise(psmt.predict(ahead)), *(method.predict(ahead) for method in linear), mean]
        squared[:, :ahead] += [((own - truth) ** 2).mean(axis=1) for own in predicted]
        counts[:ahead] += 1
        psmt.update(series[t])
        for method in linear:
            method.update(rows[t])
    variance = float(rows[start:].var(axis=0).mean())
    return {"errors": squared / np.maximum(counts, 1) / variance}


class DirectRidge(SeriesBaseline):
    """Ridge autoregression with a separate regression for each number of rows ahead, tuned on the past.

    The row h ahead is a linear map of the last few rows. There is no intercept: rows are deviations from their mean.
    For each h, order and penalty minimise the walk-forward error inside the past.

    Parameters
    ----------
    horizon : int, default 5
        Most rows ahead that can be predicted.
    """

    n_last = max(ORDERS)
    learned = ("orders_", "penalties_", "weights_")
    _parameter_constraints: ClassVar[dict[str, Constraint]] = {"horizon": count()}

    def __init__(self, *, horizon: int = 5) -> None:
        self.horizon = horizon

    def learn(self, past: Array) -> None:
        """Learn from the checked past."""
        n_rows, n = past.shape
        errors = np.zeros((len(ORDERS), len(PENALTIES), self.horizon))
        for fold in (4, 5, 6, 7):  # eighths of the past, each predicted from the rows before it
            first, stop = n_rows * fold // 8, n_rows * (fold + 1) // 8
            errors += [self._errors(past[:stop], first, order) for order in ORDERS]
        # Weights beyond the chosen order stay zero, so that all maps have one shape.
        self.weights_ = np.zeros((self.horizon, self.n_last * n, n))
        self.orders_, self.penalties_ = np.zeros(self.horizon, dtype=np.int64), np.zeros(self.horizon)
        for h in range(self.horizon):
            i, j = np.unravel_index(np.argmin(errors[..., h]), errors.shape[:2])
            self.orders_[h], self.penalties_[h] = ORDERS[i], PENALTIES[j]
            (weights,) = _ridge_maps(past, ORDERS[i], [h + 1], n_rows - h - 1, [PENALTIES[j]])
            self.weights_[h, : len(weights)] = weights

    def _errors(self, past: Array, first: int, order: int) -> Array:
        """Squared errors (n_penalties, horizon) on the rows from `first`, of maps learned from the rows before it."""
        # One decomposition serves all horizons: only pairs whose furthest row is known are used.
        ahead = range(1, self.horizon + 1)
        maps = [
            np.split(weights, self.horizon, axis=1)
            for weights in _ridge_maps(past, order, ahead, first - self.horizon, PENALTIES)
        ]
        errors = np.zeros((len(PENALTIES), self.horizon))
        start = max(first, order) - 1
        for h in ahead:
            inputs, truth = _inputs(past, order, start, len(past) - h), past[start + h :]
            errors[:, h - 1] = [np.sum((truth - inputs @ own[h - 1]) ** 2) for own in maps]
        return errors

    def predict(self, horizon: int | None = None) -> NDArray[Any]:
        """Return the next row, or with a `horizon` the next rows (horizon, n_features)."""
        ahead = 1 if horizon is None else check_count("horizon", horizon)
        if ahead > self.horizon:
            raise ValueError(
                f"horizon={ahead} is more than the {self.horizon} that were learned; use DirectRidge(horizon={ahead})"
            )
        rows = np.asarray(self._last[::-1].ravel() @ self.weights_[:ahead])
        return rows[0] if horizon is None else rows

    def next_frame(self, last: Array) -> Array:
        """Return the row after the last few."""
        return np.asarray(last[::-1].ravel() @ self.weights_[0])


def _inputs(rows: Array, order: int, first: int, stop: int) -> Array:
    """The last `order` rows (n, order * n_features), the latest first, at the times `first` to `stop`."""
    return np.hstack([rows[first - k : max(stop, first) - k] for k in range(order)])


def _ridge_maps(rows: Array, order: int, ahead: Sequence[int], stop: int, penalties: Sequence[float]) -> list[Array]:
    """Ridge weights (order * n_features, n_ahead * n_features) for each penalty, by one eigendecomposition.

    They map the inputs at all times before `stop` to the rows `ahead` of them.
    """
    inputs = _inputs(rows, order, order - 1, stop)
    targets = np.hstack([rows[order - 1 + h : order - 1 + h + len(inputs)] for h in ahead])
    gram = inputs.T @ inputs
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = scipy.linalg.eigh(gram)
    turned = vectors.T @ (inputs.T @ targets)
    return [vectors @ (turned / (np.maximum(values, 0.0) + p * scale)[:, None]) for p in penalties]


class DynamicModes(SeriesBaseline):
    """Dynamic mode decomposition: a linear map of the leading principal components.

    The rank is the best of five for predicting the last eighth of the past, one volume ahead.
    """

    n_last = 1
    learned = ("rank_", "map_")
    _RANKS = (4, 8, 16, 32, 64)

    def learn(self, past: Array) -> None:
        """Learn from the checked past."""
        cut = len(past) - max(len(past) // 8, 2)
        ranks = [rank for rank in self._RANKS if rank <= past.shape[1]] or [past.shape[1]]
        maps = [self._fit_map(past[:cut], rank) for rank in ranks]
        errors = [float(np.mean((past[cut:-1] @ own - past[cut + 1 :]) ** 2)) for own in maps]
        self.rank_ = ranks[int(np.argmin(errors))]
        self.map_ = self._fit_map(past, self.rank_)

    @staticmethod
    def _fit_map(past: Array, rank: int) -> Array:
        """The map (n_features, n_features), applied from the right."""
        left, sizes, right = np.linalg.svd(past[:-1], full_matrices=False)
        kept = slice(min(rank, int(np.sum(sizes > 1e-9 * sizes[0]))))
        return np.asarray((right[kept].T / sizes[kept]) @ (left[:, kept].T @ past[1:]) @ right[kept].T @ right[kept])

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.asarray(last[-1] @ self.map_)
