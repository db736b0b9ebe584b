"""Candidates for the change to the next frame: motion that goes on, memory of the past, neighbouring pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from psmt.engines import engine_for
from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.namespace import array_namespace
from psmt.persistence.schema import Field, counter
from psmt.types import Levels
from psmt.video.checks import FRAME_FIELD
from psmt.video.fourier_planes import FourierPlanes, LocalSpectra

PLANES = ((9, (0.5, 0.97)), (36, (0.95,)))
"""Sizes of tiles, and for each the memories of the turn. Small tiles follow small things, large ones fast motion."""

NEIGHBOURS = tuple((i, j) for i in range(-2, 3) for j in range(-2, 3) if 0 < abs(i) + abs(j) <= 2)
"""Offsets (down, right) of the pixels whose levels are candidates themselves."""

MEANS = (0.5, 0.8, 0.95)
"""How much of the past the running means of each pixel keep per frame: where nothing moves, noise averages out."""

_TRACKED = 0.7
"""The same for the running mean that is carried along by the flow."""

FLOWS = 4
"""Frames whose flow is remembered: what walks or swings does not move as it did a frame ago.

The mean of each moves the whole picture: a camera that was shaken swings back."""

_FARTHEST = 1e4
"""Pixels that nothing moves from one frame to the next; flows that are found go a few dozen."""

BANDS = (0.8, 2.0)
"""Widths of the Gaussians in pixels that part a candidate into fine, middle and coarse detail."""


class Scene(NamedTuple):
    """What a prediction starts from. Nothing in it is ever changed in place, so that a rollout leaves no trace."""

    previous: Levels
    current: Levels
    """The last two frames."""
    age: int
    """Changes that were seen since the scene began."""
    spectra: tuple[LocalSpectra, ...]
    """For each size of tiles."""
    means: Levels
    """Running means (n, height, width) of each pixel."""
    flows: Levels
    """Where each pixel came from in the last frames (FLOWS, 2, height, width), as `flow_between` gives it, the latest
    first."""
    tracked: Levels
    """The running mean (height, width) of the past along the flow."""


class Candidates:
    """Candidate changes of a scene.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    planes : tuple of (size, memories)
        As in `FourierPlanes`. Without any, the last change is the only candidate.
    kernels : FrameKernels, optional
        Of the device that the frames are on; by default the CPU's.

    Attributes
    ----------
    moving_names : tuple of str
        The first that `look_ahead` gives.
    names : tuple of str
        The second.
    n_seen : int
        How many of these come first that a network is to see: all in bands, and the running means.
    flow : callable
        As `FrameKernels.flow`.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        planes: tuple[tuple[int, tuple[float, ...]], ...],
        kernels: FrameKernels | None = None,
    ) -> None:
        self._kernels = kernels or engine_for("cpu").frames
        self._planes = tuple(FourierPlanes(shape, size, memories, self._kernels) for size, memories in planes)
        self._kept = self._kernels.levels(MEANS)[:, None, None]
        self.flow, self._seen = self._kernels.capture(self._kernels.flow), self._kernels.capture(self._see)
        self.rich = bool(planes)
        moving = ["last change"]
        for size, memories in planes:
            moving += [f"planes {size}, memory {memory}" for memory in memories]
        bands = [f"{name}, band {band}" for band in range(len(BANDS) + 1) for name in moving]
        if self.rich:
            moving_more = ["flow", "tracked mean"]
            bands = [f"{name}, band {band}" for band in range(len(BANDS) + 1) for name in moving + moving_more]
            moving += moving_more
            pixels = [f"{when} {by}" for when in ("pixel", "previous pixel") for by in NEIGHBOURS]
            older = [f"flow {k} ago" for k in range(1, FLOWS)] + [f"sway {k} ago" for k in range(FLOWS)]
            bands += [*(f"mean {kept}" for kept in MEANS), *older, *pixels]
        self.moving_names, self.names = tuple(moving), tuple(bands)
        self.n_seen = (len(BANDS) + 1) * len(moving) + len(MEANS)

    def start(self, frame: Levels) -> Scene:
        """Return the scene of one frame (height, width): nothing is known of its motion."""
        spectra = tuple(planes.start(frame) for planes in self._planes)
        means = array_namespace(frame).stack([frame] * len(MEANS))
        still = self._kernels.levels(np.zeros((FLOWS, 2, *frame.shape)))
        return Scene(frame, frame, 0, spectra, means, still, frame)

    def see(self, scene: Scene, frame: Levels, flow: Levels | None = None) -> tuple[Scene, Levels, Levels]:
        """Return the scene after one more frame (height, width), and what `look_ahead` finds in it.

        The `flow` to the frame may be known already.
        """
        # The age is left out of what is captured: it is another one each time.
        after, moving, candidates = self._seen(scene._replace(age=0), frame, flow)
        return after._replace(age=scene.age + 1), moving, candidates

    def _see(self, scene: Scene, frame: Levels, flow: Levels | None) -> tuple[Scene, Levels, Levels]:
        after = self.update(scene, frame, flow)
        return after, *self.look_ahead(after)

    def update(self, scene: Scene, frame: Levels, flow: Levels | None = None) -> Scene:
        """Return the scene after one more frame (height, width) alone."""
        if not self.rich:
            return scene._replace(previous=scene.current, current=frame, age=scene.age + 1)
        if flow is None:
            flow = self._kernels.flow(scene.current, frame)
        *spectra, (means, tracked) = self._kernels.together(
            *(partial(planes.update, known, frame) for planes, known in zip(self._planes, scene.spectra, strict=True)),
            partial(self._average, scene, frame, flow),
        )
        flows = array_namespace(flow).concat([flow[None], scene.flows[:-1]])
        return Scene(scene.current, frame, scene.age + 1, tuple(spectra), means, flows, tracked)

    def _average(self, scene: Scene, frame: Levels, flow: Levels) -> tuple[Levels, Levels]:
        """Running means, standing still and along the flow, after one more frame."""
        means = frame + self._kept * (scene.means - frame)
        return means, frame + _TRACKED * (self._kernels.moved(scene.tracked, flow) - frame)

    def get_state(self, scene: Scene) -> dict[str, NDArray[Any]]:
        """Return the scene as arrays. What follows from them is left out."""
        host = self._kernels.numpy
        frames = {name: host(getattr(scene, name)).copy() for name in _SAVED}
        cross = {f"turns{k}": np.array([*map(host, spectra.cross)]) for k, spectra in enumerate(scene.spectra)}
        return {**frames, "age": np.array(scene.age), **cross}

    @staticmethod
    def schema(shape: tuple[int, int], planes: tuple[tuple[int, tuple[float, ...]], ...]) -> dict[str, Field]:
        """What `get_state` gives for frames of this shape."""
        frame = FRAME_FIELD._replace(shape=shape)
        flows = Field((FLOWS, 2, *shape), "float32", -_FARTHEST, _FARTHEST)
        fields = {
            "previous": frame,
            "current": frame,
            "means": frame._replace(shape=(len(MEANS), *shape)),
            "flows": flows,
            "tracked": frame,
            "age": counter(),
        }
        for k, (size, memories) in enumerate(planes):
            now = FourierPlanes.coefficients_field(shape, size)
            fields[f"turns{k}"] = now._replace(shape=(len(memories), *now.shape))
        return fields

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> Scene:
        """Return the scene that `get_state` was given."""
        own = self._kernels.levels
        start = self.start(own(state["current"].copy()))
        spectra = (now._replace(cross=(*map(own, state[f"turns{k}"]),)) for k, now in enumerate(start.spectra))
        return start._replace(
            **{name: own(state[name].copy()) for name in _SAVED},
            age=int(state["age"]),
            spectra=tuple(spectra),
        )

    def look_ahead(self, scene: Scene) -> tuple[Levels, Levels]:
        """Return changes that are predictions by themselves, and all that is weighed by place.

        (len(moving_names), height, width) and (len(names), height, width). The latter are the former, each in bands of
        detail (differences of Gaussians), and, beside planes, the memory of each pixel, the picture moved as it was in
        the last frames, and the neighbouring pixels of the last two frames.
        """
        current = scene.current
        moving, candidates = (room(current, len(names)) for names in (self.moving_names, self.names))
        moving[0] = current - scene.previous
        n_bands = len(BANDS) + 1
        parts: list[Callable[[], None]] = [
            partial(self._turn_on, k, scene, moving) for k in reversed(range(len(self._planes)))
        ]
        if self.rich:
            carried = ((current, moving[-2]), (scene.tracked, moving[-1]))
            parts += [partial(self._carry, frame, scene.flows[0], current, change) for frame, change in carried]
            parts += self._others(scene, candidates[n_bands * len(moving) :])
        self._kernels.together(*parts)
        bands = candidates[: n_bands * len(moving)].reshape(n_bands, *moving.shape)
        self._kernels.bands(moving, BANDS, bands)
        return moving, candidates

    def _turn_on(self, k: int, scene: Scene, moving: Levels) -> None:
        """Fill the changes that the planes of one size of tiles give."""
        changes = self._planes[k].changes(scene.spectra[k])
        first = 1 + sum(len(planes.memories) for planes in self._planes[:k])
        moving[first : first + len(changes)] = changes

    def _carry(self, frame: Levels, flow: Levels, current: Levels, change: Levels) -> None:
        """Fill the change (height, width) to a frame that is moved along a flow."""
        change[...] = self._kernels.moved(frame, flow) - current

    def _others(self, scene: Scene, found: Levels) -> list[Callable[[], None]]:
        """Work that fills all that comes in no bands: running means, motions of the past, neighbouring pixels."""
        current, flows = scene.current, scene.flows
        ends = np.cumsum([len(MEANS), FLOWS - 1, FLOWS, len(NEIGHBOURS), len(NEIGHBOURS)]).tolist()
        means, older, swayed, *near = (found[first:last] for first, last in zip([0, *ends], ends, strict=False))
        work = [
            partial(self._carry, current, flow, current, change) for flow, change in zip(flows[1:], older, strict=True)
        ]
        work += [
            partial(self._kernels.neighbours, frame, NEIGHBOURS, current, pixels)
            for frame, pixels in zip((current, scene.previous), near, strict=True)
        ]
        return [*work, partial(self._remember, scene, means, swayed)]

    def _remember(self, scene: Scene, means: Levels, swayed: Levels) -> None:
        """Fill the changes to the running means, and the picture as the mean motion of the last frames shifts it."""
        current = scene.current
        means[...] = scene.means - current
        # Each pixel's neighbours below and to the right, less those above and to the left.
        sides = room(current, 4)
        self._kernels.neighbours(current, ((1, 0), (0, 1), (-1, 0), (0, -1)), current, sides)
        slopes = (sides[:2] - sides[2:]).reshape(2, -1)
        swayed[...] = (0.5 * scene.flows.mean(axis=(2, 3)) @ slopes).reshape(swayed.shape)


def room(frame: Levels, n: int) -> Levels:
    """An array for n maps as large as a frame: what is written where it is needed is not copied there."""
    return cast(Levels, array_namespace(frame).empty((n, *frame.shape), dtype=frame.dtype, device=frame.device))


_SAVED = ("previous", "current", "means", "flows", "tracked")
"""Fields of a scene that are kept as they are."""
