"""Prediction of the next volumes of one person: PSMT and the linear models that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, repeat

import numpy as np
import scipy.linalg

from psmt.experiments.brain.group import MAX_VOLUMES
from psmt.model import PSMT
from psmt.series import Scaling
from psmt.types import Array, Ints, Result

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

RANKS = (4, 8, 16, 32, 64)
"""Candidates of dynamic mode decomposition."""


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
    weights, _ = direct_ridge(rows[:start], horizon)
    step = dynamic_modes(rows[:start])
    squared, counts = np.zeros((len(PREDICTORS), horizon)), np.zeros(horizon)
    for t in range(start, len(rows)):
        truth, last = rows[t : t + horizon], rows[t - 1]
        ahead = len(truth)
        ridge = last_rows(rows, t) @ weights[:ahead]
        _, *modes = accumulate(repeat(step, ahead), np.matmul, initial=last)
        predicted = [scaling.standardise(psmt.predict(ahead)), ridge, np.array(modes), last, 0.0]
        squared[:, :ahead] += [((own - truth) ** 2).mean(axis=1) for own in predicted]
        counts[:ahead] += 1
        psmt.update(series[t])
    variance = float(rows[start:].var(axis=0).mean())
    return {"errors": squared / np.maximum(counts, 1) / variance}


def last_rows(rows: Array, t: int) -> Array:
    """The rows before time `t` as one vector, the latest first: the input of `direct_ridge`."""
    return rows[t - max(ORDERS) : t][::-1].ravel()


def direct_ridge(past: Array, horizon: int) -> tuple[Array, Ints]:
    """Ridge autoregression of rows (time, n_features), with a separate regression for each number of rows ahead.

    There is no intercept: rows are deviations from their mean. Order and penalty minimise the walk-forward error inside
    the past. Returns the weights (horizon, 4 * n_features, n_features), which are 0 beyond the order, and the orders
    (horizon,).
    """
    n_rows, n = past.shape
    errors = np.zeros((len(ORDERS), len(PENALTIES), horizon))
    for fold in (4, 5, 6, 7):  # eighths of the past, each predicted from the rows before it
        first, stop = n_rows * fold // 8, n_rows * (fold + 1) // 8
        errors += [_ridge_errors(past[:stop], first, order, horizon) for order in ORDERS]
    weights, orders = np.zeros((horizon, max(ORDERS) * n, n)), np.zeros(horizon, dtype=np.int64)
    for h in range(horizon):
        i, j = np.unravel_index(np.argmin(errors[..., h]), errors.shape[:2])
        (own,) = _ridge_maps(past, ORDERS[i], [h + 1], n_rows - h - 1, [PENALTIES[j]])
        weights[h, : len(own)], orders[h] = own, ORDERS[i]
    return weights, orders


def _ridge_errors(past: Array, first: int, order: int, horizon: int) -> Array:
    """Squared errors (n_penalties, horizon) on the rows from `first`, of maps learned from the rows before it."""
    # One decomposition serves all horizons: only pairs whose furthest row is known are used.
    ahead = range(1, horizon + 1)
    joint = _ridge_maps(past, order, ahead, first - horizon, PENALTIES)
    maps = [np.split(weights, horizon, axis=1) for weights in joint]
    errors = np.zeros((len(PENALTIES), horizon))
    start = max(first, order) - 1
    for h in ahead:
        inputs, truth = _inputs(past, order, start, len(past) - h), past[start + h :]
        errors[:, h - 1] = [np.sum((truth - inputs @ own[h - 1]) ** 2) for own in maps]
    return errors


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


def dynamic_modes(past: Array) -> Array:
    """Dynamic mode decomposition of rows (time, n_features): a linear map of the leading principal components.

    The rank is the best of `RANKS` for predicting the last eighth of the past, one row ahead. The map (n_features,
    n_features) is applied from the right.
    """

    def fit(rows: Array, rank: int) -> Array:
        left, sizes, right = np.linalg.svd(rows[:-1], full_matrices=False)
        kept = slice(min(rank, int(np.sum(sizes > 1e-9 * sizes[0]))))
        return np.asarray((right[kept].T / sizes[kept]) @ (left[:, kept].T @ rows[1:]) @ right[kept].T @ right[kept])

    cut = len(past) - max(len(past) // 8, 2)
    ranks = [rank for rank in RANKS if rank <= past.shape[1]] or [past.shape[1]]
    errors = [float(np.mean((past[cut:-1] @ fit(past[:cut], rank) - past[cut + 1 :]) ** 2)) for rank in ranks]
    return fit(past, ranks[int(np.argmin(errors))])
