"""Baselines with the interface of PSMT: `fit`, `update`, `predict`.

The first four work on the frames of any series. The others share PSMT's layers and take its parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.model import PSMT
from psmt.persistence.state import AttributeState, State
from psmt.types import Array
from psmt.utils.constraints import Constraint, allowing, check_count, check_parameters, count, real
from psmt.utils.disk_series import blocks
from psmt.utils.validation import check_frame, check_series


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


class SeriesBaseline(LastFramesPredictor):
    """Autoregressive predictor of a series (time, n_features)."""

    @property
    def n_features_in_(self) -> int:
        """Features of a frame."""
        return int(self.shape_[0])

    def check_past(self, X: ArrayLike) -> Array:
        """Return the past frames, checked and converted to numbers."""
        return check_series(X, minimum=self.n_last)

    def check_next(self, x: ArrayLike) -> Array:
        """Return a frame, checked and converted to numbers."""
        return check_frame(x, self.n_features_in_)


class CopyLast(SeriesBaseline):
    """Persistence: the next frame is the last one. Every predictor has to beat it."""

    n_last = 1

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.array(last[-1])


class MeanFrame(SeriesBaseline):
    """The next frame is the mean of the last `window`: the best prediction of noise."""

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {"window": count()}

    def __init__(self, *, window: int = 1536) -> None:
        self.window = window

    @property
    def n_last(self) -> int:
        """Number of last frames that are used."""
        return self.window

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.asarray(last.mean(axis=0))


class LinearTrend(SeriesBaseline):
    """Linear extrapolation: every feature continues the straight line through its last two values."""

    n_last = 2

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.asarray(2.0 * last[-1] - last[-2])


class RidgeAutoregression(SeriesBaseline):
    """Ridge autoregression: the change to the next frame is a linear map of the last `order` frames.

    Parameters
    ----------
    order : int, default 2
    penalty : float or 'auto', default 'auto'
        Ridge penalty, relative to the mean eigenvalue of the inputs' second moment. 'auto' takes the best of six on
        the last eighth of the past, learned from the rest, and then learns from all of it.
    """

    _PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "order": count(),
        "penalty": allowing("auto", real(open_bound=True)),
    }
    learned = ("penalty_", "weights_")

    def __init__(self, *, order: int = 2, penalty: float | str = "auto") -> None:
        self.order = order
        self.penalty = penalty

    @property
    def n_last(self) -> int:
        """Number of last frames that are used."""
        return self.order

    def learn(self, past: Array) -> None:
        """Learn from the checked past."""
        n = len(past) - self.order
        if n < 1:
            raise ValueError(f"X has {len(past)} frames; order={self.order} needs at least {self.order + 1}")
        if self.penalty == "auto":
            split = n - max(n // 8, 1)
            candidates = self._solve(past[: split + self.order], self._PENALTIES)
            errors = np.zeros(len(candidates))
            for inputs, targets in self._pairs(past[split:]):
                errors += [np.sum((targets - inputs @ weights) ** 2) for weights in candidates]
            self.penalty_ = self._PENALTIES[int(np.argmin(errors))]
        else:
            self.penalty_ = float(self.penalty)
        (self.weights_,) = self._solve(past, (self.penalty_,))

    def _pairs(self, past: Array) -> Iterator[tuple[Array, Array]]:
        """Yield inputs (n, order * n_features) and the changes (n, n_features) that followed them, block by block."""
        held = np.empty((0, past.shape[1]))
        for block in blocks(past):
            rows = np.concatenate([held, block]) if len(held) else block
            n = len(rows) - self.order
            if n > 0:
                inputs = np.hstack([rows[i : i + n] for i in range(self.order)])
                yield inputs, rows[self.order :] - rows[self.order - 1 : -1]
            held = rows[max(n, 0) :]

    def _solve(self, past: Array, penalties: tuple[float, ...]) -> list[Array]:
        """Ridge weights (order * n_features, n_features) for each penalty, by one eigendecomposition."""
        gram: Any = 0.0
        cross: Any = 0.0
        for inputs, targets in self._pairs(past):
            gram, cross = gram + inputs.T @ inputs, cross + inputs.T @ targets
        if np.ndim(gram) == 0:  # nothing to learn from
            return [np.zeros((self.order * past.shape[1], past.shape[1]))] * len(penalties)
        scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
        values, vectors = scipy.linalg.eigh(gram)
        turned = vectors.T @ cross
        # A penalty below the rounding of the eigenvalues might divide by zero.
        least = np.finfo(float).eps
        return [vectors @ (turned / (np.maximum(values, 0) + max(p, least) * scale)[:, None]) for p in penalties]

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.asarray(last[-1] + last.ravel() @ self.weights_)


class CopyCode(PSMT):
    """The next code is the last one: copying in layer 1."""

    uses_embedding = False

    def predict_codes(self, horizon: int) -> Array:
        """The last code, repeated (horizon, n_atoms)."""
        return self.moments_.latest(1)[[0] * horizon]


class MeanCode(PSMT):
    """The next code is the mean of the window's: predicting the mean in layer 1."""

    uses_embedding = False

    def predict_codes(self, horizon: int) -> Array:
        """The mean code, repeated (horizon, n_atoms)."""
        return (self.moments_.total / len(self.moments_))[None][[0] * horizon]


class Baseline2(PSMT):
    """Baseline 2 of the paper: the embedding stays that of the training window, codes are updated."""

    static_embedding = True


class Baseline1(PSMT):
    """Baseline 1 of the paper: embedding and codes stay those of the training window: one prediction for all times."""

    static_window = True

    def predict_codes(self, horizon: int) -> Array:
        """The one code that it predicts, repeated (horizon, n_atoms): its codes stay."""
        return super().predict_codes(1)[[0] * horizon]
