"""Ridge autoregression as strong as the field makes it: what PSMT's predictions of a series have to beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from psmt.model.baselines import SeriesBaseline
from psmt.types import Array
from psmt.utils.validation import Constraint, check_count, count

ORDERS = (1, 2, 3, 4)
"""Candidates for the number of rows that are looked at."""

PENALTIES = tuple(float(10.0**power) for power in np.arange(-3.0, 2.6, 0.5))
"""Candidates for the ridge penalty, relative to the mean square of the inputs."""

FOLDS = (4, 5, 6, 7)
"""Eighths of the past that are foretold, each from what lies before it, to choose among the candidates."""

_BLOCK = 1 << 14
"""Rows that are held at a time."""


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
            sums = _sums(past, ORDERS[i], [h + 1], n_rows - h - 1)
            (weights,) = _solve(*sums, [PENALTIES[j]])
            self.weights_[h, : len(weights)] = weights

    def _errors(self, past: Array, first: int, order: int) -> Array:
        """Squared errors (n_penalties, horizon) on the rows from `first`, of maps learned from those before it."""
        # One decomposition serves all horizons: pairs whose furthest row is known.
        ahead = range(1, self.horizon + 1)
        solved = _solve(*_sums(past, order, ahead, first - self.horizon), PENALTIES)
        errors = np.zeros((len(PENALTIES), self.horizon))
        for k, weights in enumerate(solved):
            for h, own in zip(ahead, np.split(weights, self.horizon, axis=1), strict=True):
                for start, inputs in _inputs(past, order, max(first, order) - 1, len(past) - h):
                    truth = past[start + h : start + h + len(inputs)]
                    errors[k, h - 1] += np.sum((truth - inputs @ own) ** 2)
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


def _inputs(rows: Array, order: int, first: int, stop: int) -> Iterator[tuple[int, Array]]:
    """Yield inputs (n, order * n_features), the latest row first, whose latest rows are `first` to `stop`, in parts.

    Each comes with the time of its first. All together would take as many times the memory of the rows as the order is.
    """
    for start in range(first, stop, _BLOCK):
        n = min(_BLOCK, stop - start)
        yield start, np.hstack([rows[start - k : start - k + n] for k in range(order)])


def _sums(rows: Array, order: int, ahead: Sequence[int], stop: int) -> tuple[Array, Array]:
    """Products of the inputs of all times before `stop` with each other, and with the rows `ahead` of them."""
    n = rows.shape[1]
    gram, products = np.zeros((order * n, order * n)), np.zeros((order * n, len(ahead) * n))
    for start, inputs in _inputs(rows, order, order - 1, stop):
        gram += inputs.T @ inputs
        products += inputs.T @ np.hstack([rows[start + h : start + h + len(inputs)] for h in ahead])
    return gram, products


def _solve(gram: Array, products: Array, penalties: Sequence[float]) -> list[Array]:
    """Ridge weights (n_inputs, n_targets) for each penalty, by one eigendecomposition."""
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = scipy.linalg.eigh(gram)
    turned = vectors.T @ products
    return [vectors @ (turned / (np.maximum(values, 0.0) + p * scale)[:, None]) for p in penalties]
