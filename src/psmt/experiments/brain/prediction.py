"""Prediction of the next volumes of one person: PSMT and the linear models that it is compared with.

A linear model has weights (horizon, order * n_features, n_features). ``weights[h - 1]`` maps the last `order` rows of a
series, joined with the latest first, to the row `h` steps ahead.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg
from sklearn.linear_model import Lasso

from psmt.brain.layers import MAX_VOLUMES
from psmt.model import PSMT
from psmt.series import Scaling
from psmt.types import Array, Ints, Result

PREDICTORS = {
    "psmt": "PSMT",
    "ridge": "ridge autoregression",
    "lasso": "lasso autoregression",
    "reduced_rank": "reduced-rank autoregression",
    "dmd": "dynamic modes",
    "copy": "last volume copied",
    "mean": "mean of the past",
}
"""Predictors by key, with their names in reports, in the order of the rows that `predict_person` returns."""

SCORED = 0.25
"""Share of each series, at its end, that is predicted."""

ORDERS, PENALTIES = (1, 2, 3, 4), tuple(float(10.0**power) for power in np.arange(-3.0, 2.6, 0.5))
"""Orders (numbers of past rows) and penalties (relative to the inputs' mean square) that ridge regression tries."""

RANKS = (4, 8, 12, 16, 24, 32, 64)
"""Ranks that dynamic modes and reduced-rank regression try."""

L1_PENALTIES = (0.3, 0.15, 0.08, 0.05, 0.03, 0.02, 0.01)
"""Penalties that lasso regression tries. Inputs have variance one."""


def predict_person(*, series: Array, horizon: int, seed: int) -> Result:
    """Return ``errors`` (n_predictors, horizon) of all `PREDICTORS` on the last quarter of a series (time, n_regions).

    An error is the mean squared error divided by the variance of that quarter. Regions are standardised by the volumes
    before it, so that no large or drifting region dominates. Models learn from at most 12,000 of these volumes.
    """
    n_scored = int(SCORED * len(series))
    series = series[max(len(series) - n_scored - MAX_VOLUMES, 0) :]
    start = len(series) - n_scored
    scaling = Scaling.of(series[:start])
    rows = scaling.standardise(series)
    past, n = rows[:start], rows.shape[1]
    copied, ranks = np.tile(np.eye(n), (horizon, 1, 1)), [rank for rank in RANKS if rank < n] or [n]
    ridge = direct_ridge(past, horizon)[0]

    def reduced(rows: Array, horizon: int, ranks: Sequence[int]) -> list[Array]:
        return _cut_ranks(rows, ridge if rows is past else direct_ridge(rows, horizon)[0], ranks)

    rivals = {
        "ridge": ridge,
        "lasso": _fit_best(past, horizon, _lasso_maps, L1_PENALTIES),
        "reduced_rank": _fit_best(past, horizon, reduced, ranks),
        "dmd": _fit_best(past, horizon, dynamic_modes, ranks),
        "copy": copied,
        "mean": 0.0 * copied,
    }
    squared, counts = np.zeros(horizon), np.zeros(horizon)
    psmt = PSMT.for_series(random_state=seed).fit(series[:start])
    for t in range(start, len(rows)):
        truth = rows[t : t + horizon]
        squared[: len(truth)] += ((scaling.standardise(psmt.predict(len(truth))) - truth) ** 2).mean(axis=1)
        counts[: len(truth)] += 1
        psmt.update(series[t])
    errors = {"psmt": squared / np.maximum(counts, 1)}
    errors |= {name: linear_errors(rows, start, own) for name, own in rivals.items()}
    return {"errors": np.array([errors[name] for name in PREDICTORS]) / float(rows[start:].var(axis=0).mean())}


def linear_errors(rows: Array, start: int, weights: Array) -> Array:
    """Return the mean squared error (horizon,) of a linear model at each horizon, over the rows from `start` on."""
    order, errors = weights.shape[1] // rows.shape[1], np.zeros(len(weights))
    for h, own in enumerate(weights, 1):
        truth = rows[start + h - 1 :]
        wrong = _inputs(rows, order, start - 1, len(rows) - h) @ own - truth
        errors[h - 1] = np.mean(wrong**2) if len(truth) else 0.0
    return errors


def _fit_best(past: Array, horizon: int, fit: Callable[..., list[Array]], options: Sequence[float]) -> Array:
    """Return the weights of a linear model, with the best of the `options` (penalties or ranks) at each horizon.

    The best option has the lowest error on the last eighth of the past, with weights that are fitted to the rest.
    ``fit(rows, horizon, options)`` returns a list with the weights for each option.
    """
    cut = len(past) - max(len(past) // 8, 2)
    errors = np.array([linear_errors(past, cut, own) for own in fit(past[:cut], horizon, options)])
    best = errors.argmin(axis=0)
    used = sorted(set(best.tolist()))
    fitted = dict(zip(used, fit(past, horizon, [options[k] for k in used]), strict=True))
    return np.array([fitted[k][h] for h, k in enumerate(best)])


def _lasso_maps(rows: Array, horizon: int, penalties: Sequence[float]) -> list[Array]:
    """Fit lasso autoregressions of order 1. Return weights (horizon, n_features, n_features) for each penalty."""
    inputs, targets = _pairs(rows, 1, range(1, horizon + 1), len(rows) - horizon)
    gram, found = inputs.T @ inputs, []
    for penalty in penalties:
        model = Lasso(penalty, fit_intercept=False, precompute=gram, tol=1e-3, max_iter=200)
        with warnings.catch_warnings(action="ignore"):  # a rival that has nearly converged predicts as well
            model.fit(inputs, targets)
        found.append(np.array(np.split(np.reshape(model.coef_, (targets.shape[1], -1)).T, horizon, axis=1)))
    return found


def _cut_ranks(rows: Array, weights: Array, ranks: Sequence[int]) -> list[Array]:
    """Return the ridge `weights` reduced to each rank, by projection onto the principal axes of the predictions."""
    found = [weights.copy() for _ in ranks]
    for h, own in enumerate(weights):
        predicted = _inputs(rows, max(ORDERS), max(ORDERS) - 1, len(rows)) @ own
        _, directions = scipy.linalg.eigh(predicted.T @ predicted)
        for cut, rank in zip(found, ranks, strict=True):
            kept = directions[:, -rank:]
            cut[h] = own @ kept @ kept.T
    return found


def dynamic_modes(rows: Array, horizon: int, ranks: Sequence[int]) -> list[Array]:
    """Return weights (horizon, n_features, n_features) by dynamic mode decomposition (DMD), for each rank."""
    left, sizes, right = np.linalg.svd(rows[:-1], full_matrices=False)
    found = []
    for rank in ranks:
        kept = slice(min(rank, int(np.sum(sizes > 1e-9 * sizes[0]))))
        step = (right[kept].T / sizes[kept]) @ (left[:, kept].T @ rows[1:]) @ right[kept].T @ right[kept]
        found.append(np.array([np.linalg.matrix_power(step, h) for h in range(1, horizon + 1)]))
    return found


def direct_ridge(past: Array, horizon: int) -> tuple[Array, Ints]:
    """Fit ridge autoregressions to rows (time, n_features) with mean 0: a separate regression for each horizon.

    Order (at most 4) and penalty minimise the walk-forward error inside the past. Return the weights (horizon,
    4 * n_features, n_features), which are 0 for rows beyond the chosen order, and the orders (horizon,).
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
    """Fit ridge to the rows before `first`. Return the errors (n_penalties, horizon) on the rows from `first` on."""
    # All horizons share one decomposition, so only inputs whose furthest target is known are used.
    joint = _ridge_maps(past, order, range(1, horizon + 1), first - horizon, PENALTIES)
    weights = (np.array(np.split(own, horizon, axis=1)) for own in joint)
    return np.array([linear_errors(past, max(first, order), own) for own in weights])


def _inputs(rows: Array, order: int, first: int, stop: int) -> Array:
    """Return for each time from `first` to `stop - 1` the last `order` rows, latest first: (n, order * n_features)."""
    return np.hstack([rows[first - k : max(stop, first) - k] for k in range(order)])


def _pairs(rows: Array, order: int, ahead: Sequence[int], stop: int) -> tuple[Array, Array]:
    """Return `_inputs` before `stop`, and targets (n, n_ahead * n_features): the rows that come `ahead` steps later."""
    inputs = _inputs(rows, order, order - 1, stop)
    return inputs, np.hstack([rows[order - 1 + h : order - 1 + h + len(inputs)] for h in ahead])


def _ridge_maps(rows: Array, order: int, ahead: Sequence[int], stop: int, penalties: Sequence[float]) -> list[Array]:
    """Fit ridge to the `_pairs`. Return weights (order * n_features, n_ahead * n_features) for each penalty."""
    inputs, targets = _pairs(rows, order, ahead, stop)
    gram = inputs.T @ inputs
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = scipy.linalg.eigh(gram)
    turned = vectors.T @ (inputs.T @ targets)
    return [vectors @ (turned / (np.maximum(values, 0.0) + p * scale)[:, None]) for p in penalties]
