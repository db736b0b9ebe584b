"""Candidates for the change to the next frame: phases that go on, the last change again, neighbouring pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmt.engines import engine_for
from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.namespace import array_namespace
from psmt.types import Levels
from psmt.video.fourier_planes import FourierPlanes, LocalSpectra

PLANES = ((8, (0.0, 0.5)), (16, (0.5,)), (32, (0.5, 0.9)))
"""Sizes of tiles, and for each the memories of the turn. Small tiles follow small things, large ones fast motion."""

NEIGHBOURS = tuple((i, j) for i in range(-2, 3) for j in range(-2, 3) if 0 < abs(i) + abs(j) <= 2)
"""Offsets (down, right) of the pixels whose levels are candidates themselves."""

_BANDS = (0.8, 2.0)
"""Widths of the Gaussians in pixels that part a candidate into fine, middle and coarse detail."""


class Scene(NamedTuple):
    """What a prediction starts from. Nothing in it is ever changed in place, so that a rollout leaves no trace."""

    previous: Levels
    current: Levels
    spectra: tuple[LocalSpectra, ...]
    """For each size of tiles."""


class Candidates:
    """Candidate changes of a scene.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    planes : tuple of (size, memories)
        As in `FourierPlanes`.
    neighbours : tuple of (down, right)
        Offsets of pixels.
    kernels : FrameKernels, optional
        Of the device that the frames are on; by default the CPU's.

    Attributes
    ----------
    n_moving, n_candidates : int
        How many `moving` and `all_of` give.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        planes: tuple[tuple[int, tuple[float, ...]], ...],
        neighbours: tuple[tuple[int, int], ...],
        kernels: FrameKernels | None = None,
    ) -> None:
        self._kernels = kernels or engine_for("cpu").frames
        self._planes = tuple(FourierPlanes(shape, size, memories, self._kernels) for size, memories in planes)
        self._neighbours = neighbours
        self.n_moving = 1 + sum(len(memories) for _, memories in planes)
        self.n_candidates = (self.n_moving + 1) * (len(_BANDS) + 1) + 2 * len(neighbours)

    def start(self, frame: Levels) -> Scene:
        """Return the scene of one frame (height, width): nothing is known of its motion."""
        return Scene(frame, frame, tuple(planes.start(frame) for planes in self._planes))

    def update(self, scene: Scene, frame: Levels) -> Scene:
        """Return the scene after one more frame (height, width)."""
        spectra = (planes.update(old, frame) for planes, old in zip(self._planes, scene.spectra, strict=True))
        return Scene(scene.current, frame, tuple(spectra))

    def get_state(self, scene: Scene) -> dict[str, NDArray[Any]]:
        """Return the scene as arrays. What follows from them is left out."""
        host = self._kernels.numpy
        cross = {f"turns{k}": np.array([*map(host, spectra.cross)]) for k, spectra in enumerate(scene.spectra)}
        return {"previous": host(scene.previous).copy(), "current": host(scene.current).copy(), **cross}

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> Scene:
        """Return the scene that `get_state` was given."""
        own = self._kernels.levels
        start = self.start(own(state["current"].copy()))
        spectra = (now._replace(cross=(*map(own, state[f"turns{k}"]),)) for k, now in enumerate(start.spectra))
        return Scene(own(state["previous"].copy()), start.current, tuple(spectra))

    def moving(self, scene: Scene) -> Levels:
        """Return changes (n_moving, height, width) by motion: the last one again, and all planes turned on."""
        turned = [planes.changes(known) for planes, known in zip(self._planes, scene.spectra, strict=True)]
        last = scene.current - scene.previous
        return array_namespace(last).concat([last[None], *turned])

    def all_of(self, scene: Scene, changes: Levels) -> Levels:
        """All that is weighed by place (n_candidates, height, width).

        They are the given changes (n_moving + 1, height, width), each in bands of detail (differences of Gaussians),
        and the neighbouring pixels of the last two frames.
        """
        near = [
            self._kernels.neighbours(frame, self._neighbours, scene.current)
            for frame in (scene.current, scene.previous)
        ]
        return array_namespace(changes).concat([*self._kernels.bands(changes, _BANDS), *near])
