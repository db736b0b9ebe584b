"""Baselines for whole frames, with the methods `fit`, `update` and `predict` of `FramePredictor`.

All baselines predict grey levels. No baseline is tuned on the frames that it predicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from psmt.data.contract import grey
from psmt.engines import engine_for
from psmt.engines.frame_kernels import Tiles, hann
from psmt.errors import NotEnoughFramesError
from psmt.model.baselines import LastFramesPredictor
from psmt.types import Array, Levels
from psmt.utils.constraints import allowing, count, parameter, real
from psmt.utils.jit import njit
from psmt.video.frames import check_grey_film, check_next_frame


class FrameBaseline(LastFramesPredictor):
    """Base class of baselines that predict the next frame, in grey, from the last few frames.

    To add a baseline, write a subclass and add a line to `FRAME_BASELINES`. The subclass defines the number of last
    frames that it uses (`n_last`) and the prediction from them (`next_frame`). A baseline that learns in `fit` also
    defines the method `learn` and the names of the learned attributes (`learned`).
    """

    def check_past(self, X: ArrayLike) -> Levels:
        """Check past frames and return their grey levels (time, height, width). Colour is reduced to luma."""
        return check_grey_film(X, minimum=self.n_last)

    def check_next(self, x: ArrayLike) -> Levels:
        """Check the next frame and return its grey levels (height, width). Colour is reduced to luma."""
        return grey(check_next_frame(x, self.shape_ if np.ndim(x) < 3 else (*self.shape_, 3)))


class CopyLastFrame(FrameBaseline):
    """Persistence: predicts that the next frame equals the last one. Every predictor has to beat this baseline.

    >>> import numpy as np
    >>> CopyLastFrame().fit(np.zeros((2, 3, 3))).update(np.ones((3, 3))).predict()[0]
    array([1., 1., 1.], dtype=float32)
    """

    n_last = 1

    def next_frame(self, last: Levels) -> Levels:
        """Return the next frame (height, width), given the last frame as `last` (1, height, width)."""
        return np.array(last[-1])


class LinearPixels(FrameBaseline):
    """Linear extrapolation: every pixel continues on the straight line through its last two values."""

    n_last = 2

    def next_frame(self, last: Levels) -> Levels:
        """Return the next frame (height, width), given the last two frames `last` (2, height, width)."""
        return np.asarray(2 * last[-1] - last[-2])


class FourierPhase(FrameBaseline):
    """Phase extrapolation of a short-space Fourier transform, with 16 x 16 Hann windows that are 4 pixels apart.

    In each window, every Fourier coefficient is rotated by the angle between its last two values. This continues steady
    motion. Nothing is learned.
    """

    n_last = 2

    def next_frame(self, last: Levels) -> Levels:
        """Return the next frame (height, width), given the last two frames `last` (2, height, width)."""
        kernels, tiles = engine_for("cpu").frames, Tiles(self.shape_, size=16, stride=4)
        before, now = (kernels.spectra(frame, tiles) for frame in last)
        return np.asarray(last[1] + kernels.advanced(now, (now * before.conj(),), tiles)[0])


@dataclass(kw_only=True, eq=False, repr=False)
class BlockMotion(FrameBaseline):
    """Block-matching motion compensation: each block of the picture continues its last motion.

    Block matching estimates the motion of each block between the last two frames, to a fraction of a pixel. The
    prediction moves the block once more by the same amount. Overlapping blocks are blended.

    Parameters
    ----------
    block : int, default 16
        Side of a block in pixels. Neighbouring blocks are half a block apart.
    reach : int, default 8
        Largest motion in pixels per frame, along each axis.
    """

    block: int = parameter(16, count(2))
    reach: int = parameter(8, count())

    n_last = 2

    def next_frame(self, last: Levels) -> Levels:
        """Return the next frame (height, width), given the last two frames `last` (2, height, width)."""
        # Half a block of margin on each side, so that corners are in as many blocks as the middle, plus the reach of
        # the search and of the continued motion, plus a pixel for interpolation.
        half = self.block // 2
        margin = half + self.reach + 1
        before, now = (np.pad(frame, margin, mode="symmetric") for frame in last)
        height, width = self.shape_
        fade = hann(2 * half).astype(np.float32)
        return _move_blocks(before, now, height, width, half, self.reach, np.outer(fade, fade))


@njit(cache=True, nogil=True, fastmath=True)
def _move_blocks(before: Levels, now: Levels, height: int, width: int, half: int, reach: int, fade: Levels) -> Levels:
    """Return the frame after `now`, predicted by moving blocks of side 2 * half. The window `fade` blends them."""
    margin = half + reach + 1
    side = 2 * half
    total = np.zeros((height, width), dtype=np.float32)
    weight = np.zeros((height, width), dtype=np.float32)
    errors = np.empty((2 * reach + 1, 2 * reach + 1), dtype=np.float32)
    for top in range(-half, height, half):
        for left in range(-half, width, half):
            row, column = min(top + margin, height + reach + 1), min(left + margin, width + reach + 1)
            down, right = _search(before, now, row, column, side, reach, errors)
            for y in range(max(margin - row, 0), min(height + margin - row, side)):
                for x in range(max(margin - column, 0), min(width + margin - column, side)):
                    value = _between(now, row + y - down, column + x - right)
                    total[row - margin + y, column - margin + x] += fade[y, x] * value
                    weight[row - margin + y, column - margin + x] += fade[y, x]
    return total / weight


@njit(cache=True, nogil=True, fastmath=True)
def _search(
    before: Levels, now: Levels, row: int, column: int, side: int, reach: int, errors: Levels
) -> tuple[float, float]:
    """Return the motion (down, right) of the block at (row, column) from `before` to `now`. `errors` is scratch."""
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            error = np.float32(0.0)
            for y in range(side):
                for x in range(side):
                    gap = now[row + y, column + x] - before[row + reach - i + y, column + reach - j + x]
                    error += gap * gap
            errors[i, j] = error
    # No motion wins a tie, so that flat areas do not move.
    best_i, best_j, best = reach, reach, errors[reach, reach]
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            if errors[i, j] < np.float32(0.999) * best:
                best_i, best_j, best = i, j, errors[i, j]
    down, right = best_i - reach + _vertex(errors[:, best_j], best_i), best_j - reach + _vertex(errors[best_i], best_j)
    error = np.float32(0.0)
    for y in range(side):
        for x in range(side):
            gap = now[row + y, column + x] - _between(before, row + y - down, column + x - right)
            error += gap * gap
    # The fraction of a pixel is used only where it reduces the error.
    if error < best:
        return down, right
    return float(best_i - reach), float(best_j - reach)


@njit(cache=True, nogil=True)
def _vertex(errors: Levels, k: int) -> float:
    """Return where the parabola through errors k - 1 to k + 1 has its minimum, relative to k, or 0 if it has none."""
    if k == 0 or k == len(errors) - 1:
        return 0.0
    bend = errors[k - 1] - 2 * errors[k] + errors[k + 1]
    if bend <= 0:
        return 0.0
    offset: float = min(max(0.5 * (errors[k - 1] - errors[k + 1]) / bend, -0.5), 0.5)
    return offset


@njit(cache=True, nogil=True, fastmath=True)
def _between(frame: Levels, y: float, x: float) -> float:
    """Return the grey level at (y, x) by bilinear interpolation."""
    i, j = int(np.floor(y)), int(np.floor(x))
    a, b = np.float32(y - i), np.float32(x - j)
    upper = frame[i, j] + b * (frame[i, j + 1] - frame[i, j])
    lower = frame[i + 1, j] + b * (frame[i + 1, j + 1] - frame[i + 1, j])
    level: float = upper + a * (lower - upper)
    return level


@dataclass(kw_only=True, eq=False, repr=False)
class RidgePixels(FrameBaseline):
    """Ridge autoregression: the change of a pixel is a linear function of its neighbourhood in the last two frames.

    Each tile of the frame has weights of its own, learned from all its pixels in all past frames.

    Parameters
    ----------
    radius : int, default 2
        The neighbourhood of a pixel is the square of side 2 * radius + 1 around it.
    tile : int, default 25
        Side of a tile in pixels.
    penalty : float or 'auto', default 'auto'
        Ridge penalty, relative to the mean eigenvalue of the inputs' second moment. 'auto' tries six penalties and
        takes the one with the smallest error on the last eighth of the past frames.
    """

    radius: int = parameter(2, count(0))
    tile: int = parameter(25, count())
    penalty: float | str = parameter("auto", allowing("auto", real(open_bound=True)))

    n_last = 2
    learned = ("penalty_", "weights_")
    _PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)

    def learn(self, past: Levels) -> None:
        """Learn the weights of each tile from past frames (time, height, width)."""
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
        """Return the slices of rows and columns of each tile."""
        height, width = self.shape_
        return [
            (slice(top, min(top + self.tile, height)), slice(left, min(left + self.tile, width)))
            for top in range(0, height, self.tile)
            for left in range(0, width, self.tile)
        ]

    def _neighbourhoods(self, before: Levels, now: Levels) -> Levels:
        """Return the inputs (height, width, n): levels around each pixel in both frames, minus its level in `now`."""
        side = 2 * self.radius + 1
        padded = np.pad(np.stack([before, now]), ((0, 0), (self.radius,) * 2, (self.radius,) * 2), mode="symmetric")
        views = sliding_window_view(padded, (side, side), axis=(1, 2))
        # Only differences matter, not brightness.
        inputs = np.moveaxis(views, 0, 2).reshape(*self.shape_, 2 * side * side) - now[:, :, None]
        return np.delete(inputs, side * side + side * side // 2, axis=2)

    def _moments(self, past: Levels) -> list[Array]:
        """Return X'X (tiles, n, n), X'y (tiles, n) and y'y (tiles,) for the inputs X and the changes y of pixels."""
        tiles = self._tiles()
        n = 2 * (2 * self.radius + 1) ** 2 - 1
        gram, cross, power = np.zeros((len(tiles), n, n)), np.zeros((len(tiles), n)), np.zeros(len(tiles))
        for before, now, after in zip(past, past[1:], past[2:], strict=False):
            # Small penalties need double precision.
            inputs, change = self._neighbourhoods(before, now).astype(np.float64), (after - now).astype(np.float64)
            for k, tile in enumerate(tiles):
                own, target = inputs[tile].reshape(-1, n), change[tile].ravel()
                gram[k] += own.T @ own
                cross[k] += own.T @ target
                power[k] += target @ target
        return [gram, cross, power]

    @staticmethod
    def _solve(moments: list[Array], penalty: float) -> Levels:
        """Return the ridge weights (tiles, n), given the arrays of `_moments`."""
        gram, cross, _ = moments
        scale = np.trace(gram, axis1=1, axis2=2) / gram.shape[1]
        # Penalties below the rounding of the moments have no effect, and in some tiles nothing varies.
        floor = np.maximum(max(penalty, 1e-12) * scale, 1e-12)
        ridge = floor[:, None, None] * np.eye(gram.shape[1])
        return np.linalg.solve(gram + ridge, cross[..., None])[..., 0].astype(np.float32)

    @staticmethod
    def _error(moments: list[Array], weights: Levels) -> float:
        """Return the sum of squared errors of weights (tiles, n) over the frames that `_moments` has seen."""
        gram, cross, power = moments
        explained = np.einsum("ki,kij,kj->", weights, gram, weights) - 2 * np.sum(weights * cross)
        return float(np.sum(power) + explained)

    def next_frame(self, last: Levels) -> Levels:
        """Return the next frame (height, width), given the last two frames `last` (2, height, width)."""
        inputs = self._neighbourhoods(last[0], last[1])
        predicted: Levels = last[-1].copy()
        for weights, tile in zip(self.weights_, self._tiles(), strict=True):
            predicted[tile] += inputs[tile] @ weights
        return predicted


class FrameBaselineEntry(NamedTuple):
    """Entry of `FRAME_BASELINES`: the label of a baseline in tables, its class, and whether it is slow.

    A slow baseline takes about as much time as the model. Comparisons include it only on request.
    """

    label: str
    make: type[FrameBaseline]
    slow: bool = False


FRAME_BASELINES = {
    "copy": FrameBaselineEntry("copy last frame", CopyLastFrame),
    "linear": FrameBaselineEntry("linear in pixels", LinearPixels),
    "fourier": FrameBaselineEntry("Fourier phase advance", FourierPhase),
    "blocks": FrameBaselineEntry("block motion", BlockMotion, slow=True),
    "ridge": FrameBaselineEntry("ridge regression", RidgePixels, slow=True),
}
"""All baselines, by their name in files. Comparisons, their options and their tables are made from this list."""
