"""What a method for whole frames is asked for, and what those have in common that look at the last few frames only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.errors import NotEnoughFramesError
from psmt.validation import check_count, check_levels

Array = NDArray[np.float32]


class FramePredictor(Protocol):
    """What the comparison asks of a method."""

    def fit(self, frames: ArrayLike) -> Self:
        """Learn from the past frames (time, height, width)."""

    def update(self, frame: ArrayLike) -> Self:
        """Receive the frame (height, width) that came next."""

    def predict(self, horizon: int | None = None) -> NDArray[np.floating]:
        """The next frame (height, width), or the next (horizon, height, width) by its own predictions."""


class Peer(BaseEstimator, ABC):
    """A method whose next frame depends on the last few frames only."""

    _memory: int

    def fit(self, frames: ArrayLike, y: object = None) -> Self:
        past = check_levels(frames, name="frames", n_axes=3)
        if len(past) < self._memory:
            raise NotEnoughFramesError(f"frames has {len(past)} frames; at least {self._memory} are needed")
        self.shape_ = past.shape[1:]
        self._learn(past)
        self._last = past[-self._memory :].copy()
        return self

    def update(self, frame: ArrayLike) -> Self:
        check_is_fitted(self, "shape_")
        received = check_levels(frame, name="frame", n_axes=2)
        if received.shape != self.shape_:
            raise ValueError(f"frame has shape {received.shape}; the model was fitted with frames of {self.shape_}")
        self._last = np.concatenate([self._last[1:], received[None]])
        return self

    def predict(self, horizon: int | None = None) -> Array:
        check_is_fitted(self, "shape_")
        last, frames = self._last, []
        for _ in range(1 if horizon is None else check_count("horizon", horizon)):
            frames.append(self._next(last))
            last = np.concatenate([last[1:], frames[-1][None]])
        return frames[0] if horizon is None else np.stack(frames)

    def _learn(self, past: Array) -> None:
        pass

    @abstractmethod
    def _next(self, last: Array) -> Array:
        """The frame (height, width) after the last few (memory, height, width)."""
