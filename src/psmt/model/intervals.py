"""Prediction intervals from past prediction errors, by adaptive conformal inference.

A quantile of the next frame is the prediction plus a quantile of the latest errors, for each feature and each step
ahead. The level of the error quantile adapts to each new frame (Gibbs and Candès, 2021): it rises if the frame lies
above the predicted quantile, and falls if it lies below. So intervals keep their coverage while the series changes,
whatever its distribution is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from psmt.persistence.schema import AttributeState, Field, Size
from psmt.types import Array

T = TypeVar("T")

KEPT = 100
"""Number of latest errors from which quantiles are computed. With more, quantiles vary less and adapt more slowly."""

CALIBRATED = 100
"""Largest number of frames at the end of the past that are predicted when the first interval is requested."""

FEWEST = 10
"""Smallest number of errors from which intervals are computed. Levels are adapted from twice as many on."""

RATE = 0.015
"""Step size of adaptive conformal inference. A frame below the predicted quantile changes its level by
``RATE * (quantile - 1)``, and any other frame by ``RATE * quantile``."""

_INWARD = 3.0  # a level adapts to at most this multiple of the nominal tail probability
_TAIL = 8.0
"""Slope of a quantile beyond the largest error: its increase per unit of level, as a multiple of the distance from the
median to the largest error."""


class Interval(NamedTuple, Generic[T]):
    """A prediction and the bounds of its interval: three arrays or three tables of the same shape."""

    predicted: T
    lower: T
    upper: T


class ForecastErrors(AttributeState):
    """The latest errors of predictions up to `n_ahead` steps ahead, and the adapted levels of their quantiles.

    Errors have the shape (n, n_ahead, n_features) and the units of standardised frames. The state also holds the
    predictions of frames that have not arrived yet. Arrays are replaced, never changed in place.
    """

    state_arrays = ("_errors", "_forecasts", "_quantiles", "_levels")

    def __init__(self, n_ahead: int, n_features: int) -> None:
        self._errors = self._forecasts = np.zeros((0, n_ahead, n_features))
        self._quantiles = np.zeros(0)
        self._levels = np.zeros((0, n_ahead, n_features))

    def __len__(self) -> int:
        return len(self._errors)

    @property
    def n_ahead(self) -> int:
        """Return the largest number of steps ahead for which errors are known. It is 0 before the first interval."""
        return int(self._errors.shape[1])

    def begin(self) -> None:
        """Start another series: drop the predictions of frames that have not arrived."""
        self._forecasts = self._forecasts[:0]

    def observe(self, forecast: Array, frame: Array) -> None:
        """Record the errors of all forecasts of a frame (n_features,). The latest is `forecast` (n_ahead, ...)."""
        n_ahead = self.n_ahead
        self._forecasts = np.concatenate([self._forecasts, forecast[None]])[-n_ahead:]
        if len(self._forecasts) < n_ahead:
            return
        steps = np.arange(n_ahead)
        error = frame - self._forecasts[::-1][steps, steps]
        if len(self._quantiles):
            self._adapt(error, np.sort(self._errors, axis=0))
        self._errors = np.concatenate([self._errors, error[None]])[-KEPT:]

    def bounds(self, quantiles: Iterable[float], n_ahead: int) -> Array:
        """Return quantiles of the errors as an array (n_quantiles, n_ahead, n_features), from lowest to highest.

        When a quantile is requested for the first time, its level is adapted by a replay of the known errors.
        """
        wanted = sorted(quantiles)
        if new := [one for one in wanted if one not in self._quantiles]:
            replayed = ForecastErrors(*self._errors.shape[1:])
            replayed._quantiles = np.array(new)
            replayed._levels = np.broadcast_to(replayed._quantiles[:, None, None], (len(new), *self._errors.shape[1:]))
            for n in range(2 * FEWEST, len(self)):
                replayed._adapt(self._errors[n], np.sort(self._errors[:n], axis=0))
            self._quantiles = np.concatenate([self._quantiles, new])
            self._levels = np.concatenate([self._levels, replayed._levels])
        chosen = [int(np.flatnonzero(self._quantiles == one)[0]) for one in wanted]
        ordered = np.sort(self._errors[:, :n_ahead], axis=0)
        return np.asarray(np.sort([_quantile(ordered, self._levels[i, :n_ahead]) for i in chosen], axis=0))

    def _adapt(self, error: Array, ordered: Array) -> None:
        levels = []
        for quantile, level in zip(self._quantiles, self._levels, strict=True):
            bound = _quantile(ordered, level)
            # An error that equals a bound is covered. Without limits, a series that stands still would move the levels
            # to the median, and the first motion would find intervals of no width.
            if quantile < 0.5:
                levels.append(np.minimum(level + RATE * (quantile - (error < bound)), _INWARD * quantile))
            else:
                moved = level + RATE * (quantile - (error <= bound))
                levels.append(np.maximum(moved, 1 - _INWARD * (1 - quantile)))
        self._levels = np.stack(levels)

    @classmethod
    def schema(cls, n_features: Size) -> dict[str, Field]:
        """Return the shapes and bounds that the saved arrays must have, by name."""
        each = ("n_ahead", n_features)
        return {
            "errors": Field(("n_errors", *each)),
            "forecasts": Field(("n_forecasts", *each), may_be_empty=True),
            "quantiles": Field(("n_quantiles",), low=0.0, high=1.0, may_be_empty=True),
            "levels": Field(("n_quantiles", *each), low=-1e6, high=1e6, may_be_empty=True),
        }


def _quantile(ordered: Array, level: Array) -> Array:
    """Return the quantiles (...) of sorted errors (n, ...) along the first axis, at levels (...).

    Beyond the smallest and the largest error, quantiles are extrapolated linearly. Levels may be below 0 or above 1.

    >>> _quantile(np.arange(99.0)[:, None], np.array([0.5])).tolist()
    [49.0]
    """
    n = len(ordered)
    place = level * (n + 1) - 1
    inside = np.clip(place, 0, n - 1)
    low = np.floor(inside).astype(np.int64)
    below, above = (np.take_along_axis(ordered, i[None], axis=0)[0] for i in (low, np.minimum(low + 1, n - 1)))
    middle = ordered[n // 2]
    bound = below + (inside - low) * (above - below)
    return np.asarray(bound + np.abs(place - inside) / (n + 1) * _TAIL * (bound - middle))
