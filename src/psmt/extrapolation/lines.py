"""Straight lines: the paper's, standing still, and a learned share of the last step."""

from __future__ import annotations

import numpy as np

from psmt.extrapolation.contract import Extrapolation
from psmt.extrapolation.proof import faded_sums, field_of_sums, proven, widened
from psmt.persistence.schema import Field
from psmt.types import Array


class Linear(Extrapolation):
    """The paper's rule: the step repeats itself, ``2 b - b_before``."""

    name = "linear"

    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,), on the straight line through the last two."""
        return 2.0 * current - previous


class Hold(Extrapolation):
    """No extrapolation: the scene stays where it is, seen through the embedding."""

    name = "hold"

    def advance(self, _previous: Array, current: Array, /) -> Array:
        """The last point (n_components,)."""
        return current


class Gain(Extrapolation):
    """One gain per direction: the fraction of a step that the next step has been found to repeat.

    The gain is the lag-one autocorrelation of the steps, over an exponentially weighted past, so it lies in [-1, 1]:
    near 1 for directions that glide, 0 for those that wander, negative for those that flicker. It is soft-thresholded
    by its standard error, and counts only as far as it exceeds that: first the gain of the picture as a whole (by one
    standard error), towards which each direction is shrunk, then what a direction has of its own (by two). A film that
    gives no reason to move is copied.

    The embedding makes the window that it was fitted to look smooth (with H = 3 M its leading gains are near 0.7 there,
    and near 0 on the very next frames), so gains read off that window would over-shoot. The model therefore shows this
    strategy only steps that its embedding had not seen.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(400.0)
    >>> glide, flicker = np.sin(t / 20), (-1.0) ** t
    >>> sequence = np.column_stack([glide, flicker])
    >>> rule = Gain().fit(sequence, sequence)
    >>> [round(float(g), 1) for g in rule.gains(2)]
    [0.9, -0.9]
    """

    name = "gain"
    predicts_change = adaptive = True

    _MEMORY = 500.0
    """Observations after which old ones have faded to 1/e."""

    def __init__(self) -> None:
        # Faded sums: product of successive steps, their energy, and its square; of the picture, of each direction.
        self._common = np.zeros((3, 1))
        self._own = np.zeros((3, 0))

    def observe(self, points: Array, pictures: Array) -> None:
        """Add the two steps between three points (3, n_components) and their pictures (3, n_features) to the sums."""
        kept = np.exp(-1.0 / self._MEMORY)
        self._common = kept * self._common + faded_sums(*(part.sum(keepdims=True) for part in _steps(pictures)))
        fresh = faded_sums(*_steps(points))
        width = max(fresh.shape[1], self._own.shape[1])
        self._own = kept * widened(self._own, width) + widened(fresh, width)

    def gains(self, n_components: int) -> Array:
        """Gains (n_components,) as learned so far."""
        common = proven(self._common, 0.0, 1.0)
        return common + proven(widened(self._own, n_components)[:, :n_components], common, 2.0)

    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,): each direction repeats its gain's share of the last step."""
        return current + self.gains(len(current)) * (current - previous)

    @property
    def state(self) -> dict[str, Array]:
        """The weighted sums behind the gains."""
        return {"common": self._common, "own": self._own}

    @state.setter
    def state(self, state: dict[str, Array]) -> None:
        self._common, self._own = state["common"], state["own"]

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """What `state` holds."""
        return {"common": field_of_sums(1), "own": field_of_sums("n_gains")}


def _steps(triple: Array) -> tuple[Array, Array]:
    """Product of the two steps between three points (3, n), and their mean energy, each (n,)."""
    before, after = np.diff(triple, axis=0)
    return before * after, 0.5 * (before**2 + after**2)
