"""Sizes that one absurd value cannot set: a peak without outliers, and a limit on how far a prediction moves."""

from __future__ import annotations

from psmt.numerics.namespace import array_namespace
from psmt.types import Array, Mask

_UPPER, _MIDDLE = 0.9, 0.5
"""Quantiles that outliers are told by: up to a tenth of the values may be absurd and move neither by much."""

_FENCE = 3.0
"""Values beyond the upper quantile by more than so many times its distance from the median are outliers. Of normal
values one in five million is, of exponential ones one in a thousand."""

_LATEST = 2
"""Values at the end that count in any case: the straight line of step 6 goes through these."""


def robust_peak(values: Array) -> Array:
    """Largest () of some sizes (n,) in order of time, outliers cut down to the fence; zero where there are none.

    Where there is no outlier it is the maximum, to the bit. The latest two count as they are.
    """
    xp = array_namespace(values)
    if not len(values):
        return xp.sum(values)
    ordered = values[xp.argsort(values)]
    upper, middle = _quantile(ordered, _UPPER), _quantile(ordered, _MIDDLE)
    fence, peak = upper + _FENCE * (upper - middle), ordered[-1]
    return xp.maximum(xp.where(peak > fence, fence, peak), xp.max(values[-_LATEST:]))


def _quantile(ordered: Array, share: float) -> Array:
    """Quantile () of values (n,) in ascending order, between two of them in proportion."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    quantile: Array = ordered[below] + (at - below) * (ordered[above] - ordered[below])
    return quantile


def drawn_back(wanted: Array, start: Array, length: Array, reach: Array | float) -> Array:
    """`wanted` (n,), or the point on the way to it from `start` (n,) where so much of the length () is left as `reach`.

    What lies within reach stays as it is, to the bit.
    """
    xp = array_namespace(wanted)
    too_far: Mask = length > reach
    share = xp.where(too_far, reach / xp.where(too_far, length, 1.0), 1.0)
    return xp.where(too_far, start + share * (wanted - start), wanted)
