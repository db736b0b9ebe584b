"""Autoregressive predictors of finite order, the common part of those for series and for whole frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.persistence.state import AttributeState, State
from psmt.utils.validation import Constraint, check_count, check_parameters


class LastFramesPredictor(AttributeState, BaseEstimator, ABC):
    """Autoregressive predictor: the next frame is a function of the last few, and of what `fit` learned.

    A subclass defines how its input is checked, how many frames it uses, and which frame follows them.
    """

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {}
    learned: ClassVar[tuple[str, ...]] = ()
    """Attributes that `fit` learns, numbers or arrays; they are part of the state."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.state_arrays = ("_last", *cls.learned)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from the past frames (time, ..)."""
        check_parameters(self, self._parameter_constraints)
        past = self.check_past(X)
        self.shape_ = past.shape[1:]
        self.learn(past)
        self._last = np.array(past[-self.n_last :])
        return self

    def update(self, x: ArrayLike) -> Self:
        """Receive the next frame."""
        check_is_fitted(self, "shape_")
        self._last = np.concatenate([self._last[1:], self.check_next(x)[None]])
        return self

    def predict(self, horizon: int | None = None) -> NDArray[Any]:
        """Return the next frame, or with a `horizon` the next (horizon, ..), each from the predictions before it."""
        check_is_fitted(self, "shape_")
        last, frames = self._last, []
        for _ in range(1 if horizon is None else check_count("horizon", horizon)):
            frames.append(self.next_frame(last))
            last = np.concatenate([last[1:], frames[-1][None]])
        return frames[0] if horizon is None else np.stack(frames)

    def get_state(self) -> State:
        """Return copies of the last frames, and of what `fit` learned."""
        check_is_fitted(self, "shape_")
        return super().get_state()

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Continue as the predictor with the same parameters that returned this state."""
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
        """Number of last frames that are used."""

    @abstractmethod
    def check_past(self, X: ArrayLike) -> NDArray[Any]:
        """Return the past frames (time, ..), at least `n_last`, checked and converted to numbers."""

    @abstractmethod
    def check_next(self, x: ArrayLike) -> NDArray[Any]:
        """Return a frame of shape `shape_`, checked and converted to numbers."""

    def learn(self, past: NDArray[Any]) -> None:
        """Learn from the checked past frames (time, ..)."""

    @abstractmethod
    def next_frame(self, last: NDArray[Any]) -> NDArray[Any]:
        """Return the frame after the last few (order, ..)."""
