"""Candidates for the change to the next frame: motion that goes on, memory of the past, neighbouring pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from psmt.types import Levels
from psmt.video.filtered_planes import filtered_change, filtered_update
from psmt.video.flow import flow_between, moved
from psmt.video.fourier_planes import Complex, FourierPlanes, LocalSpectra

PLANES = ((8, (0.0, 0.5)), (16, (0.5,)), (32, (0.5, 0.9)))
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

_BANDS = (0.8, 2.0)
"""Widths of the Gaussians in pixels that part a candidate into fine, middle and coarse detail."""

_CORED = 1.0
"""Width of the Gaussian in pixels over which a change is held against the noise of the frame."""


class Scene(NamedTuple):
    """What a prediction starts from. Nothing in it is ever changed in place, so that a rollout leaves no trace."""

    previous: Levels
    current: Levels
    """The last two frames."""
    age: int
    """Changes that were seen since the scene began."""
    spectra: tuple[LocalSpectra, ...]
    """For each size of tiles."""
    filtered: tuple[Complex, ...]
    """For each size of tiles: coefficients of the past that have turned along, averaged."""
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

    Attributes
    ----------
    moving_names : tuple of str
        What `moving` gives.
    names : tuple of str
        What `all_of` gives.
    """

    def __init__(self, shape: tuple[int, int], planes: tuple[tuple[int, tuple[float, ...]], ...]) -> None:
        self._planes = tuple(FourierPlanes(shape, size, memories) for size, memories in planes)
        self.rich = bool(planes)
        moving = ["last change"]
        moving += [f"planes {size}, memory {memory}" for size, memories in planes for memory in memories]
        moving += [f"filtered planes {size}" for size, _ in planes]
        bands = [f"{name}, band {band}" for band in range(len(_BANDS) + 1) for name in moving]
        if self.rich:
            moving_more = ["flow", "tracked mean"]
            bands = [f"{name}, band {band}" for band in range(len(_BANDS) + 1) for name in moving + moving_more]
            moving += moving_more
            cored = ["cored last change", *(f"cored filtered planes {size}" for size, _ in planes)]
            pixels = [f"{when} {by}" for when in ("pixel", "previous pixel") for by in NEIGHBOURS]
            older = [f"flow {k} ago" for k in range(1, FLOWS)] + [f"sway {k} ago" for k in range(FLOWS)]
            bands += [*(f"mean {kept}" for kept in MEANS), *older, *cored, *pixels]
        self.moving_names, self.names = tuple(moving), tuple(bands)

    def start(self, frame: Levels) -> Scene:
        """Return the scene of one frame (height, width): nothing is known of its motion."""
        spectra = tuple(planes.start(frame) for planes in self._planes)
        filtered = tuple(known.now for known in spectra)
        means = np.repeat(frame[None], len(MEANS), axis=0)
        still: Levels = np.zeros((FLOWS, 2, *frame.shape), np.float32)
        return Scene(frame, frame, 0, spectra, filtered, means, still, frame)

    def update(self, scene: Scene, frame: Levels, flow: Levels | None = None) -> Scene:
        """Return the scene after one more frame (height, width), and the flow to it where that is known already."""
        current = scene.current
        if not self.rich:
            return scene._replace(previous=current, current=frame, age=scene.age + 1)
        spectra = tuple(planes.update(old, frame) for planes, old in zip(self._planes, scene.spectra, strict=True))
        filtered = tuple(filtered_update(old, now) for old, now in zip(scene.filtered, spectra, strict=True))
        kept = np.array(MEANS, np.float32)[:, None, None]
        means = frame + kept * (scene.means - frame)
        flow = flow_between(current, frame) if flow is None else flow
        tracked = frame + np.float32(_TRACKED) * (moved(scene.tracked, flow) - frame)
        flows = np.concatenate([flow[None], scene.flows[:-1]])
        return Scene(current, frame, scene.age + 1, spectra, filtered, means, flows, tracked)

    @staticmethod
    def get_state(scene: Scene) -> dict[str, NDArray[Any]]:
        """Return the scene as arrays. What follows from them is left out."""
        frames = {name: getattr(scene, name).copy() for name in _SAVED}
        cross = {f"turns{k}": np.array(spectra.cross) for k, spectra in enumerate(scene.spectra)}
        filtered = {f"filtered{k}": values.copy() for k, values in enumerate(scene.filtered)}
        return {**frames, "age": np.array(scene.age), **cross, **filtered}

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> Scene:
        """Return the scene that `get_state` was given."""
        start = self.start(state["current"].copy())
        spectra = (now._replace(cross=tuple(state[f"turns{k}"])) for k, now in enumerate(start.spectra))
        return start._replace(
            **{name: state[name].copy() for name in _SAVED},
            age=int(state["age"]),
            spectra=tuple(spectra),
            filtered=tuple(state[f"filtered{k}"].copy() for k in range(len(start.spectra))),
        )

    def moving(self, scene: Scene) -> Levels:
        """Return changes (len(moving_names), height, width) that are predictions by themselves."""
        changes = [(scene.current - scene.previous)[None]]
        changes += [planes.changes(known) for planes, known in zip(self._planes, scene.spectra, strict=True)]
        if self.rich:
            along = [
                filtered_change(planes.tiling, old, known)
                for planes, old, known in zip(self._planes, scene.filtered, scene.spectra, strict=True)
            ]
            carried = [moved(frame, scene.flows[0]) - scene.current for frame in (scene.current, scene.tracked)]
            changes.append(np.stack([*along, *carried]))
        return np.concatenate(changes)

    def all_of(self, scene: Scene, moving: Levels) -> Levels:
        """All that is weighed by place (len(names), height, width).

        They are the given changes (len(moving_names), height, width), each in bands of detail (differences of
        Gaussians), and, beside planes, the memory of each pixel, the whole picture moved as it was in the last frames,
        the changes where they stand out from the noise, and the neighbouring pixels of the last two frames.
        """
        bands, changes = [], moving
        for width in _BANDS:
            smooth = gaussian_filter(changes, (0, width, width))
            bands.append(changes - smooth)
            changes = smooth
        if not self.rich:
            return np.concatenate([*bands, changes])
        current = scene.current
        slopes = np.stack([_shifted(current, *by) - _shifted(current, -by[0], -by[1]) for by in ((1, 0), (0, 1))])
        swayed = np.tensordot(np.float32(0.5) * scene.flows.mean(axis=(2, 3)), slopes, axes=1)
        older = np.stack([moved(current, flow) - current for flow in scene.flows[1:]])
        first = len(moving) - 2 - len(self._planes)
        near = [_shifted(frame, *by) - current for frame in (current, scene.previous) for by in NEIGHBOURS]
        cored = _cored(moving[[0, *range(first, len(moving) - 2)]])
        return np.concatenate([*bands, changes, scene.means - current, older, swayed, cored, near])


_SAVED = ("previous", "current", "means", "flows", "tracked")
"""Fields of a scene that are kept as they are."""


def _cored(changes: Levels) -> Levels:
    """Return the changes (n, height, width), weakened where they are below the energy of the first (coring).

    A small change is most often noise, a large one motion: which, no weight of a whole cell can tell.
    """
    energy = gaussian_filter(changes**2, (0, _CORED, _CORED))
    noise = np.float32(np.mean(changes[0] ** 2) + 1e-30)
    cored: Levels = changes * (energy / (energy + noise))
    return cored


def _shifted(frame: Levels, down: int, right: int) -> Levels:
    """Return the frame (height, width) with each pixel replaced by the one so far below and to the right of it."""
    height, width = frame.shape
    padded = np.pad(frame, 2, mode="edge")
    return padded[2 + down : 2 + down + height, 2 + right : 2 + right + width]
