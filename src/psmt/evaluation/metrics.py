"""Errors of predicted patches."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FLOOR = 1e-12
"""Errors below this, such as those of copying a repeated frame, count as this much in a logarithm."""


def mse(predicted: ArrayLike, truth: ArrayLike) -> NDArray[np.float64]:
    """Mean squared error of each row: (n, features), (n, features) -> (n,)."""
    return np.mean((np.asarray(predicted) - np.asarray(truth)) ** 2, axis=-1)


def log_mse(errors: ArrayLike) -> NDArray[np.float64]:
    """Natural logarithm of errors, with zero errors at the floor.

    >>> [round(float(value), 2) for value in log_mse([1.0, 0.1, 0.0])]
    [0.0, -2.3, -27.63]
    """
    return np.log(np.maximum(errors, FLOOR))
