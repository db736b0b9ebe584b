"""The last frame, plus a learned gain times a proposed change: the last change of the pixels, or their motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.engines import engine_for
from psmt.extrapolation import Gain
from psmt.model.baselines.last_frames import SeriesBaseline
from psmt.persistence.model_file import part
from psmt.persistence.schema import State
from psmt.types import Array
from psmt.utils.constraints import check_count

_MEMORY = 500  # frames after which what was learned has faded to 1/e. `fit` learns from the last three times as many.


class PixelGain(SeriesBaseline):
    """The last frame plus one learned gain times its last change: the rule 'gain' of PSMT, on pixels.

    The gain is learned as the common gain of `psmt.extrapolation.Gain`, and continues to learn.
    """

    n_last = 2

    def learn(self, past: Array) -> None:
        """Learn from the checked past."""
        recent = np.asarray(past[-3 * _MEMORY :])
        self._gain = Gain().fit(recent[:, :0], recent)

    def observe(self, last: Array, frame: Array) -> None:
        """Learn from `frame`, and from the two frames before it, `last`."""
        self._gain.observe(np.empty((3, 0)), np.vstack([last, frame]))

    def next_frame(self, last: Array) -> Array:
        """Predict the next frame from the last few frames, `last`."""
        return self._gain.advance(last[0], last[1])

    def get_state(self) -> State:
        """Return copies of the last frames, and of what was learned."""
        return super().get_state() | {f"gain_{name}": value for name, value in self._gain.get_state().items()}

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Continue as the predictor that returned this state."""
        super().set_state(state)
        self._gain = Gain()
        self._gain.set_state(part(state, "gain_"))
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PatchMotion(SeriesBaseline):
    """The last picture moves on as between the last two: optical flow (Lucas-Kanade) inside the patch, with gains.

    Every pixel has a gain, by least squares, shrunk towards the gain that all pixels have in common: what enters the
    patch at its edge is not known, so gains are smaller there. Gains continue to learn.

    Parameters
    ----------
    picture_shape : (int, int)
        Height and width of the pictures whose pixels are the features.
    """

    picture_shape: tuple[int, int]

    n_last = 2
    learned = ("sums_",)

    _SHRINKAGE = 30.0  # number of frames that the common gain counts for in the gain of a pixel

    def check_past(self, X: ArrayLike) -> Array:
        """Return the past frames, checked and converted to numbers."""
        past = super().check_past(X)
        height, width = (check_count("picture_shape", side, minimum=2) for side in self.picture_shape)
        if height * width != past.shape[1]:
            raise ValueError(
                f"picture_shape={self.picture_shape} has {height * width} pixels, but X has {past.shape[1]} features; "
                "give the height and width of the pictures"
            )
        return past

    def learn(self, past: Array) -> None:
        """Learn from the checked past."""
        self.sums_ = np.zeros((2, past.shape[1]))
        recent = np.asarray(past[-3 * _MEMORY :])
        for t in range(2, len(recent)):
            self.observe(recent[t - 2 : t], recent[t])

    def observe(self, last: Array, frame: Array) -> None:
        """Learn from `frame`, and from the two frames before it, `last`."""
        change = self._change(last)
        self.sums_ = np.exp(-1.0 / _MEMORY) * self.sums_ + [change * (frame - last[1]), change**2]

    def next_frame(self, last: Array) -> Array:
        """Predict the next frame from the last few frames, `last`."""
        return np.asarray(last[1] + self.gains() * self._change(last))

    def gains(self) -> Array:
        """Gain of each pixel (n_features,), from 0 to 1."""
        product, energy = self.sums_
        total = max(float(energy.sum()), np.finfo(float).tiny)
        common = float(product.sum()) / total
        prior = self._SHRINKAGE / _MEMORY * total / len(energy)
        return np.clip((product + prior * common) / (energy + prior), 0.0, 1.0)

    def _change(self, last: Array) -> Array:
        """Change (n_features,) to the next picture if it moves as between the last two (2, n_features)."""
        before, now = last.astype(np.float32).reshape(2, *self.picture_shape)
        kernels = engine_for("cpu").frames
        return (kernels.moved(now, kernels.flow(before, now)) - now).astype(np.float64).ravel()
