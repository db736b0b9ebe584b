"""Ridge autoregression as strong as the field makes it: what PSMT's predictions of a series have to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from psmt.baselines import SeriesBaseline
from psmt.types import Array
from psmt.validation import Constraint, check_count, count

ORDERS = (1, 2, 3, 4)
"""Candidates for the number of rows that are looked at."""

PENALTIES = tuple(float(10.0**power) for power in np.arange(-3.0, 2.6, 0.5))
"""Candidates for the ridge penalty, relative to the mean square of the inputs."""

FOLDS = (4, 5, 6, 7)
"""Eighths of the past that are foretold, each from what lies before it, to choose among the candidates."""


class DirectRidge(SeriesBaseline):
    """Ridge autoregression with a regression of its own for each number of rows ahead.

    The row h ahead is a linear map of the last few. There is no intercept: rows are deviations from their mean. Order
    and penalty are those of least walk-forward error inside the past, for each h by itself.

    Parameters
    ----------
    horizon : int, default 5
        Rows ahead that can be asked for.
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
        for fold in FOLDS:
            first, stop = n_rows * fold // 8, n_rows * (fold + 1) // 8
            errors += [self._errors(past[:stop], first, order) for order in ORDERS]
        # Rows of orders that were not chosen stay zero, so that all maps have one shape.
        self.weights_ = np.zeros((self.horizon, self.n_last * n, n))
        self.orders_, self.penalties_ = np.zeros(self.horizon, dtype=np.int64), np.zeros(self.horizon)
        for h in range(self.horizon):
            i, j = np.unravel_index(np.argmin(errors[..., h]), errors.shape[:2])
            self.orders_[h], self.penalties_[h] = ORDERS[i], PENALTIES[j]
            inputs, times = _inputs(past, ORDERS[i])
            known = times + h + 1 < n_rows
            (weights,) = _solve(inputs[known], past[times[known] + h + 1], [PENALTIES[j]])
            self.weights_[h, : len(weights)] = weights

    def _errors(self, past: Array, first: int, order: int) -> Array:
        """Squared errors (n_penalties, horizon) on the rows from `first`, of maps learned from those before it."""
        inputs, times = _inputs(past, order)
        # One decomposition serves all horizons: pairs whose furthest row is known.
        known = times + self.horizon < first
        ahead = np.arange(1, self.horizon + 1)
        targets = np.hstack([past[times[known] + h] for h in ahead])
        errors = np.zeros((len(PENALTIES), self.horizon))
        for k, weights in enumerate(_solve(inputs[known], targets, PENALTIES)):
            for h, own in zip(ahead, np.split(weights, self.horizon, axis=1), strict=True):
                asked = (times >= first - 1) & (times + h < len(past))
                errors[k, h - 1] = np.sum((past[times[asked] + h] - inputs[asked] @ own) ** 2)
        return errors

    def predict(self, horizon: int | None = None) -> NDArray[Any]:
        """Return the next row, or with a `horizon` the next (horizon, n_features), each from the last rows alone."""
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


def _inputs(rows: Array, order: int) -> tuple[Array, NDArray[np.int64]]:
    """Inputs (n, order * n_features), the latest row first, and the time (n,) of the latest row of each."""
    n = len(rows) - order + 1
    return np.hstack([rows[order - 1 - k : order - 1 - k + n] for k in range(order)]), np.arange(order - 1, len(rows))


def _solve(inputs: Array, targets: Array, penalties: Sequence[float]) -> list[Array]:
    """Ridge weights (n_inputs, n_targets) for each penalty, by one eigendecomposition."""
    gram = inputs.T @ inputs
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = scipy.linalg.eigh(gram)
    turned = vectors.T @ (inputs.T @ targets)
    return [vectors @ (turned / (np.maximum(values, 0.0) + p * scale)[:, None]) for p in penalties]
