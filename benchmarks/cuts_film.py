"""A made-up film with cuts and fast pans at known frames."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from psmt.data.contract import BuiltinFilm, Frame, channels, check_integers, check_stop
from psmt.data.synthetic.glide import LARGEST, NOISIEST, WORLD, GlideMotion, view
from psmt.types import Ints

VERSION = 1  # part of the checksum; increase it when any frame changes
WORLDS = 3  # a cut shows another world, or another place of the same world
LEAD = 60  # frames before the first event
PAUSE = (24, 48)  # frames from one event to the next
CALM = (0.1, 1.0)  # frame pixels per frame between events
PAN = (0.04, 0.15)  # of the width of the frame, per frame
PAN_LENGTH = (6, 16)  # frames
PAN_RAMP = 3  # frames in which a pan accelerates and brakes; every other pan starts and stops abruptly
ZOOM = (1.05, 1.5)
ANGLE = 0.3  # radians either way


class _Plan(NamedTuple):
    """Position of the camera in each frame, and the events."""

    motion: GlideMotion
    worlds: Ints
    cuts: Ints
    pans: Ints


@dataclass(frozen=True, kw_only=True)
class CutsFilm(BuiltinFilm):
    """Calm views of fallen leaves, with cuts and fast pans between them in random order.

    A cut jumps to another place. A pan moves the camera there, so fast that 4 to 15% of the picture is new in each
    frame. Half of the pans start and stop abruptly.

    Parameters
    ----------
    n_cuts, n_pans : int
        Number of cuts and pans.
    seed : int
        Seed of leaves, places, order and noise.
    noise : float
        Standard deviation of Gaussian noise relative to the contrast of patches, 0 to 2.
    size : int
        Height and width of the frames, 8 to 400.
    n_frames : int, optional
        Length of the film in frames. None gives a film with all cuts and pans.

    Examples
    --------
    >>> from benchmarks.cuts_film import CutsFilm
    >>> film = CutsFilm(n_cuts=2, n_pans=2)
    >>> len(film.cuts), film.pans.shape
    (2, (2, 2))
    """

    n_cuts: int = 100
    n_pans: int = 100
    seed: int = 0
    noise: float = 0.05
    size: int = 100
    n_frames: int | None = None
    name: str = field(default="cuts", init=False)

    def __post_init__(self) -> None:
        check_integers(self, n_cuts=(0, 10_000), n_pans=(0, 10_000), seed=(0,), size=(8, LARGEST))
        if not 0 <= self.noise <= NOISIEST:
            raise ValueError(f"noise={self.noise!r} is out of range; use a fraction of the contrast, 0 to {NOISIEST:g}")
        check_stop(self.n_frames)
        length = len(self._plan.motion)
        object.__setattr__(self, "n_frames", length if self.n_frames is None else min(self.n_frames, length))
        super().__post_init__()

    @property
    def cuts(self) -> Ints:
        """Index (n,) of the first frame after each cut."""
        return self._plan.cuts[self._plan.cuts < (self.n_frames or 0)]

    @property
    def pans(self) -> Ints:
        """Indices (n, 2) of the first and last frame of each fast pan."""
        return self._plan.pans[self._plan.pans[:, 0] < (self.n_frames or 0)]

    def checksum(self) -> str:
        """Return the sha256 of the film's parameters and the version of the generator."""
        given = (self.n_cuts, self.n_pans, self.seed, float(self.noise), self.size, self.n_frames)
        return hashlib.sha256(f"cuts {VERSION} {given!r}".encode()).hexdigest()

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        plan = self._plan
        for index in range(self.n_frames or 0):
            rng = np.random.default_rng((self.seed, 5, index)) if self.noise else None
            frame = view(int(plan.worlds[index]), plan.motion, index, noise=self.noise, rng=rng)
            yield channels(frame, colour=colour)

    @property
    def _plan(self) -> _Plan:
        return _planned(self.n_cuts, self.n_pans, self.seed, self.size)


@lru_cache(maxsize=4)
def _planned(n_cuts: int, n_pans: int, seed: int, size: int) -> _Plan:
    """Draw the events and the path of the camera."""
    rng = np.random.default_rng((seed, 4))
    kinds = rng.permutation(np.repeat([True, False], [n_cuts, n_pans]))
    world, place = seed, rng.uniform(0, WORLD, 2)
    zoom, angle = rng.uniform(*ZOOM), rng.uniform(-ANGLE, ANGLE)
    heading, speed = rng.uniform(0, 2 * np.pi), rng.uniform(*CALM)
    rows: list[tuple[float, float, float, float, float, int]] = []
    cuts: list[int] = []
    pans: list[tuple[int, int]] = []

    def move(speeds: list[float]) -> None:
        nonlocal place
        for step in speeds:
            place = place + step / zoom * np.array([np.sin(heading), np.cos(heading)])
            rows.append((*place, zoom, angle, step, world))

    move([speed] * LEAD)
    for k, is_cut in enumerate(kinds):
        if is_cut:
            # The next place is in another world, or on the other side of this one.
            world = seed + int(rng.integers(WORLDS))
            place = place + rng.uniform(0.3, 0.7, 2) * WORLD
            zoom, angle = rng.uniform(*ZOOM), rng.uniform(-ANGLE, ANGLE)
            cuts.append(len(rows))
        else:
            heading = rng.uniform(0, 2 * np.pi)
            fast, n = rng.uniform(*PAN) * size, int(rng.integers(*PAN_LENGTH, endpoint=True))
            ramp = np.ones(n)
            if k % 2:
                up = np.arange(1, n + 1) / (PAN_RAMP + 1)
                ramp = np.minimum(1.0, np.minimum(up, up[::-1]))
            pans.append((len(rows), len(rows) + n - 1))
            move((fast * ramp).tolist())
        heading, speed = rng.uniform(0, 2 * np.pi), rng.uniform(*CALM)
        move([speed] * int(rng.integers(*PAUSE, endpoint=True)))
    row, column, zooms, angles, speeds, worlds = np.array(rows).T
    motion = GlideMotion(start=0, row=row, column=column, zoom=zooms, angle=angles, speed=speeds, size=size)
    return _Plan(motion, worlds.astype(np.int64), np.array(cuts, np.int64), np.array(pans, np.int64).reshape(-1, 2))
