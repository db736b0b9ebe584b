"""`FramePSMT`: whole frames, predicted as the last frame plus a change."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from psmt.coding import SparseCoder
from psmt.engines import engine_for
from psmt.numerics.namespace import array_namespace
from psmt.sources import FrameSource
from psmt.storage import damage_named, read_container, write_container
from psmt.surprise import CutDetector
from psmt.threads import one_blas_thread
from psmt.types import Array, Levels
from psmt.validation import Constraint, check_count, check_parameters, choice, count, real
from psmt.video.blending import CodeBlend, PlaceBlend, fit_tile_coder, tile_coder_of
from psmt.video.candidates import NEIGHBOURS, PLANES, Candidates, Scene
from psmt.video.checks import check_film, check_next_frame
from psmt.video.gating import LocalGain, restrained
from psmt.video.grid import Grid


class _Rule(NamedTuple):
    """What an extrapolation makes predictions from, besides the last change."""

    planes: tuple[tuple[int, tuple[float, ...]], ...] = ()
    neighbours: tuple[tuple[int, int], ...] = ()
    share: float | None = None
    """Of the last change, where nothing is learned and it is all there is."""


FRAME_EXTRAPOLATIONS = {
    "phase": _Rule(PLANES, NEIGHBOURS),
    "gain": _Rule(),
    "linear": _Rule(share=1.0),
    "hold": _Rule(share=0.0),
}
"""What `FramePSMT` knows, by name."""

_KEPT = 0.1
"""How much of what was learned of places counts after a sharp change."""

_FLOOR = 1e-6
"""Changes of less energy than this fraction of the variance over the picture are no scale to measure others by."""


class _Outlook(NamedTuple):
    """What a scene may turn into."""

    moving: Levels
    """Changes (n, height, width) by motion."""
    activity: Levels
    """Codes (rows, columns, n_atoms) of the cells."""
    candidates: Levels
    """All that is weighed by place (n_candidates, height, width)."""


class FramePSMT(BaseEstimator):
    """Whole-frame predictor: candidate changes, blended by recursive least squares; grey levels in, grey levels out.

    It shares two things with the model of the paper, `PSMT`: layer 1, whose sparse codes are one source of the weights,
    and the loop that predicts, receives and learns. It has no temporal embedding (layer 2) and nothing to recover from
    one: the next frame is the last one plus a blend of candidate changes. They come from local Fourier planes (tiles
    of three sizes, whose coefficients turn on by the phase step of the last frames), from the last change, and from
    the neighbouring pixels of the last two frames. What decides between them is learned, by least squares with
    exponential forgetting that go on while the film runs:

    - by code: sparse codes over one dictionary, with moments per atom that are pooled over all positions;
    - by place: moments per cell of 8 x 8 pixels, in three bands of detail, with the blend by code as one more
      candidate;
    - by record: a gain per cell in [0, 1], from predictions whose truth was not known yet. Where nothing has proved
      better, the last frame is copied.

    Calm frames count as much as lively ones in all this, and a change that is far livelier than the last one is
    weakened: motion may stop at once.

    What each part gives: MSE / copy of the next frame, mean of three stretches of a dashcam film at 100 x 100.

    ============================================================  =====
    all                                                           0.365
    without the blend by code                                     0.364
    without neighbouring pixels                                   0.394
    without neighbouring pixels and bands of detail               0.423
    without planes                                                0.459
    with planes of one size that turn as in the last step only    0.408
    one Fourier phase advance, nothing learned                    0.541
    ============================================================  =====

    So the planes and their blend by place do the work. The blend by code, which alone reaches 0.44, adds nothing beside
    the blend by place on this film, neither after a hundred frames nor after ten.

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
    device : str, default 'cpu'
        Where candidates are made and weighed: 'cpu', or 'cuda' for a GPU, as `psmt.engines.engine_for` knows it. Frames
        come from and go to the host either way.

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

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": count(),
        "alpha": real(open_bound=True),
        "extrapolation": choice(*FRAME_EXTRAPOLATIONS),
    }

    _scene: Scene
    _outlook: _Outlook | None
    """None where nothing is learned, or nothing is known of the scene's motion."""

    def __init__(
        self,
        *,
        n_atoms: int = 256,
        alpha: float = 0.2,
        extrapolation: str = "phase",
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
    ) -> None:
        self.n_atoms = n_atoms
        self.alpha = alpha
        self.extrapolation = extrapolation
        self.random_state = random_state
        self.device = device

    # Predict, receive, learn

    def fit(self, frames: ArrayLike | FrameSource, y: object = None) -> Self:
        """Learn from the past frames (time, height, width), at least two; or from all frames of `psmt.open_frames`."""
        check_parameters(self, self._parameter_constraints)
        kernels = engine_for(self.device).frames
        past = check_film(frames, minimum=2)
        _, height, width = past.shape
        grid, rng = Grid((height, width), kernels), check_random_state(self.random_state)
        coder, scale = None, 1.0
        if FRAME_EXTRAPOLATIONS[self.extrapolation].share is None:
            coder, scale = fit_tile_coder(past, grid, n_atoms=self.n_atoms, alpha=self.alpha, rng=rng)
        self._assemble(grid, coder, scale, past[0].copy())
        with one_blas_thread():
            for frame in past[1:]:
                self._receive(frame.copy())
        return self

    def update(self, frame: ArrayLike) -> Self:
        """Receive the frame (height, width) that came next."""
        check_is_fitted(self, "shape_")
        received = check_next_frame(frame, self.shape_)
        with one_blas_thread():
            # The caller may read the next frame into the same array.
            self._receive(received.copy())
        return self

    def predict(self, horizon: int | None = None) -> Levels:
        """Return the next frame (height, width), or with a `horizon` the next frames (horizon, height, width).

        Frames beyond the first are predicted from the predictions before them. Levels stay in the range seen so far,
        but for 'linear'.
        """
        check_is_fitted(self, "shape_")
        n_steps = 1 if horizon is None else check_count("horizon", horizon)
        frames = [self._grid.kernels.numpy(frame) for frame in self._next_frames(n_steps)]
        return frames[0] if horizon is None else np.stack(frames)

    def _next_frames(self, n_steps: int) -> list[Levels]:
        """Return the next frames, on the device."""
        return self._rolled(n_steps) if self._share is None else self._straight(self._share, n_steps)

    def _straight(self, share: float, n_steps: int) -> list[Levels]:
        """Return the next frames if each differs from the one before by the same share of the last change."""
        step = share * (self._scene.current - self._scene.previous)
        return [self._scene.current + k * step for k in range(1, n_steps + 1)]

    def _rolled(self, n_steps: int) -> list[Levels]:
        """Return the next frames by what was learned, each from those before it."""
        scene, change = self._scene, self._change
        believed = gains = self._local_gain.gains()
        frames: list[Levels] = []
        for step in range(n_steps):
            if step:
                scene = self._candidates.update(scene, frames[-1])
                with one_blas_thread():
                    change = self._blended(self._look_ahead(scene))
                # What follows from a prediction is believed as far as the prediction itself, and then by its own gain.
                believed = believed * gains
            step_taken = self._grid.weighted(change[None], believed)
            step_taken = restrained(self._grid, step_taken, scene.current - scene.previous)
            frames.append((scene.current + step_taken).clip(self._low, self._high))
        return frames

    # What it has learned

    @property
    def dictionary_(self) -> Array:
        """Atoms (n_atoms, 256) of layer 1: tiles of 16 x 16 pixels under a window."""
        check_is_fitted(self, "shape_")
        if self._by_code is None:
            raise AttributeError(
                f"extrapolation={self.extrapolation!r} has no dictionary; 'phase' and 'gain' learn one"
            )
        return self._by_code.coder.dictionary_

    @property
    def surprise_(self) -> float:
        """How badly the last prediction failed, in units of what is usual."""
        check_is_fitted(self, "shape_")
        return self._cut_detector.surprise

    @property
    def cut_(self) -> bool:
        """Whether the last frame was taken as a sharp change."""
        check_is_fitted(self, "shape_")
        return self._cut_detector.cut

    # Keeping it

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, whole or not at all. No pickle: a file holds arrays and JSON only."""
        # A generator object is no parameter that JSON holds, and its state plays no part any more.
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        header = {"parameters": self.get_params() | {"random_state": seed}}
        write_container(path, type(self).__name__, header, self.get_state())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the model that `save` wrote; it goes on as that one does, bit for bit."""
        header, arrays = read_container(path, cls.__name__)
        with damage_named(path):
            if "scale" in header:  # where files of psmt 0.1.0 keep it
                arrays["scale"] = np.array(float(header["scale"]))
            return cls(**header["parameters"]).set_state(arrays)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of all that goes on from frame to frame, as arrays. What follows from it is left out."""
        check_is_fitted(self, "shape_")
        coder: dict[str, NDArray[Any]] = {}
        if self._by_code is not None:
            coder = {"dictionary": self.dictionary_, "scale": np.array(self._by_code.scale)}
        return {
            **coder,
            "levels": np.array([self._low, self._high]),
            "looks_ahead": np.array(int(self._outlook is not None)),
            **self._candidates.get_state(self._scene),
            **{f"{name}.{key}": value for name, part in self._parts.items() for key, value in part.get_state().items()},
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Go on as the model with the same parameters that gave this state, bit for bit."""
        check_parameters(self, self._parameter_constraints)
        for key, value in state.items():
            if value.dtype.kind not in "ifc" or not np.isfinite(value).all():
                raise ValueError(f"{key} holds something else than finite numbers")
        height, width = state["current"].shape
        coder, scale = None, 1.0
        if FRAME_EXTRAPOLATIONS[self.extrapolation].share is None:
            coder, scale = tile_coder_of(state["dictionary"], self.alpha), float(state["scale"])
        kernels = engine_for(self.device).frames
        self._assemble(Grid((height, width), kernels), coder, scale, state["current"])
        for key, present in self.get_state().items():
            if (state[key].shape, state[key].dtype) != (present.shape, present.dtype):
                raise ValueError(f"{key} is {state[key].dtype} {state[key].shape}, not {present.dtype} {present.shape}")
        for name, part in self._parts.items():
            part.set_state({key: state[f"{name}.{key}"] for key in part.get_state()})
        self._low, self._high = state["levels"].tolist()
        self._scene = self._candidates.from_state(state)
        if state["looks_ahead"]:
            with one_blas_thread():
                self._prepare()
        return self

    @property
    def _parts(self) -> dict[str, CodeBlend | PlaceBlend | LocalGain | CutDetector]:
        """All that learns, by the names that files know it under."""
        by_code = {} if self._by_code is None else {"content": self._by_code}
        return {**by_code, "places": self._by_place, "trust": self._local_gain, "surprise": self._cut_detector}

    # Inside

    def _assemble(self, grid: Grid, coder: SparseCoder | None, scale: float, frame: Levels) -> None:
        """Put the parts together, which have learned nothing yet, before a first frame (height, width).

        There is a coder where something is learned.
        """
        rule = FRAME_EXTRAPOLATIONS[self.extrapolation]
        self.shape_ = grid.shape
        self._grid, self._share = grid, rule.share
        self._low, self._high = float(frame.min()), float(frame.max())
        self._candidates = Candidates(grid.shape, rule.planes, rule.neighbours, grid.kernels)
        self._by_code = None if coder is None else CodeBlend(grid, self._candidates.n_moving, coder, scale)
        self._by_place = PlaceBlend(grid, self._candidates.n_candidates)
        self._local_gain = LocalGain(grid)
        self._cut_detector = CutDetector()
        self._begin(grid.kernels.levels(frame))

    def _begin(self, frame: Levels) -> None:
        """Start from one frame, on the device: nothing is known of its motion."""
        self._scene = self._candidates.start(frame)
        self._outlook = None
        self._change: Levels = 0 * frame
        self._weights: Levels = 0 * self._by_place.match

    def _receive(self, frame: Levels) -> None:
        """Score what was predicted, learn from what came, and look ahead."""
        now, last = self._grid.kernels.levels(frame), self._scene.current
        contrast = max(_mean_square(shown - shown.mean()) for shown in (last, now))
        copy_error = _mean_square(now - last)
        self._cut_detector.observe(_mean_square(self._next_frames(1)[0] - now), copy_error, contrast)
        self._low, self._high = min(self._low, float(now.min())), max(self._high, float(now.max()))
        if self.cut_:
            self._by_place.forget(_KEPT)
            self._local_gain.clear()
            self._begin(now)
            return
        # Calm frames count as much as lively ones, or these would still rule long after the motion has stopped. That a
        # frame is calmer than the one before may be a stutter, which says little.
        energy = max(_mean_square(last - self._scene.previous), copy_error, _FLOOR * contrast)
        if self._by_code is not None and self._outlook is not None and energy > 0:
            unit = energy**-0.5
            change = now - last
            self._local_gain.learn(unit * self._change, unit * change)
            self._by_code.learn(unit * self._outlook.moving, unit * change, self._outlook.activity)
            self._by_place.learn(self._outlook.candidates, change, 1 / energy)
        self._scene = self._candidates.update(self._scene, now)
        if self._by_code is not None:
            self._prepare()

    def _prepare(self) -> None:
        """Find what the scene may turn into, and weigh it."""
        self._outlook = self._look_ahead(self._scene)
        self._weights = self._by_place.weights()
        self._change = self._blended(self._outlook)

    def _look_ahead(self, scene: Scene) -> _Outlook:
        """All that the scene may turn into, where anything is learned."""
        assert self._by_code is not None
        moving = self._candidates.moving(scene)
        activity = self._by_code.activity(scene.current)
        changes = array_namespace(moving).concat([moving, self._by_code.blend(moving, activity)[None]])
        return _Outlook(moving, activity, self._candidates.all_of(scene, changes))

    def _blended(self, outlook: _Outlook) -> Levels:
        """Return the change (height, width) that the candidates amount to, before it is asked whether to believe it."""
        return self._grid.weighted(outlook.candidates, self._weights)


def _mean_square(values: Levels) -> float:
    """Mean of the squares of a map, on any device."""
    return float((values * values).mean())
