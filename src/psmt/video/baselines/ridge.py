"""Ridge autoregression of pixels on their neighbourhoods."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.linalg
from numpy.lib.stride_tricks import sliding_window_view

from psmt.errors import NotEnoughFramesError
from psmt.types import Array, Levels
from psmt.utils.validation import Constraint, allowing, count, real
from psmt.video.baselines.base import FrameBaseline


class RidgePixels(FrameBaseline):
    """Ridge autoregression: the change of a pixel is a linear map of its neighbourhood in the last two frames.

    Each tile of the frame has weights of its own, learned from all its pixels in all past frames.

    Parameters
    ----------
    radius : int, default 2
        Pixels that the neighbourhood reaches in each direction.
    tile : int, default 25
        Side of a tile in pixels.
    penalty : float or 'auto', default 'auto'
        Ridge penalty, relative to the mean eigenvalue of the inputs' second moment. 'auto' takes the best of six on
        the last eighth of the past, learning from what lies before it, then learns from all of it.
    """

    n_last = 2
    _PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "radius": count(0),
        "tile": count(),
        "penalty": allowing("auto", real(open_bound=True)),
    }
    learned = ("penalty_", "weights_")

    def __init__(self, *, radius: int = 2, tile: int = 25, penalty: float | str = "auto") -> None:
        self.radius = radius
        self.tile = tile
        self.penalty = penalty

    def learn(self, past: Levels) -> None:
        """Learn from the checked past."""
        if len(past) < 4:
            raise NotEnoughFramesError(f"frames has {len(past)} frames; ridge autoregression needs at least 4")
        n_steps = len(past) - 2
        split = n_steps - max(n_steps // 8, 1)
        early, late = self._moments(past[: split + 2]), self._moments(past[split:])
        if self.penalty == "auto":
            errors = [self._error(late, self._solve(early, penalty)) for penalty in self._PENALTIES]
            self.penalty_ = self._PENALTIES[int(np.argmin(errors))]
        else:
            self.penalty_ = float(self.penalty)
        self.weights_ = self._solve([a + b for a, b in zip(early, late, strict=True)], self.penalty_)

    def _tiles(self) -> list[tuple[slice, slice]]:
        """Rows and columns of each tile of the frame."""
        height, width = self.shape_
        return [
            (slice(top, min(top + self.tile, height)), slice(left, min(left + self.tile, width)))
            for top in range(0, height, self.tile)
            for left in range(0, width, self.tile)
        ]

    def _neighbourhoods(self, before: Levels, now: Levels) -> Levels:
        """Return inputs (height, width, n_inputs): the neighbourhoods of each pixel in two frames, less its value."""
        side = 2 * self.radius + 1
        padded = np.pad(np.stack([before, now]), ((0, 0), (self.radius,) * 2, (self.radius,) * 2), mode="symmetric")
        views = sliding_window_view(padded, (side, side), axis=(1, 2))
        # Only differences matter: brightness is no cause of change.
        inputs = np.moveaxis(views, 0, 2).reshape(*self.shape_, 2 * side * side) - now[:, :, None]
        return np.delete(inputs, side * side + side * side // 2, axis=2)

    def _moments(self, past: Levels) -> list[Array]:
        """Second moments of inputs (tiles, n, n), of inputs with the change (tiles, n), and of the change (tiles,)."""
        tiles = self._tiles()
        n = 2 * (2 * self.radius + 1) ** 2 - 1
        gram, cross, power = np.zeros((len(tiles), n, n)), np.zeros((len(tiles), n)), np.zeros(len(tiles))
        for before, now, after in zip(past, past[1:], past[2:], strict=False):
            # Small penalties need the digits of double precision.
            inputs, change = self._neighbourhoods(before, now).astype(np.float64), (after - now).astype(np.float64)
            for k, tile in enumerate(tiles):
                own, target = inputs[tile].reshape(-1, n), change[tile].ravel()
                gram[k] += own.T @ own
                cross[k] += own.T @ target
                power[k] += target @ target
        return [gram, cross, power]

    @staticmethod
    def _solve(moments: list[Array], penalty: float) -> Levels:
        """Weights (tiles, n)."""
        gram, cross, _ = moments
        scale = np.trace(gram, axis1=1, axis2=2) / gram.shape[1]
        # Below the rounding of the moments a penalty says nothing; and there are tiles where nothing varies.
        floor = np.maximum(max(penalty, 1e-12) * scale, 1e-12)
        eye = np.eye(gram.shape[1])
        return np.stack(
            [
                scipy.linalg.solve(one + low * eye, other, assume_a="pos")
                for one, other, low in zip(gram, cross, floor, strict=True)
            ]
        ).astype(np.float32)

    @staticmethod
    def _error(moments: list[Array], weights: Levels) -> float:
        """Sum of squared errors of weights (tiles, n) over what the moments were taken of."""
        gram, cross, power = moments
        explained = np.einsum("ki,kij,kj->", weights, gram, weights) - 2 * np.sum(weights * cross)
        return float(np.sum(power) + explained)

    def next_frame(self, last: Levels) -> Levels:
        """Return the frame after the last few."""
        inputs = self._neighbourhoods(last[0], last[1])
        predicted: Levels = last[-1].copy()
        for weights, tile in zip(self.weights_, self._tiles(), strict=True):
            predicted[tile] += inputs[tile] @ weights
        return predicted
