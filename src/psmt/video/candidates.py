"""Candidates: predictions of the change to the next frame, from motion, running means and neighbouring pixels.

Some candidates continue motion by phases, as follows. A frame is divided into overlapping tiles. If the content of a
tile shifts, each of its Fourier coefficients rotates by an angle, which is the phase of the cross-spectrum of the last
two frames. Rotating the coefficients by the same angle once more continues the motion. One cross-spectrum is noisy, so
an exponentially weighted sum over past frames is used. The tiles of one size are called planes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from psmt.engines import engine_for
from psmt.engines.frame_kernels import Complex, FrameKernels, Tiles
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import Field, State, counter
from psmt.types import Levels
from psmt.video.state import FRAME_FIELD, from_array, to_array

Planes = tuple[tuple[int, tuple[float, ...]], ...]
"""Pairs of a tile size and its memories. A memory in [0, 1) is the fraction of past cross-spectra kept per frame."""

PLANES: Planes = ((9, (0.5, 0.97)), (36, (0.95,)))  # small tiles follow small objects, large ones fast motion
NEIGHBOURS = tuple((i, j) for i in range(-2, 3) for j in range(-2, 3) if 0 < abs(i) + abs(j) <= 2)  # (down, right)
MEANS = (0.5, 0.8, 0.95)  # share of the past that each running mean keeps per frame; they average out noise
FLOWS = 4  # number of latest flows that are kept: an object that swings repeats its motion of a few frames ago
BANDS = (0.8, 2.0)  # widths in pixels of the Gaussians that split a candidate into fine, middle and coarse detail
TRACKED = 0.7  # share of the past that the running mean along the flow keeps per frame
_FARTHEST = 1e4  # largest flow in a saved model, in pixels; estimated flows are at most a few dozen


class LocalSpectra(NamedTuple):
    """Fourier coefficients of all tiles of one size."""

    now: Complex  # of the latest frame (rows, columns, size, size // 2 + 1)
    cross: tuple[Complex, ...]  # for each memory the exponentially weighted sum of ``c_t * conj(c_(t-1))``


class Scene(NamedTuple):
    """State of a film since its last cut, from which rollouts start. It is never modified in place."""

    previous: Levels
    current: Levels
    age: int  # number of changes seen since the scene began
    spectra: tuple[LocalSpectra, ...]  # for each size of tiles
    means: Levels  # running means (n, height, width) of each pixel
    flows: Levels  # where each pixel came from in the last frames (FLOWS, 2, height, width), the latest first
    tracked: Levels  # running mean (height, width) along the flow


class CandidateGroup(NamedTuple):
    """Group of candidates (predicted changes) that are computed together."""

    names: tuple[str, ...]
    fill: Callable[[Scene, Levels], None]  # writes the changes of a scene into an array (len(names), height, width)


class Candidates:
    """Computes the candidates (predicted changes) of a scene. To add one, add a line to `_predictions` or `_others`.

    Some candidates are bands of detail (fine, middle, coarse) of complete predictions such as optical flow. The names
    of the complete predictions are `moving_names`. Other candidates are not split into bands. `names` are the names of
    all candidates. The correction network sees the first `n_network_inputs` of them: all bands and the running means.
    If `planes` is empty, the last change is the only complete prediction, and there are no other candidates.

    Sides of tiles are multiples of 3, because neighbouring tiles are a third of a side apart. If they were farther
    apart, squared Hann windows would not add up to a constant.
    """

    def __init__(self, shape: tuple[int, int], planes: Planes, kernels: FrameKernels | None = None) -> None:
        self._kernels = kernels or engine_for("cpu").frames
        self._planes = tuple((_tiles(shape, size), memories) for size, memories in planes)
        self._kept = self._kernels.levels(MEANS)[:, None, None]
        self.flow, self._seen = self._kernels.capture(self._kernels.flow), self._kernels.capture(self._see)
        self.rich = bool(planes)
        self._moving_groups, self._other_groups = tuple(self._predictions()), tuple(self._others())
        self.moving_names = tuple(name for group in self._moving_groups for name in group.names)
        in_bands = (f"{name}, band {band}" for band in range(len(BANDS) + 1) for name in self.moving_names)
        self.names = (*in_bands, *(name for group in self._other_groups for name in group.names))
        self.n_network_inputs = (len(BANDS) + 1) * len(self.moving_names) + len(MEANS)

    # The candidates

    def _predictions(self) -> Iterator[CandidateGroup]:
        """Yield the groups of complete predictions, which are split into bands of detail later."""
        yield CandidateGroup(("last change",), self._last_change)
        for k, (tiles, memories) in enumerate(self._planes):
            names = tuple(f"planes {tiles.size}, memory {memory}" for memory in memories)
            yield CandidateGroup(names, partial(self._phase_advance, k))
        if self.rich:
            yield CandidateGroup(("flow",), partial(self._along_flow, 0))
            yield CandidateGroup(("tracked mean",), self._tracked_mean)

    def _others(self) -> Iterator[CandidateGroup]:
        """Yield the groups that are not split into bands. The running means, which the network uses, come first."""
        if self.rich:
            yield CandidateGroup(tuple(f"mean {kept}" for kept in MEANS), self._running_means)
            for k in range(1, FLOWS):
                yield CandidateGroup((f"flow {k} ago",), partial(self._along_flow, k))
            yield CandidateGroup(tuple(f"sway {k} ago" for k in range(FLOWS)), self._sway)
            yield CandidateGroup(tuple(f"pixel {by}" for by in NEIGHBOURS), self._neighbours)
            yield CandidateGroup(tuple(f"previous pixel {by}" for by in NEIGHBOURS), self._previous_neighbours)

    def _last_change(self, scene: Scene, out: Levels) -> None:
        out[0] = scene.current - scene.previous

    def _phase_advance(self, k: int, scene: Scene, out: Levels) -> None:
        out[...] = self._kernels.advanced(*scene.spectra[k], self._planes[k][0])

    def _along_flow(self, k: int, scene: Scene, out: Levels) -> None:
        out[0] = self._kernels.moved(scene.current, scene.flows[k]) - scene.current

    def _tracked_mean(self, scene: Scene, out: Levels) -> None:
        out[0] = self._kernels.moved(scene.tracked, scene.flows[0]) - scene.current

    def _running_means(self, scene: Scene, out: Levels) -> None:
        out[...] = scene.means - scene.current

    def _sway(self, scene: Scene, out: Levels) -> None:
        """For each of the latest flows, write the first-order change of a picture that moves by the mean flow."""
        # Slopes are differences of neighbours: below minus above, right minus left.
        sides = room(scene.current, 4)
        self._kernels.neighbours(scene.current, ((1, 0), (0, 1), (-1, 0), (0, -1)), scene.current, sides)
        slopes = (sides[:2] - sides[2:]).reshape(2, -1)
        out[...] = (0.5 * scene.flows.mean(axis=(2, 3)) @ slopes).reshape(out.shape)

    def _neighbours(self, scene: Scene, out: Levels) -> None:
        self._kernels.neighbours(scene.current, NEIGHBOURS, scene.current, out)

    def _previous_neighbours(self, scene: Scene, out: Levels) -> None:
        self._kernels.neighbours(scene.previous, NEIGHBOURS, scene.current, out)

    # The scene

    def start(self, frame: Levels) -> Scene:
        """Return the scene that begins with a frame (height, width), without motion."""
        spectra = []
        for tiles, memories in self._planes:
            now = self._kernels.spectra(frame, tiles)
            spectra.append(LocalSpectra(now, tuple(0 * now for _ in memories)))
        means = array_namespace(frame).stack([frame] * len(MEANS))
        flows = self._kernels.levels(np.zeros((FLOWS, 2, *frame.shape)))
        return Scene(frame, frame, 0, tuple(spectra), means, flows, frame)

    def see(self, scene: Scene, frame: Levels, flow: Levels | None = None) -> tuple[Scene, Levels, Levels]:
        """Return the scene after the next frame (height, width), and the two arrays of `look_ahead` for it.

        The optical `flow` to the frame is computed unless it is given.
        """
        # The age changes each time, so it is left out of what is captured.
        after, moving, candidates = self._seen(scene._replace(age=0), frame, flow)
        return after._replace(age=scene.age + 1), moving, candidates

    def _see(self, scene: Scene, frame: Levels, flow: Levels | None) -> tuple[Scene, Levels, Levels]:
        after = self.update(scene, frame, flow)
        return after, *self.look_ahead(after)

    def update(self, scene: Scene, frame: Levels, flow: Levels | None = None) -> Scene:
        """Return the scene after the next frame (height, width). No candidates are computed."""
        if not self.rich:
            return scene._replace(previous=scene.current, current=frame, age=scene.age + 1)
        if flow is None:
            flow = self._kernels.flow(scene.current, frame)
        *spectra, (means, tracked) = self._kernels.together(
            *(
                partial(self._kernels.next_spectra, frame, tiles, known.now, known.cross, memories)
                for (tiles, memories), known in zip(self._planes, scene.spectra, strict=True)
            ),
            partial(self._average, scene, frame, flow),
        )
        spectra = [LocalSpectra(*one) for one in spectra]
        flows = array_namespace(flow).concat([flow[None], scene.flows[:-1]])
        return Scene(scene.current, frame, scene.age + 1, tuple(spectra), means, flows, tracked)

    def _average(self, scene: Scene, frame: Levels, flow: Levels) -> tuple[Levels, Levels]:
        """Return all running means after the next frame: first those of each pixel, then that along the flow."""
        means = frame + self._kept * (scene.means - frame)
        return means, frame + TRACKED * (self._kernels.moved(scene.tracked, flow) - frame)

    def look_ahead(self, scene: Scene) -> tuple[Levels, Levels]:
        """Return the complete predictions and all candidates. Both arrays predict the change to the next frame.

        The shapes are (len(moving_names), height, width) and (len(names), height, width). The first candidates are the
        complete predictions, split into bands of detail by differences of Gaussians.
        """
        moving, candidates = (room(scene.current, len(names)) for names in (self.moving_names, self.names))
        n_bands = len(BANDS) + 1
        bands, others = candidates[: n_bands * len(moving)], candidates[n_bands * len(moving) :]
        self._kernels.together(*_fills(self._moving_groups, scene, moving), *_fills(self._other_groups, scene, others))
        self._kernels.bands(moving, BANDS, bands.reshape(n_bands, *moving.shape))
        return moving, candidates

    # Its state in files

    @staticmethod
    def schema(shape: tuple[int, int], planes: Planes) -> dict[str, Field]:
        """Return the schema of a saved scene: the shape, type and range of each array, for frames of this shape."""
        frame = FRAME_FIELD._replace(shape=shape)
        fields = {
            "previous": frame,
            "current": frame,
            "means": frame._replace(shape=(len(MEANS), *shape)),
            "flows": Field((FLOWS, 2, *shape), "float32", -_FARTHEST, _FARTHEST),
            "tracked": frame,
            "age": counter(),
        }
        for k, (size, memories) in enumerate(planes):
            layout = _tiles(shape, size).layout
            fields[f"turns{k}"] = Field((len(memories), *layout, size, size // 2 + 1), "complex64")
        return fields

    def get_state(self, scene: Scene) -> State:
        """Return the scene as arrays by name, from which `from_state` restores it."""
        fields = self.schema((0, 0), ())
        own = {name: to_array(self._kernels, field, getattr(scene, name)) for name, field in fields.items()}
        turns = (np.array([*map(self._kernels.numpy, spectra.cross)]) for spectra in scene.spectra)
        return own | {f"turns{k}": turn for k, turn in enumerate(turns)}

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> Scene:
        """Return the scene, given the arrays of `get_state`."""
        own = {name: from_array(self._kernels, field, state[name]) for name, field in self.schema((0, 0), ()).items()}
        start = self.start(own["current"])
        levels = self._kernels.levels
        spectra = (one._replace(cross=(*map(levels, state[f"turns{k}"]),)) for k, one in enumerate(start.spectra))
        return start._replace(**own, spectra=tuple(spectra))


def _tiles(shape: tuple[int, int], size: int) -> Tiles:
    return Tiles(shape, size, size // 3)


def _fills(groups: tuple[CandidateGroup, ...], scene: Scene, out: Levels) -> Iterator[Callable[[], None]]:
    """For each group, yield a function that writes its candidates to a part of `out` (n, height, width)."""
    first = 0
    for group in groups:
        yield partial(group.fill, scene, out[first : first + len(group.names)])
        first += len(group.names)


def room(frame: Levels, n: int) -> Levels:
    """Return an uninitialised array (n, height, width), on the same device as the frame (height, width)."""
    return cast(Levels, array_namespace(frame).empty((n, *frame.shape), dtype=frame.dtype, device=frame.device))


def mean_square(values: Levels) -> Levels:
    """Return the mean square as an array of shape (), which stays on the device of the values."""
    flat = values.reshape(-1)
    return cast(Levels, flat @ flat * (1.0 / len(flat)))
