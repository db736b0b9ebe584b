"""Types that the whole package shares: arrays, progress, predictors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
"""Float64 numbers. Algorithms that take their array namespace from the input also accept the arrays of an engine, from
another library with the same operations. Both are typed as NumPy's."""

Levels: TypeAlias = NDArray[np.float32]
"""Grey levels of frames, white at 1."""

Ints: TypeAlias = NDArray[np.int64]

Mask: TypeAlias = NDArray[np.bool_]
"""Truth values."""

AnyArray: TypeAlias = NDArray[Any]
"""Numbers, whole numbers or truth values."""

Result: TypeAlias = dict[str, AnyArray]
"""The result of a task: NumPy arrays of any kind, by name."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the stage's name, how much of it is done, and how much there is."""


def silent(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


class Predictor(Protocol):
    """A method that can be evaluated; its frames are patches (n_features,) or whole frames (height, width)."""

    def fit(self, X: ArrayLike, /) -> Self:
        """Learn from the past frames (time, ..)."""

    def update(self, x: ArrayLike, /) -> Self:
        """Receive the next frame."""

    def predict(self, horizon: int | None = None) -> NDArray[Any]:
        """The next frame, or the next frames (horizon, ..), each from the predictions before it."""
