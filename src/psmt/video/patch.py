"""Prediction of a patch by `FramePredictor`, which also sees the surroundings of the patch."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.data.patches import standardise
from psmt.types import Array
from psmt.video.model import FramePredictor


class PatchInFrame(BaseEstimator):
    """Predicts a patch of a film. It learns from frames that show the patch and its surroundings.

    A `FramePredictor` predicts the frames, and the patch is cut out of them. It is then scaled to zero mean and unit
    variance by `psmt.data.patches.standardise`, like all patches in this package.

    Parameters
    ----------
    corner : (int, int)
        Row and column of the patch's top-left pixel in the frames.
    patch_size : int
        Height and width of the patch.

    Examples
    --------
    >>> x = np.arange(32)
    >>> film = [np.add.outer(np.sin(x / 3), np.sin((x - t) / 2)) for t in range(31)]
    >>> PatchInFrame(corner=(8, 8), patch_size=16).fit(film[:30]).update(film[30]).predict(horizon=2).shape
    (2, 256)
    """

    def __init__(self, *, corner: tuple[int, int], patch_size: int) -> None:
        self.corner = corner
        self.patch_size = patch_size

    def fit(self, frames: ArrayLike, y: object = None) -> Self:
        """Learn from at least two past frames (time, height, width), which show the patch and its surroundings."""
        height, width = np.shape(frames)[1:]
        row, column = self.corner
        if not (0 <= row <= height - self.patch_size and 0 <= column <= width - self.patch_size):
            raise ValueError(
                f"corner={self.corner} puts a patch of {self.patch_size} outside surroundings of {height} x {width}; "
                f"use rows from 0 to {height - self.patch_size} and columns from 0 to {width - self.patch_size}"
            )
        # Comparing rollouts with the film changes predictions beyond the next frame only, and takes a quarter longer.
        self.predictor_ = FramePredictor(rollouts=False).fit(frames)
        return self

    def update(self, frame: ArrayLike) -> Self:
        """Learn from the next frame (height, width), which shows the patch and its surroundings."""
        check_is_fitted(self)
        self.predictor_.update(frame)
        return self

    def predict(self, horizon: int | None = None) -> Array:
        """Return the next patch (n_features,), or the next patches (horizon, n_features) if a `horizon` is given."""
        check_is_fitted(self)
        row, column = self.corner
        frames = self.predictor_.predict(1 if horizon is None else horizon)
        cut = frames[:, row : row + self.patch_size, column : column + self.patch_size]
        patches = standardise(cut.reshape(len(cut), -1)).values
        return patches[0] if horizon is None else patches
