"""Numbers that may be missing."""

from __future__ import annotations

import numpy as np


def plain(value: float) -> float | None:
    """For JSON, which has no NaN."""
    return float(value) if np.isfinite(value) else None
