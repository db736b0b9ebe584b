"""Autoregressive predictors of finite order: fit, update, predict and state, once for series and for whole frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.utils.validation import Constraint, check_count, check_parameters


class LastFramesPredictor(BaseEstimator, ABC):
    """Autoregressive predictor: the next frame is a function of the last few, and of what `fit` learned.

    A subclass says how its input is checked, how many frames it looks at, and which frame follows them.
    """

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {}
    learned: ClassVar[tuple[str, ...]] = ()
    """Names of what `fit` learns, numbers or arrays; they are part of the state."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from the past frames (time, ..)."""
        check_parameters(self, self._parameter_constraints)
        past = self.check_past(X)
        self.shape_ = past.shape[1:]
        self.learn(past)
        self._last = np.array(past[-self.n_last :])
        return self

    def update(self, x: ArrayLike) -> Self:
        """Receive the frame that came next."""
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

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of all that goes on from frame to frame: the last frames, and what `fit` learned."""
        check_is_fitted(self, "shape_")
        return {"last": self._last.copy(), **{name: np.array(getattr(self, name)) for name in self.learned}}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Go on as the predictor with the same parameters that gave this state."""
        check_parameters(self, self._parameter_constraints)
        last = np.array(state["last"])
        if len(last) != self.n_last:
            raise ValueError(
                f"the state holds {len(last)} frames, but {self!r} looks at {self.n_last}; "
                "give it the state of a predictor with the same parameters"
            )
        for name in self.learned:
            value = np.array(state[name])
            setattr(self, name, value if value.ndim else value.item())
        self.shape_, self._last = last.shape[1:], last
        return self

    @property
    @abstractmethod
    def n_last(self) -> int:
        """How many of the last frames are looked at."""

    @abstractmethod
    def check_past(self, X: ArrayLike) -> NDArray[Any]:
        """Return the past frames (time, ..), at least `n_last`, as numbers that can be computed with."""

    @abstractmethod
    def check_next(self, x: ArrayLike) -> NDArray[Any]:
        """Return a frame of shape `shape_`, as numbers that can be computed with."""

    def learn(self, past: NDArray[Any]) -> None:
        """Learn from the checked past frames (time, ..)."""

    @abstractmethod
    def next_frame(self, last: NDArray[Any]) -> NDArray[Any]:
        """Return the frame after the last few (order, ..)."""
