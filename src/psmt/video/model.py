"""`FramePSMT`: whole frames, predicted as the last frame plus a change."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from psmt.coding import SparseCoder
from psmt.errors import NotEnoughFramesError
from psmt.extrapolation import EXTRAPOLATIONS
from psmt.storage import load_frame_model, save_frame_model
from psmt.threads import one_blas_thread
from psmt.validation import check_choice, check_count, check_levels, check_real
from psmt.video.by_code import Content, tile_coder
from psmt.video.by_place import Places
from psmt.video.cut_detector import Surprise
from psmt.video.fourier_planes import Angles, FourierPlanes
from psmt.video.grid import Array, Cells
from psmt.video.local_gain import Trust, restrained

_PLANES = ((8, (0.0, 0.5)), (16, (0.5,)), (32, (0.5, 0.9)))
"""Sizes of tiles, and for each the memories of the turn. Small tiles follow small things, large ones fast motion."""

_BANDS = (0.8, 2.0)
"""Widths of the Gaussians in pixels that part a candidate into fine, middle and coarse detail."""

_NEIGHBOURS = tuple((i, j) for i in range(-2, 3) for j in range(-2, 3) if 0 < abs(i) + abs(j) <= 2)
"""Offsets (down, right) of the pixels whose levels are candidates themselves."""


class _Offer(NamedTuple):
    """What an extrapolation makes predictions from, besides the last change."""

    planes: tuple[tuple[int, tuple[float, ...]], ...] = ()
    neighbours: tuple[tuple[int, int], ...] = ()
    share: float | None = None
    """Of the last change, where nothing is learned and it is all there is."""


_OFFERS = {
    "phase": _Offer(_PLANES, _NEIGHBOURS),
    "gain": _Offer(),
    "linear": _Offer(share=1.0),
    "hold": _Offer(share=0.0),
}
"""By the names of `psmt.extrapolation`."""

_KEPT = 0.1
"""How much of what was learned of places counts after a sharp change."""

_FLOOR = 1e-6
"""Changes of less energy than this fraction of the variance over the picture are no scale to measure others by."""


class _Scene(NamedTuple):
    """What a prediction starts from. Nothing in it is ever changed in place, so that a rollout leaves no trace."""

    previous: Array
    current: Array
    angles: tuple[Angles, ...]


class _Outlook(NamedTuple):
    """What a scene may turn into."""

    moving: Array
    """Changes (n, height, width) by motion: the last one again, and all planes turned on."""
    activity: Array
    """Codes (rows, columns, n_atoms) of the cells."""
    candidates: Array
    """All that is weighed by place (n_candidates, height, width)."""


class FramePSMT(BaseEstimator):
    """Predictive Sparse Manifold Transform of whole frames: grey levels in, grey levels out.

    The next frame is the last one plus a change. Candidates for the change come from planes in which the scene turns
    (tiles of three sizes, whose Fourier coefficients turn on by the phase step of the last frames), from the last
    change, and from the neighbouring pixels of the last two frames. What decides between them is learned, by least
    squares that go on while the film runs:

    - by content: sparse codes over one dictionary, with moments per atom that are pooled over all positions;
    - by place: moments per cell of 8 x 8 pixels, in three bands of detail, with the blend by content as one more
      candidate;
    - by record: a gain per cell in [0, 1], from predictions whose truth was not known yet. Where nothing has proved
      better, the last frame is copied.

    Calm frames count as much as lively ones in all this, and a change that is far livelier than the last one is
    weakened: motion may stop at once.

    What each part gives: MSE / copy of the next frame, mean of three stretches of a dashcam film at 100 x 100.

    ============================================================  =====
    all                                                           0.365
    without the blend by content                                  0.364
    without neighbouring pixels                                   0.394
    without neighbouring pixels and bands of detail               0.423
    without planes                                                0.459
    with planes of one size that turn as in the last step only    0.408
    one Fourier phase advance, nothing learned                    0.541
    ============================================================  =====

    So the planes and their blend by place do the work. The blend by content, which alone reaches 0.44, adds nothing
    beside the blend by place on this film, neither after a hundred frames nor after ten.

    A sharp change (a cut, a flash) is noticed by the failure of the prediction: the model then starts again from the
    new frame, copies until its predictions have earned trust again, and keeps a tenth of what it knew of places.

    Memory and time per frame do not grow with the film. `fit` is `update` for each of the frames, after the dictionary.

    Parameters
    ----------
    n_atoms : int, default 256
        M, the size of the dictionary of 16 x 16 tiles.
    alpha : float, default 0.2
        Price of activity in layer 1, > 0; a tile of usual contrast has norm 1.
    extrapolation : {'phase', 'gain', 'linear', 'hold'}, default 'phase'
        How the change is found: all of the above; from the last change alone, with learned gains; the last change once
        more, as in the paper, whether it pays or not; none, so that the last frame is copied.
    random_state : int, RandomState or None

    Attributes
    ----------
    shape_ : (height, width)
    dictionary_ : (n_atoms, 256) array
        Where something is learned: with 'phase' and 'gain'.
    surprise_ : float
        How badly the last prediction failed, in units of what is usual.
    cut_ : bool
        Whether the last frame was taken as a sharp change.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt import FramePSMT
    >>> x = np.arange(32)
    >>> film = [np.add.outer(np.sin(x / 3), np.sin((x - t) / 2)) for t in range(40)]
    >>> model = FramePSMT(n_atoms=16, random_state=0).fit(film[:30])
    >>> model.predict(horizon=3).shape
    (3, 32, 32)
    >>> bool(np.mean((model.predict() - film[30]) ** 2) < 0.05 * np.mean((film[29] - film[30]) ** 2))
    True
    """

    _scene: _Scene
    _last: _Outlook | None
    _change: Array

    def __init__(
        self,
        *,
        n_atoms: int = 256,
        alpha: float = 0.2,
        extrapolation: str = "phase",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.alpha = alpha
        self.extrapolation = extrapolation
        self.random_state = random_state

    def fit(self, frames: ArrayLike, y: object = None) -> Self:
        """Learn from the past frames (time, height, width), at least two."""
        self._check_parameters()
        past = check_levels(frames, name="frames", n_axes=3)
        if len(past) < 2:
            raise NotEnoughFramesError(f"frames has {len(past)} frames; at least 2 are needed")
        cells, rng = Cells(past.shape[1:]), check_random_state(self.random_state)
        coder, scale = None, 1.0
        if _OFFERS[self.extrapolation].share is None:
            coder, scale = tile_coder(past, cells, n_atoms=self.n_atoms, alpha=self.alpha, rng=rng)
        self._assemble(cells, coder, scale, past[0].copy())
        with one_blas_thread():
            for frame in past[1:]:
                self._receive(frame.copy())
        return self

    def update(self, frame: ArrayLike) -> Self:
        """Receive the frame (height, width) that came next."""
        check_is_fitted(self, "shape_")
        received = check_levels(frame, name="frame", n_axes=2)
        if received.shape != self.shape_:
            raise ValueError(f"frame has shape {received.shape}; the model was fitted with frames of {self.shape_}")
        with one_blas_thread():
            # The caller may read the next frame into the same array.
            self._receive(received.copy())
        return self

    def predict(self, horizon: int | None = None) -> Array:
        """The next frame (height, width), or with a `horizon` the next frames (horizon, height, width).

        Frames beyond the first are predicted from the predictions before them. Levels stay in the range seen so far,
        but for 'linear'.
        """
        check_is_fitted(self, "shape_")
        n_steps = 1 if horizon is None else check_count("horizon", horizon)
        frames = self._rolled(n_steps) if self._offer.share is None else self._straight(self._offer.share, n_steps)
        return frames[0] if horizon is None else np.stack(frames)

    def _straight(self, share: float, n_steps: int) -> list[Array]:
        """The next frames if each differs from the one before by the same share of the last change."""
        step = np.float32(share) * (self._scene.current - self._scene.previous)
        return [self._scene.current + np.float32(k) * step for k in range(1, n_steps + 1)]

    def _rolled(self, n_steps: int) -> list[Array]:
        """The next frames by what was learned, each from those before it."""
        cells, scene, change = self._trust.cells, self._scene, self._change
        believed = gains = self._trust.gains()
        frames: list[Array] = []
        for step in range(n_steps):
            if step:
                scene = self._follow(scene, frames[-1])
                with one_blas_thread():
                    change = self._foretell(self._outlook(scene))
                # What follows from a prediction is believed as far as the prediction itself, and then by its own gain.
                believed = believed * gains
            step_taken = cells.weighted(change[None], believed)
            step_taken = restrained(cells, step_taken, scene.current - scene.previous)
            frames.append(np.clip(scene.current + step_taken, self._low, self._high))
        return frames

    @property
    def dictionary_(self) -> NDArray[np.float64]:
        """Atoms (n_atoms, 256) of layer 1: tiles of 16 x 16 pixels under a window."""
        check_is_fitted(self, "shape_")
        if self._content is None:
            raise AttributeError(
                f"extrapolation={self.extrapolation!r} has no dictionary; 'phase' and 'gain' learn one"
            )
        return self._content.coder.dictionary_

    @property
    def surprise_(self) -> float:
        """How badly the last prediction failed, in units of what is usual."""
        check_is_fitted(self, "shape_")
        return self._surprise.value

    @property
    def cut_(self) -> bool:
        """Whether the last frame was taken as a sharp change."""
        check_is_fitted(self, "shape_")
        return self._surprise.cut

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, whole or not at all. No pickle: a file holds arrays and JSON only."""
        check_is_fitted(self, "shape_")
        save_frame_model(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The model that `save` wrote; it goes on as that one does, bit for bit."""
        return load_frame_model(cls, path)

    def _check_parameters(self) -> None:
        check_count("n_atoms", self.n_atoms)
        check_real("alpha", self.alpha, open_bound=True)
        check_choice("extrapolation", self.extrapolation, tuple(EXTRAPOLATIONS))

    def _assemble(self, cells: Cells, coder: SparseCoder | None, scale: float, frame: Array) -> None:
        """Put the parts together, which have learned nothing yet, before a first frame (height, width).

        There is a coder where something is learned.
        """
        self.shape_ = cells.shape
        self._offer = _OFFERS[self.extrapolation]
        self._low, self._high = float(frame.min()), float(frame.max())
        self._planes = tuple(FourierPlanes(cells.shape, size, memories) for size, memories in self._offer.planes)
        n_moving = 1 + sum(len(memories) for _, memories in self._offer.planes)
        self._content = None if coder is None else Content(cells, n_moving, coder, scale)
        self._places = Places(cells, (n_moving + 1) * (len(_BANDS) + 1) + 2 * len(self._offer.neighbours))
        self._trust = Trust(cells)
        self._surprise = Surprise()
        self._begin(frame)

    @property
    def _parts(self) -> dict[str, Content | Places | Trust | Surprise]:
        content = {} if self._content is None else {"content": self._content}
        return {**content, "places": self._places, "trust": self._trust, "surprise": self._surprise}

    @property
    def _state(self) -> dict[str, NDArray[np.generic]]:
        """All that goes on from frame to frame, as arrays. What follows from it is left out."""
        return {
            "levels": np.array([self._low, self._high]),
            "looks_ahead": np.array(int(self._last is not None)),
            "previous": self._scene.previous,
            "current": self._scene.current,
            **{f"turns{k}": np.array(angles.turns) for k, angles in enumerate(self._scene.angles)},
            **{f"{name}.{key}": value for name, part in self._parts.items() for key, value in part.state.items()},
        }

    @_state.setter
    def _state(self, state: dict[str, NDArray[Any]]) -> None:
        for key, present in self._state.items():
            if (state[key].shape, state[key].dtype) != (present.shape, present.dtype):
                raise ValueError(f"{key} is {state[key].dtype} {state[key].shape}, not {present.dtype} {present.shape}")
        for name, part in self._parts.items():
            part.state = {key: state[f"{name}.{key}"] for key in part.state}
        self._low, self._high = state["levels"].tolist()
        current = state["current"]
        angles = (Angles(p.start(current).now, tuple(state[f"turns{k}"])) for k, p in enumerate(self._planes))
        self._scene = _Scene(state["previous"], current, tuple(angles))
        if state["looks_ahead"]:
            with one_blas_thread():
                self._look_ahead()

    def _receive(self, frame: Array) -> None:
        """Score what was predicted, learn from what came, and look ahead."""
        last = self._scene.current
        contrast = max(float(np.var(last)), float(np.var(frame)))
        self._surprise.observe(_mse(self.predict(), frame), _mse(last, frame), contrast)
        self._low, self._high = min(self._low, float(frame.min())), max(self._high, float(frame.max()))
        if self.cut_:
            self._places.forget(_KEPT)
            self._trust.clear()
            self._begin(frame)
            return
        # Calm frames count as much as lively ones, or these would still rule long after the motion has stopped. That a
        # frame is calmer than the one before may be a stutter, which says little.
        energy = max(_mse(self._scene.previous, last), _mse(last, frame), _FLOOR * contrast)
        if self._content is not None and self._last is not None and energy > 0:
            unit = np.float32(energy**-0.5)
            change = unit * (frame - last)
            self._trust.learn(unit * self._change, change)
            self._content.learn(unit * self._last.moving, change, self._last.activity)
            self._places.learn(unit * self._last.candidates, change)
        self._scene = self._follow(self._scene, frame)
        if self._content is not None:
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Find what the scene may turn into, and weigh it."""
        self._last = self._outlook(self._scene)
        self._weights = self._places.weights()
        self._change = self._foretell(self._last)

    def _begin(self, frame: Array) -> None:
        """Start from one frame: nothing is known of its motion."""
        self._scene = _Scene(frame, frame, tuple(planes.start(frame) for planes in self._planes))
        self._last = None
        self._change = np.zeros(self.shape_, np.float32)
        self._weights = np.zeros(self._places.match.shape, np.float32)

    def _follow(self, scene: _Scene, frame: Array) -> _Scene:
        """The scene after one more frame (height, width)."""
        angles = (planes.receive(old, frame) for planes, old in zip(self._planes, scene.angles, strict=True))
        return _Scene(scene.current, frame, tuple(angles))

    def _outlook(self, scene: _Scene) -> _Outlook:
        """All that the scene may turn into, where anything is learned."""
        assert self._content is not None
        turned = [planes.changes(known) for planes, known in zip(self._planes, scene.angles, strict=True)]
        moving = np.concatenate([(scene.current - scene.previous)[None], *turned])
        activity = self._content.activity(scene.current)
        rest = np.concatenate([moving, self._content(moving, activity)[None]])
        bands = []
        for width in _BANDS:
            smooth = gaussian_filter(rest, (0, width, width))
            bands.append(rest - smooth)
            rest = smooth
        near = [
            _shifted(frame, *by) - scene.current
            for frame in (scene.current, scene.previous)
            for by in self._offer.neighbours
        ]
        return _Outlook(moving, activity, np.stack([*np.concatenate([*bands, rest]), *near]))

    def _foretell(self, outlook: _Outlook) -> Array:
        """The change (height, width) that the candidates amount to, before it is asked whether to believe it."""
        return self._trust.cells.weighted(outlook.candidates, self._weights)


def _mse(one: Array, other: Array) -> float:
    return float(np.mean((one - other) ** 2, dtype=np.float64))


def _shifted(frame: Array, down: int, right: int) -> Array:
    """The frame (height, width) with each pixel replaced by the one so far below and to the right of it."""
    height, width = frame.shape
    padded = np.pad(frame, 2, mode="edge")
    return padded[2 + down : 2 + down + height, 2 + right : 2 + right + width]
