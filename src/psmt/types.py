"""Types used in the whole package: arrays, progress callbacks, predictors."""

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
"""Array of float64. Functions that take the array namespace from their input also accept engine arrays. These come from
another library, such as torch, and have this type too."""

Levels: TypeAlias = NDArray[np.float32]
"""Array of grey levels of frames in float32, where 1 is white."""

Ints: TypeAlias = NDArray[np.int64]

Mask: TypeAlias = NDArray[np.bool_]
"""Array of truth values."""

AnyArray: TypeAlias = NDArray[Any]
"""Array of numbers or truth values."""

Result: TypeAlias = dict[str, AnyArray]
"""The result of a task: NumPy arrays of any kind, by name."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Function that is called with the name of a stage, the amount of work done, and the total amount."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress callback that does nothing."""


class Predictor(Protocol):
    """Interface of predictors that can be evaluated. Frames are patches (n_features,) or pictures (height, width)."""

    def fit(self, X: ArrayLike, /) -> Self:
        """Learn from the past frames (time, ...)."""

    def update(self, x: ArrayLike, /) -> Self:
        """Receive the next frame, and return the predictor."""

    def predict(self, horizon: int | None = None) -> NDArray[Any]:
        """Return the next frame, or the next `horizon` frames (horizon, ...), each from the predictions before it."""
