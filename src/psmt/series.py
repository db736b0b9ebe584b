"""Several series in one array, and the standardisation of a series by its past.

Subjects or sessions are stacked in time, as in hmmlearn: `X` (time, n_features) with the `lengths` of the series. The
boundary between two series is called a seam. Models do not learn from the step across a seam.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from psmt.types import Array, Mask
from psmt.utils.constraints import count, each
from psmt.utils.validation import check_series

CONSTANT = 1e-10
"""A feature whose deviations are below this fraction of its size counts as constant."""


def join_series(series: Iterable[ArrayLike]) -> tuple[Array, list[int]]:
    """Return series (time, n_features) stacked in time, and a list of their lengths, as `PSMT.fit` takes them.

    >>> X, lengths = join_series([np.zeros((5, 2)), np.ones((3, 2))])
    >>> X.shape, lengths
    ((8, 2), [5, 3])
    """
    parts: list[Array] = []
    for i, one in enumerate(series):
        n_features = parts[0].shape[1] if parts else None
        values = check_series(one, name=f"series {i}")
        if n_features not in (None, values.shape[1]):
            raise ValueError(
                f"series {i} has {values.shape[1]} features, but those before it have {n_features}; "
                "give series of the same features, in the same order"
            )
        parts.append(values)
    if not parts:
        raise ValueError("there is no series; give at least one (time, features) array")
    return np.concatenate(parts), [len(part) for part in parts]


def check_lengths(lengths: Sequence[int] | None, n_frames: int) -> list[int]:
    """Return the lengths of the series. Raise an error unless they add up to `n_frames`. None means one series."""
    if lengths is None:
        return [n_frames]
    each(count(3))("lengths", lengths)
    if sum(lengths) != n_frames:
        raise ValueError(f"lengths add up to {sum(lengths)}, but X has {n_frames} frames; give those of each series")
    return list(map(int, lengths))


def first_frames(lengths: Sequence[int]) -> Mask:
    """Return a mask (sum of lengths,) of the frames that are the first of their series.

    >>> first_frames([2, 3]).tolist()
    [True, False, True, False, False]
    """
    begins = np.zeros(sum(lengths), dtype=bool)
    begins[np.cumsum([0, *lengths[:-1]])] = True
    return begins


@dataclass(frozen=True, eq=False)
class Scaling:
    """Mean and scale of each feature in the past of a series, for standardisation and its inverse.

    >>> scaling = Scaling.of(np.array([[9500.0, 1.0], [9570.0, 1.0]]))
    >>> scaling.standardise(np.array([9535.0, 1.0])), scaling.restore(np.zeros(2))
    (array([0., 0.]), array([9.535e+03, 1.000e+00]))
    """

    mean: Array
    """Mean of each feature (n_features,)."""
    scale: Array
    """Standard deviation of each feature (n_features,). A constant feature has the median of the others."""
    rest: Array | float = 0.0
    """Mean of the deviations from `mean` (n_features,), which is a rounding error. It is subtracted as well."""
    step: Array | float = 2.0**-32
    """Standardised values are rounded to multiples of this number, unless it is 0. Otherwise rounding errors of a unit
    or an offset would remain in the last digits, and discrete choices of a model would amplify them."""

    @classmethod
    def of(cls, past: Array) -> Self:
        """Return the mean and scale of the past frames (time, n_features)."""
        mean = np.where(np.ptp(past, axis=0) == 0, past[0], past.mean(axis=0))
        deviations = past - mean
        scale, size = deviations.std(axis=0), np.abs(past).max(axis=0)
        varies = scale > CONSTANT * size
        # In the units of the data, so that a constant feature that begins to move has the same effect in all units.
        usual = np.median(scale[varies]) if varies.any() else size.max() or 1.0
        return cls(mean, np.where(varies, scale, usual), deviations.mean(axis=0))

    @classmethod
    def none(cls, n_features: int) -> Self:
        """Return a scaling that leaves frames unchanged."""
        return cls(np.zeros(n_features), np.ones(n_features), step=0.0)

    def standardise(self, frames: Array) -> Array:
        """Return standardised frames (..., n_features)."""
        standard = (frames - self.mean - self.rest) / self.scale
        return np.round(standard / self.step) * self.step if self.step else standard

    def restore(self, frames: Array) -> Array:
        """Return the frames (..., n_features) in their original units."""
        return frames * self.scale + self.rest + self.mean
