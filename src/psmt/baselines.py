"""What PSMT is compared with, behind the same interface: `fit`, `update`, `predict`.

The first three work on frames alone, so any series serves. The others share PSMT's layers and take its parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.model import PSMT
from psmt.validation import check_count, check_frame, check_real, check_series

Array = NDArray[np.float64]


class Predictor(Protocol):
    """What the evaluator asks of a method."""

    def fit(self, X: ArrayLike) -> Self:
        """Learn from the past frames (time, n_features)."""

    def update(self, x: ArrayLike) -> Self:
        """Receive the frame (n_features,) that came next."""

    def predict(self, horizon: int | None = None) -> Array:
        """The next frame (n_features,), or the next (horizon, n_features)."""


class _FramePredictor(BaseEstimator, ABC):
    """A method whose next frame depends on the last few frames only."""

    _needed: int

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        past = check_series(X, minimum=self._memory())
        self.n_features_in_ = past.shape[1]
        self._learn(past)
        self._last = past[-self._memory() :].copy()
        return self

    def update(self, x: ArrayLike) -> Self:
        check_is_fitted(self, "n_features_in_")
        self._last = np.vstack([self._last[1:], check_frame(x, self.n_features_in_)])
        return self

    def predict(self, horizon: int | None = None) -> Array:
        check_is_fitted(self, "n_features_in_")
        last, frames = self._last, []
        for _ in range(1 if horizon is None else check_count("horizon", horizon)):
            frames.append(self._next(last))
            last = np.vstack([last[1:], frames[-1]])
        return frames[0] if horizon is None else np.array(frames)

    def _memory(self) -> int:
        return self._needed

    def _learn(self, X: Array) -> None:
        pass

    @abstractmethod
    def _next(self, last: Array) -> Array:
        """The frame (n_features,) after the last few (memory, n_features)."""


class CopyFrame(_FramePredictor):
    """The next frame is the last one: what every predictor has to beat."""

    _needed = 1

    def _next(self, last: Array) -> Array:
        return last[-1].copy()


class LinearFrames(_FramePredictor):
    """Every pixel goes on along the straight line through its last two values."""

    _needed = 2

    def _next(self, last: Array) -> Array:
        return 2.0 * last[-1] - last[-2]


class RidgeFrames(_FramePredictor):
    """Ridge autoregression: the change to the next frame is a linear map of the last `order` frames.

    Parameters
    ----------
    order : int, default 2
    penalty : float or 'auto', default 'auto'
        Ridge penalty, relative to the mean eigenvalue of the inputs' second moment. 'auto' takes the best of six on
        the last eighth of the past, learning from what lies before it, then learns from all of it.
    """

    _PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)

    def __init__(self, *, order: int = 2, penalty: float | str = "auto") -> None:
        self.order = order
        self.penalty = penalty

    def _memory(self) -> int:
        return check_count("order", self.order)

    def _learn(self, X: Array) -> None:
        inputs, targets = self._pairs(X)
        if len(inputs) == 0:
            raise ValueError(f"X has {len(X)} frames; order={self.order} needs at least {self.order + 1}")
        if self.penalty == "auto":
            split = len(inputs) - max(len(inputs) // 8, 1)
            errors = [
                np.mean((targets[split:] - inputs[split:] @ weights) ** 2)
                for weights in self._solve(inputs[:split], targets[:split], self._PENALTIES)
            ]
            self.penalty_ = self._PENALTIES[int(np.argmin(errors))]
        else:
            self.penalty_ = check_real("penalty", self.penalty, open_bound=True)
        (self.weights_,) = self._solve(inputs, targets, (self.penalty_,))

    def _pairs(self, X: Array) -> tuple[Array, Array]:
        n = len(X) - self.order
        inputs = np.hstack([X[i : i + n] for i in range(self.order)])
        return inputs, X[self.order :] - X[self.order - 1 : -1]

    @staticmethod
    def _solve(inputs: Array, targets: Array, penalties: tuple[float, ...]) -> list[Array]:
        gram = inputs.T @ inputs
        scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
        values, vectors = scipy.linalg.eigh(gram)
        turned = vectors.T @ (inputs.T @ targets)
        return [vectors @ (turned / (np.maximum(values, 0) + p * scale)[:, None]) for p in penalties]

    def _next(self, last: Array) -> Array:
        return last[-1] + last.ravel() @ self.weights_


class CopyCode(PSMT):
    """The next code is the last one: copying, seen through layer 1."""

    uses_embedding = False

    def predict_codes(self, horizon: int) -> Array:
        """The last code (horizon, n_atoms), as often as asked."""
        return self.moments_.latest(1)[[0] * horizon]


class Baseline2(PSMT):
    """Baseline 2 of the paper: the embedding of the training window, codes that go on."""

    static_embedding = True


class Baseline1(PSMT):
    """Baseline 1 of the paper: embedding and codes of the training window, so one prediction for all times."""

    static_window = True
