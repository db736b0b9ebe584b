"""Means and numbers that may be missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def nan_mean(values: NDArray[Any]) -> float:
    """Of the finite values; NaN where there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def plain(value: float) -> float | None:
    """For JSON, which has no NaN."""
    return float(value) if np.isfinite(value) else None
