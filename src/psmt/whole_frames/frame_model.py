"""`FramePSMT`: whole frames, predicted as the last frame plus a change."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.errors import NotEnoughFramesError
from psmt.validation import check_count
from psmt.whole_frames.blend import Blend
from psmt.whole_frames.planes import MEMORIES, Angles, FourierPlanes
from psmt.whole_frames.surprise import Surprise

Array = NDArray[np.float32]

_SIZES = (8, 16, 32)
_BANDS = (0.8, 2.0)
_NEIGHBOURS = [(i, j) for i in range(-2, 3) for j in range(-2, 3) if 0 < abs(i) + abs(j) <= 2]


class _Scene(NamedTuple):
    """What a prediction starts from: nothing in it is ever changed in place."""

    previous: Array
    current: Array
    angles: tuple[Angles, ...]


class FramePSMT(BaseEstimator):
    """Whole-frame prediction, (height, width) grey levels in and out."""

    def fit(self, frames: ArrayLike, y: object = None) -> Self:
        """Learn from the past frames (time, height, width)."""
        past = _checked(frames, "frames", 3)
        if len(past) < 2:
            raise NotEnoughFramesError(f"frames has {len(past)} frames; at least 2 are needed")
        shape = past.shape[1:]
        self.shape_ = shape
        self._planes = tuple(FourierPlanes(shape, size) for size in _SIZES)
        n_moving = 1 + len(_SIZES) * len(MEMORIES)
        self._blend = Blend(shape, n_moving * (len(_BANDS) + 1) + 2 * len(_NEIGHBOURS))
        self._surprise = Surprise()
        self._low, self._high = float(past[0].min()), float(past[0].max())
        self._scene = _Scene(past[0], past[0], tuple(planes.start(past[0]) for planes in self._planes))
        self._restart()
        for frame in past[1:]:
            self._receive(frame)
        return self

    def update(self, frame: ArrayLike) -> Self:
        """Receive the frame (height, width) that came next."""
        check_is_fitted(self, "shape_")
        received = _checked(frame, "frame", 2)
        if received.shape != self.shape_:
            raise ValueError(f"frame has shape {received.shape}; the model was fitted with frames of {self.shape_}")
        self._receive(received)
        return self

    def predict(self, horizon: int | None = None) -> Array:
        """The next frame (height, width), or with a `horizon` the next frames (horizon, height, width)."""
        check_is_fitted(self, "shape_")
        count = 1 if horizon is None else check_count("horizon", horizon)
        frames = [self._clipped(self._scene.current + self._change)]
        scene = self._scene
        for _ in range(count - 1):
            scene = self._follow(scene, frames[-1])
            frames.append(self._clipped(scene.current + self._blend(self._candidates(scene), self._weights)))
        return frames[0] if horizon is None else np.stack(frames)

    @property
    def surprise_(self) -> float:
        return self._surprise.value

    @property
    def cut_(self) -> bool:
        return self._surprise.cut

    def _receive(self, frame: Array) -> None:
        self._low, self._high = min(self._low, float(frame.min())), max(self._high, float(frame.max()))
        change = frame - self._scene.current
        self._surprise.observe(float(np.mean((change - self._change) ** 2)), float(np.mean(change**2)))
        if self.cut_:
            self._blend.forget(0.1)
            self._scene = _Scene(frame, frame, tuple(planes.start(frame) for planes in self._planes))
            self._restart()
            return
        if self._candidates_now is not None:
            self._blend.learn(self._candidates_now, change)
        self._scene = self._follow(self._scene, frame)
        self._candidates_now = self._candidates(self._scene)
        self._weights = self._blend.weights()
        self._change = self._blend(self._candidates_now, self._weights)

    def _restart(self) -> None:
        self._candidates_now: Array | None = None
        self._change = np.zeros(self.shape_, np.float32)
        self._weights = np.zeros((*self._blend.match.shape,))

    def _follow(self, scene: _Scene, frame: Array) -> _Scene:
        angles = (planes.receive(old, frame) for planes, old in zip(self._planes, scene.angles, strict=True))
        return _Scene(scene.current, frame, tuple(angles))

    def _candidates(self, scene: _Scene) -> Array:
        turned = [planes.changes(known) for planes, known in zip(self._planes, scene.angles, strict=True)]
        rest = np.concatenate([(scene.current - scene.previous)[None], *turned])
        bands = []
        for width in _BANDS:
            smooth = gaussian_filter(rest, (0, width, width))
            bands.append(rest - smooth)
            rest = smooth
        near = [_shifted(frame, *by) - scene.current for frame in (scene.current, scene.previous) for by in _NEIGHBOURS]
        return np.concatenate([*bands, rest, np.array(near)])

    def _clipped(self, frame: Array) -> Array:
        return np.clip(frame, self._low, self._high)


def _shifted(frame: Array, down: int, right: int) -> Array:
    """The frame (height, width) with each pixel replaced by the one so far below and to the right of it."""
    height, width = frame.shape
    padded = np.pad(frame, 2, mode="edge")
    return padded[2 + down : 2 + down + height, 2 + right : 2 + right + width]


def _checked(values: ArrayLike, name: str, n_axes: int) -> Array:
    """Grey levels as a finite float32 array of `n_axes` axes."""
    array = np.asarray(values)
    wanted = "(time, height, width)" if n_axes == 3 else "(height, width)"
    if array.ndim != n_axes or 0 in array.shape[-2:] or array.dtype.kind not in "buif":
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}; give grey levels {wanted}")
    array = array.astype(np.float32, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; mend or drop such frames")
    return array
