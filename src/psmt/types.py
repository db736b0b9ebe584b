"""Words that all of the package shares: arrays, devices, progress, and what a predictor is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
"""Float64 numbers. Inside an algorithm that takes its array namespace from its input, they are those of the engine at
hand: NumPy's, or another library's that has the same operations. Both are typed as NumPy's."""

Levels: TypeAlias = NDArray[np.float32]
"""Grey levels of frames, white at 1."""

Ints: TypeAlias = NDArray[np.int64]

Mask: TypeAlias = NDArray[np.bool_]
"""Truth values of an engine's arrays."""

AnyArray: TypeAlias = NDArray[Any]
"""Numbers, whole numbers or truth values: where an array is handed on and not looked into."""

Result: TypeAlias = dict[str, AnyArray]
"""What a task gives: NumPy arrays of any kind, by name."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the stage's name, how much of it is done, and how much there is."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


class Predictor(Protocol):
    """What an evaluation asks of a method, whether its frames are patches (n_features,) or whole (height, width)."""

    def fit(self, X: ArrayLike, /) -> Self:
        """Learn from the past frames (time, ..)."""

    def update(self, x: ArrayLike, /) -> Self:
        """Receive the frame that came next."""

    def predict(self, horizon: int | None = None) -> NDArray[Any]:
        """The next frame, or the next (horizon, ..) by its own predictions."""
