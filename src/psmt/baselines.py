"""What PSMT is compared with, behind the same interface: `fit`, `update`, `predict`.

The first four work on frames alone, so any series serves. The others share PSMT's layers and take its parameters.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from psmt.last_frames import LastFramesPredictor
from psmt.model import PSMT
from psmt.types import Array
from psmt.validation import Constraint, allowing, check_frame, check_series, count, real


class SeriesBaseline(LastFramesPredictor):
    """Autoregressive predictor of a series (time, n_features)."""

    @property
    def n_features_in_(self) -> int:
        """Features of each frame that it was fitted with."""
        return int(self.shape_[0])

    def check_past(self, X: ArrayLike) -> Array:
        """Return the past frames, as numbers that can be computed with."""
        return check_series(X, minimum=self.n_last)

    def check_next(self, x: ArrayLike) -> Array:
        """Return a frame, as numbers that can be computed with."""
        return check_frame(x, self.n_features_in_)


class CopyLast(SeriesBaseline):
    """Persistence: the next frame is the last one, which every predictor has to beat."""

    n_last = 1

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.array(last[-1])


class MeanFrame(SeriesBaseline):
    """The next frame is the mean of the last `window`: best where the past says nothing of what comes, as in noise."""

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {"window": count()}

    def __init__(self, *, window: int = 1536) -> None:
        self.window = window

    @property
    def n_last(self) -> int:
        """How many of the last frames are looked at."""
        return self.window

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.asarray(last.mean(axis=0))


class LinearTrend(SeriesBaseline):
    """Linear extrapolation: every feature goes on along the straight line through its last two values."""

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
        the last eighth of the past, learning from what lies before it, then learns from all of it.
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
        """How many of the last frames are looked at."""
        return self.order

    def learn(self, past: Array) -> None:
        """Learn from the checked past."""
        inputs, targets = self._pairs(past)
        if len(inputs) == 0:
            raise ValueError(f"X has {len(past)} frames; order={self.order} needs at least {self.order + 1}")
        if self.penalty == "auto":
            split = len(inputs) - max(len(inputs) // 8, 1)
            errors = [
                np.mean((targets[split:] - inputs[split:] @ weights) ** 2)
                for weights in self._solve(inputs[:split], targets[:split], self._PENALTIES)
            ]
            self.penalty_ = self._PENALTIES[int(np.argmin(errors))]
        else:
            self.penalty_ = float(self.penalty)
        (self.weights_,) = self._solve(inputs, targets, (self.penalty_,))

    def _pairs(self, past: Array) -> tuple[Array, Array]:
        """Return inputs (n, order * n_features) and the changes (n, n_features) that followed them."""
        n = len(past) - self.order
        inputs = np.hstack([past[i : i + n] for i in range(self.order)])
        return inputs, past[self.order :] - past[self.order - 1 : -1]

    @staticmethod
    def _solve(inputs: Array, targets: Array, penalties: tuple[float, ...]) -> list[Array]:
        """Ridge weights (order * n_features, n_features) for each penalty, by one eigendecomposition."""
        gram = inputs.T @ inputs
        scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
        values, vectors = scipy.linalg.eigh(gram)
        turned = vectors.T @ (inputs.T @ targets)
        return [vectors @ (turned / (np.maximum(values, 0) + p * scale)[:, None]) for p in penalties]

    def next_frame(self, last: Array) -> Array:
        """Return the frame after the last few."""
        return np.asarray(last[-1] + last.ravel() @ self.weights_)


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
