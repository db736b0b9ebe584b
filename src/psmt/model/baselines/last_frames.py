"""Base classes of predictors that use the last few frames, and three simple ones: copy, mean and straight line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.persistence.schema import AttributeState, State
from psmt.types import Array
from psmt.utils.constraints import Declared, check_horizon, check_parameters, count, parameter
from psmt.utils.validation import check_frame, check_series


class LastFramesPredictor(AttributeState, BaseEstimator, ABC):
    """Autoregressive predictor: the next frame is a function of the last few frames and of learned attributes.

    A subclass defines how its input is checked, how many frames it uses, and how it predicts from them.
    """

    _parameter_constraints: ClassVar[Any] = Declared()
    learned: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that `fit` learns, numbers or arrays. They are part of the state."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.state_arrays = ("_last", *cls.learned)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from the past frames (time, ...)."""
        check_parameters(self, self._parameter_constraints)
        past = self.check_past(X)
        self.shape_ = past.shape[1:]
        self.learn(past)
        self._last = np.array(past[-self.n_last :])
        return self

    def update(self, x: ArrayLike) -> Self:
        """Learn from the next frame, and use it in the following predictions. Return the predictor."""
        check_is_fitted(self, "shape_")
        frame = self.check_next(x)
        self.observe(self._last, frame)
        self._last = np.concatenate([self._last[1:], frame[None]])
        return self

    def predict(self, horizon: int | None = None) -> NDArray[Any]:
        """Return the next frame, or the next `horizon` frames (horizon, ...), each from the predictions before it."""
        check_is_fitted(self, "shape_")
        last, frames = self._last, []
        for _ in range(1 if horizon is None else check_horizon(horizon)):
            frames.append(self.next_frame(last))
            last = np.concatenate([last[1:], frames[-1][None]])
        return frames[0] if horizon is None else np.stack(frames)

    def get_state(self) -> State:
        """Return copies of the last frames and of the learned attributes, by name."""
        check_is_fitted(self, "shape_")
        return super().get_state()

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Restore the state of a predictor with the same parameters."""
        check_parameters(self, self._parameter_constraints)
        if len(state["last"]) != self.n_last:
            raise ValueError(
                f"the state holds {len(state['last'])} frames, but {self!r} looks at {self.n_last}; "
                "give it the state of a predictor with the same parameters"
            )
        super().set_state(state)
        self.shape_ = self._last.shape[1:]
        return self

    @property
    @abstractmethod
    def n_last(self) -> int:
        """Return the number of last frames from which the next frame is predicted."""

    @abstractmethod
    def check_past(self, X: ArrayLike) -> NDArray[Any]:
        """Validate the past frames and return them (time, ...) as numbers. There must be at least `n_last` frames."""

    @abstractmethod
    def check_next(self, x: ArrayLike) -> NDArray[Any]:
        """Validate a frame and return it as numbers, with the shape `shape_`."""

    def learn(self, past: NDArray[Any]) -> None:
        """Learn from the validated past frames (time, ...)."""

    def observe(self, last: NDArray[Any], frame: NDArray[Any]) -> None:
        """Learn from a frame and the last few frames (n_last, ...) before it. By default nothing is learned."""

    @abstractmethod
    def next_frame(self, last: NDArray[Any]) -> NDArray[Any]:
        """Return the predicted frame after the last few frames (n_last, ...)."""


class SeriesBaseline(LastFramesPredictor):
    """Autoregressive predictor of a series (time, n_features)."""

    @property
    def n_features_in_(self) -> int:
        """Return the number of features of a frame."""
        return int(self.shape_[0])

    def check_past(self, X: ArrayLike) -> Array:
        """Validate the past frames and return them (time, n_features) as numbers."""
        return check_series(X, minimum=self.n_last)

    def check_next(self, x: ArrayLike) -> Array:
        """Validate a frame and return it (n_features,) as numbers."""
        return check_frame(x, self.n_features_in_)


class CopyLast(SeriesBaseline):
    """Predicts that the next frame equals the last one (persistence). A useful predictor must beat it."""

    n_last = 1

    def next_frame(self, last: Array) -> Array:
        """Return the last frame (n_features,)."""
        return np.array(last[-1])


@dataclass(kw_only=True, eq=False, repr=False)
class MeanFrame(SeriesBaseline):
    """Predicts the mean of the last `window` frames. For noise, no prediction is better."""

    window: int = parameter(1536, count())

    @property
    def n_last(self) -> int:
        """Return the number of last frames from which the next frame is predicted."""
        return self.window

    def next_frame(self, last: Array) -> Array:
        """Return the mean (n_features,) of the last frames."""
        return np.asarray(last.mean(axis=0))


class LinearTrend(SeriesBaseline):
    """Predicts that every feature continues the straight line through its last two values."""

    n_last = 2

    def next_frame(self, last: Array) -> Array:
        """Return the next frame (n_features,) on the straight line through the last two frames."""
        return np.asarray(2.0 * last[-1] - last[-2])
