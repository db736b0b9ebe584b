"""Ridge autoregression, and functions for ridge regression that the baselines in `subspaces` use too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from psmt.model.baselines.last_frames import SeriesBaseline
from psmt.types import Array
from psmt.utils.constraints import allowing, count, parameter, real
from psmt.utils.disk_series import blocks

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Ridge penalties that 'auto' chooses from, relative to the mean eigenvalue of the inputs' Gram matrix."""

ORDERS = (1, 2, 3, 4)
"""Numbers of frames that 'auto' chooses from."""


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeAutoregression(SeriesBaseline):
    """Ridge autoregression: the change to the next frame is a linear function of the last `order` frames.

    Parameters that are 'auto' are chosen by the error on the last eighth of the past, after learning from the rest.
    Then the weights are learned from the whole past.

    Parameters
    ----------
    order : int or 'auto', default 2
        Number of last frames. 'auto' tries 1, 2, 3 and 4, and stops after two successive orders without improvement.
    penalty : float or 'auto', default 'auto'
        Ridge penalty, as a multiple of the mean eigenvalue of the inputs' Gram matrix. 'auto' tries six values.
    """

    order: int | str = parameter(2, allowing("auto", count()))
    penalty: float | str = parameter("auto", allowing("auto", real(open_bound=True)))

    learned = ("penalty_", "weights_")

    @property
    def n_last(self) -> int:
        """Return the number of last frames from which the next frame is predicted."""
        return max(ORDERS) if isinstance(self.order, str) else self.order

    @property
    def order_(self) -> int:
        """Return the order that was given or chosen."""
        return len(self.weights_) // self.n_features_in_

    def learn(self, past: Array) -> None:
        """Learn the weights from the past frames (time, n_features)."""
        if len(past) <= self.n_last:
            raise ValueError(f"X has {len(past)} frames; order={self.order} needs at least {self.n_last + 1}")
        orders = ORDERS if isinstance(self.order, str) else (self.order,)
        penalties = PENALTIES if isinstance(self.penalty, str) else (float(self.penalty),)
        choice, _ = choose_ridge(past, orders, penalties)
        self.penalty_ = choice[1]
        self.weights_ = ridge_weights(past, *choice)

    def next_frame(self, last: Array) -> Array:
        """Return the predicted frame (n_features,) after the last few frames (n_last, n_features)."""
        return np.asarray(last[-1] + last[-self.order_ :].ravel() @ self.weights_)


def choose_ridge(series: Array, orders: Sequence[int], penalties: Sequence[float]) -> tuple[tuple[int, float], float]:
    """Return the (order, penalty) with the least squared error on the last eighth of a series, and that error.

    The squared error of copying is subtracted from the returned error. Orders are tried from the first on, until two
    successive orders bring no improvement.
    """
    if len(orders) == len(penalties) == 1:
        return (orders[0], penalties[0]), 0.0
    longest = max(orders)
    n = len(series) - longest
    split = n - max(n // 8, 1)
    best, least = (orders[0], penalties[0]), np.inf
    for order in orders:
        # All orders predict the same frames.
        own = series[longest - order :]
        candidates = _solve(*_moments(own[: split + order], order), penalties)
        errors = np.zeros(len(penalties))
        for inputs, targets in _pairs(own[split:], order):
            errors += [np.sum((targets - inputs @ weights) ** 2) - np.sum(targets**2) for weights in candidates]
        if errors.min() < least:
            best, least = (order, penalties[int(np.argmin(errors))]), float(errors.min())
        elif order >= best[0] + 2:
            break
    return best, least


def ridge_weights(series: Array, order: int, penalty: float) -> Array:
    """Return ridge weights (order * n_features, n_features) from the last `order` frames to the next change."""
    (weights,) = _solve(*_moments(series, order), (penalty,))
    return weights


def _pairs(series: Array, order: int) -> Iterator[tuple[Array, Array]]:
    """Yield inputs (n, order * n_features) and targets (n, n_features): the last frames, and the change to the next."""
    held = np.empty((0, series.shape[1]))
    for block in blocks(series):
        rows = np.concatenate([held, block]) if len(held) else block
        n = len(rows) - order
        if n > 0:
            yield np.hstack([rows[i : i + n] for i in range(order)]), rows[order:] - rows[order - 1 : -1]
        held = rows[max(n, 0) :]


def _moments(series: Array, order: int) -> tuple[Array, Array]:
    """Return the Gram matrix (k, k) of the inputs and their products (k, n_features) with the targets of `_pairs`."""
    n = order * series.shape[1]
    gram, cross = np.zeros((n, n)), np.zeros((n, series.shape[1]))
    for inputs, targets in _pairs(series, order):
        gram += inputs.T @ inputs
        cross += inputs.T @ targets
    return gram, cross


def _solve(gram: Array, cross: Array, penalties: Sequence[float]) -> list[Array]:
    """Return the ridge weights (k, n_features) for each penalty, by one eigendecomposition of the Gram matrix."""
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = scipy.linalg.eigh(gram)
    turned = vectors.T @ cross
    # A penalty below the rounding of the eigenvalues might divide by zero.
    least: Any = np.finfo(float).eps
    return [vectors @ (turned / (np.maximum(values, 0) + max(p, least) * scale)[:, None]) for p in penalties]
