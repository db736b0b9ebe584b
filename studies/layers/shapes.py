"""A film of moving shapes, ``builtin:shapes``: discs, squares and bars with known velocity and rotation."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from psmt.data.contract import BuiltinFilm, BuiltinName, Frame, IndexedFilm, channels, check_integers
from psmt.types import Array
from psmt.utils.constraints import check_real

VERSION = 1  # part of the checksum; increase it when any frame changes
HALF_SIDES = np.array([[0.13, 0.13], [0.11, 0.11], [0.05, 0.22]])
"""Half the height and width of a disc, a square and a bar, relative to the frame."""

SHADES = (0.15, 0.85)
GROUND = 0.5
SOFT = 1.5  # width of an edge in pixels, so that motion by fractions of a pixel is visible
TURN = 0.04  # largest rotation in radians per frame


@dataclass(frozen=True, kw_only=True)
class ShapesMotion:
    """Position of each shape, as arrays ``(n_frames, n_shapes)``.

    Attributes
    ----------
    row, column : ndarray
        Centres in pixels. The frame is a torus: a shape that leaves it re-enters on the other side.
    angle : ndarray
        Rotation in radians.
    """

    row: Array
    column: Array
    angle: Array


@dataclass(frozen=True, kw_only=True)
class MovingShapes(BuiltinFilm, IndexedFilm):
    """Discs, squares and bars on a grey background, each with constant velocity and rotation.

    Frame ``t`` depends on the seed and on ``t``, not on the length of the film.

    Parameters
    ----------
    n_frames : int
        Length of the film.
    seed : int
        Seed of places, directions, shades and noise.
    n_shapes : int
        Number of shapes, up to 1,000. Discs, squares and bars take turns, and later shapes cover earlier ones.
    speed : float
        Speed of each shape in pixels per frame, >= 0.
    noise : float
        Standard deviation of Gaussian noise in grey levels, >= 0. Frames are clipped to [0, 1] afterwards.
    size : int
        Height and width of the frames, 8 to 4,000.

    Examples
    --------
    >>> from studies.layers.shapes import MovingShapes
    >>> film = MovingShapes(n_frames=100, speed=0.5, size=32)
    >>> film[99].shape, film.motion().row.shape
    ((32, 32), (100, 3))
    """

    n_frames: int = 1_000
    seed: int = 0
    n_shapes: int = 3
    speed: float = 0.5
    noise: float = 0.0
    size: int = 48
    name: str = field(default="shapes", init=False)

    def __post_init__(self) -> None:
        check_integers(self, n_frames=(1,), seed=(0,), n_shapes=(1, 1_000), size=(8, 4_000))
        check_real("speed", self.speed)
        check_real("noise", self.noise)
        super().__post_init__()

    def checksum(self) -> str:
        """Return the sha256 of the film's parameters and the version of the generator."""
        numbers = self.n_frames, self.seed, self.n_shapes, float(self.speed), float(self.noise), self.size
        return hashlib.sha256(f"shapes {VERSION} {numbers}".encode()).hexdigest()

    def motion(self) -> ShapesMotion:
        """Return the true position of each shape in all frames."""
        return self._places(np.arange(float(self.n_frames)))

    @property
    def velocity(self) -> Array:
        """Velocity ``(n_shapes, 2)`` of each shape, in rows and columns per frame."""
        heading = self._drawn()[2]
        return self.speed * np.stack([np.sin(heading), np.cos(heading)], axis=1)

    def _drawn(self) -> tuple[Array, Array, Array, Array, Array]:
        """Draw initial centres ``(n_shapes, 2)``, and angles, headings, rotations and shades, each ``(n_shapes,)``."""
        rng, n = np.random.default_rng((self.seed, 0)), self.n_shapes
        angle, heading = rng.uniform(0, 2 * np.pi, (2, n))
        return rng.uniform(0, self.size, (n, 2)), angle, heading, rng.uniform(-TURN, TURN, n), rng.uniform(*SHADES, n)

    def _places(self, time: Array) -> ShapesMotion:
        centres, angle, _, turn, _ = self._drawn()
        row, column = np.moveaxis((centres + time[:, None, None] * self.velocity) % self.size, 2, 0)
        return ShapesMotion(row=row, column=column, angle=angle + time[:, None] * turn)

    def _frame(self, index: int, *, colour: bool) -> Frame:
        at, shades = self._places(np.array([index])), self._drawn()[4]
        pixels = np.full(self.shape, GROUND)
        for k in range(self.n_shapes):
            cover = self._cover(k % len(HALF_SIDES), at.row[0, k], at.column[0, k], at.angle[0, k])
            pixels += cover * (shades[k] - pixels)
        if self.noise:
            pixels += self.noise * np.random.default_rng((self.seed, 1, index)).standard_normal(self.shape)
        return channels(np.clip(pixels, 0.0, 1.0).astype(np.float32), colour=colour)

    def _cover(self, kind: int, row: float, column: float, angle: float) -> Array:
        """Return the share of each pixel ``(size, size)`` that a shape covers."""
        half = self.size / 2
        # The shorter distance on the torus.
        down, right = ((np.arange(self.size) - centre + half) % self.size - half for centre in (row, column))
        along = np.cos(angle) * down[:, None] + np.sin(angle) * right
        across = np.cos(angle) * right - np.sin(angle) * down[:, None]
        tall, wide = HALF_SIDES[kind] * self.size
        outside = np.hypot(along, across) - tall if kind == 0 else np.maximum(abs(along) - tall, abs(across) - wide)
        cover: Array = np.clip(0.5 - outside / SOFT, 0.0, 1.0)
        return cover


SHAPES = BuiltinName("shapes", MovingShapes)
