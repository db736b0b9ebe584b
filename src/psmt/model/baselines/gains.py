"""Baselines that predict the last frame plus a learned gain times a change.

The change is that of the last step (`PixelGain`), or the change that continued motion would cause (`PatchMotion`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.engines import engine_for
from psmt.extrapolation import Gain
from psmt.model.baselines.last_frames import SeriesBaseline
from psmt.types import Array
from psmt.utils.constraints import check_count

_MEMORY = 500  # frames after which the weight of a frame has fallen to 1/e. `fit` learns from three times as many.


class PixelGain(SeriesBaseline):
    """Predicts the last frame plus a learned gain times the last change. This is PSMT's rule 'gain', for pixels."""

    n_last = 2
    state_parts: ClassVar = {"_gain": "gain_"}

    def learn(self, past: Array) -> None:
        """Learn the gain from the past frames (time, n_features)."""
        recent = np.asarray(past[-3 * _MEMORY :])
        self._gain = Gain().fit(recent[:, :0], recent)

    def observe(self, last: Array, frame: Array) -> None:
        """Learn from a frame (n_features,) and the two frames `last` (2, n_features) before it."""
        self._gain.observe(np.empty((3, 0)), np.vstack([last, frame]))

    def next_frame(self, last: Array) -> Array:
        """Return the predicted frame (n_features,) after the last two frames (2, n_features)."""
        return self._gain.advance(last[0], last[1])

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Restore the state of a predictor with the same parameters."""
        self._gain = Gain()
        return super().set_state(state)


@dataclass(kw_only=True, eq=False, repr=False)
class PatchMotion(SeriesBaseline):
    """Predicts that the motion between the last two pictures (optical flow, Lucas-Kanade) continues.

    The change of each pixel that this motion causes is multiplied by a gain. Gains are learned by least squares, shrunk
    towards a common gain, and learned further by `update`. They are smaller at the edges, because the flow does not
    know what enters the patch there.

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
        """Validate the past frames and return them (time, n_features). Their size must fit `picture_shape`."""
        past = super().check_past(X)
        height, width = (check_count("picture_shape", side, minimum=2) for side in self.picture_shape)
        if height * width != past.shape[1]:
            raise ValueError(
                f"picture_shape={self.picture_shape} has {height * width} pixels, but X has {past.shape[1]} features; "
                "give the height and width of the pictures"
            )
        return past

    def learn(self, past: Array) -> None:
        """Learn the gains from the latest past frames (time, n_features)."""
        self.sums_ = np.zeros((2, past.shape[1]))
        recent = np.asarray(past[-3 * _MEMORY :])
        for t in range(2, len(recent)):
            self.observe(recent[t - 2 : t], recent[t])

    def observe(self, last: Array, frame: Array) -> None:
        """Learn from a frame (n_features,) and the two frames `last` (2, n_features) before it."""
        change = self._change(last)
        self.sums_ = np.exp(-1.0 / _MEMORY) * self.sums_ + [change * (frame - last[1]), change**2]

    def next_frame(self, last: Array) -> Array:
        """Return the predicted frame (n_features,) after the last two frames (2, n_features)."""
        return np.asarray(last[1] + self.gains() * self._change(last))

    def gains(self) -> Array:
        """Return the gain of each pixel, between 0 and 1, as an array (n_features,)."""
        product, energy = self.sums_
        total = max(float(energy.sum()), np.finfo(float).tiny)
        common = float(product.sum()) / total
        prior = self._SHRINKAGE / _MEMORY * total / len(energy)
        return np.clip((product + prior * common) / (energy + prior), 0.0, 1.0)

    def _change(self, last: Array) -> Array:
        """Return the change of each pixel (n_features,) if the motion between the last two pictures continues."""
        before, now = last.astype(np.float32).reshape(2, *self.picture_shape)
        kernels = engine_for("cpu").frames
        return (kernels.moved(now, kernels.flow(before, now)) - now).astype(np.float64).ravel()
