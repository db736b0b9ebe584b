"""The synthetic film ``builtin:glide``: a camera glides over fallen leaves without a cut. The true motion is known."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import irfft2
from scipy.interpolate import CubicHermiteSpline
from scipy.ndimage import spline_filter, uniform_filter

from psmt.data.contract import BuiltinFilm, BuiltinName, Frame, IndexedFilm, channels, check_integers
from psmt.types import Array, Levels
from psmt.utils.jit import njit

VERSION = 2  # part of the checksum; increase it when any frame changes
LARGEST = 400  # side of a frame in pixels
NOISIEST = 2.0  # relative to the contrast; more noise would clip most grey levels
PATCH = 16  # side of the patch in which contrast is measured, as in the paper
FASTEST = 16.0  # frame pixels per frame: successive patches of 16 pixels then do not overlap

# The world is a dead-leaves model (Lee, Mumford and Huang, 2001), the simplest model with the statistics of natural
# scenes: opaque, textured leaves of all sizes cover one another. Sizes are distributed as r^-3, which makes the picture
# scale-invariant. Each seed has its own world.
WORLD = 1024  # rows and columns; the world is a torus, so that the camera never reaches its end
N_LEAVES = 9000
RADIUS = (12.0, 56.0)  # half the length of a leaf, world pixels: most patches contain an edge, few contain many
ASPECT = (0.3, 0.9)  # width of a leaf by its length
SHADE = (0.08, 0.92)  # grey levels
SHADING = 0.12  # from the middle of a leaf to its tip
FOLD = (0.06, 0.16)  # grey levels between the two halves of a leaf
VEIN = (0.05, 0.12)  # grey levels between veins and the area between them
VEIN_GAP = (9.0, 15.0)  # world pixels between veins, so that no patch within a leaf is flat
TEXTURE = 0.012  # standard deviation of the 1/f texture of a leaf, grey levels
SOFT = 1.6  # width of an edge in world pixels

# The camera follows sums of three sinusoids of the distance travelled, in frame pixels. A slow film therefore shows the
# same scenes as a fast one, only later. Each seed scales the periods a little and draws the phases.
WEIGHTS = np.array([0.62, 0.26, 0.12])
PERIODS = {
    "heading": np.array([1130.0, 610.0, 370.0]),
    "zoom": np.array([1270.0, 710.0, 450.0]),
    "angle": np.array([1490.0, 830.0, 510.0]),
}
HEADING_RANGE = 4.0  # radians either way
ZOOM = 1.25  # frame pixels per world pixel
ZOOM_RANGE = 0.2  # natural logarithm; zoom stays above 1 to avoid aliasing
ANGLE_RANGE = 0.30  # radians
KNOT = 0.5  # frame pixels between the knots of the path

# Without a given speed, slow (calm) and fast (lively) stretches alternate. Units are frames, and pixels per frame.
STRETCH = (110, 380)
CALM = (0.08, 0.2)
LIVELY = (0.7, 1.4)
RAMP = 40  # frames from one speed to the next


@dataclass(frozen=True, kw_only=True)
class GlideMotion:
    """Position of the camera in each frame, as arrays ``(n_frames,)``. The world is the picture that it films.

    Attributes
    ----------
    start : int
        Index of the frame to which the first entry of each array belongs.
    row, column : ndarray
        World pixel at the centre of the frame.
    zoom : ndarray
        Frame pixels per world pixel.
    angle : ndarray
        Rotation in radians, from the row axis towards the column axis.
    speed : ndarray
        Motion of the centre since the previous frame, in frame pixels.
    size : int
        Height and width of the frames.
    """

    start: int
    row: Array
    column: Array
    zoom: Array
    angle: Array
    speed: Array
    size: int

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, kw_only=True)
class GlideFilm(BuiltinFilm, IndexedFilm):
    """Synthetic film of a camera that glides over fallen leaves without a cut.

    The camera pans, zooms and turns by fractions of a pixel. Its speed is constant, or slow and fast stretches
    alternate. Fast stretches are about seven times as fast as slow ones. Frame ``t`` does not depend on the length of
    the film.

    Parameters
    ----------
    n_frames : int
        Length of the film.
    seed : int
        Seed of the leaves, the path and the noise.
    speed : float, optional
        Motion of the centre in pixels per frame, 0 to 16. None alternates slow and fast stretches.
    noise : float
        Standard deviation of white Gaussian noise relative to the film's contrast, 0 to 2. The contrast is the median
        standard deviation of grey levels in patches of 16 x 16 pixels. Frames are clipped to [0, 1] afterwards.
    size : int
        Height and width of the frames, 8 to 400. Smaller frames show a smaller part of the world at the same scale.

    Examples
    --------
    >>> film = GlideFilm(n_frames=1_000, seed=1, speed=0.5)
    >>> film[999].shape
    (200, 200)
    >>> film.motion(start=10, stop=14).speed.round(3)
    array([0.5, 0.5, 0.5, 0.5])
    """

    n_frames: int = 10_000
    seed: int = 0
    speed: float | None = None
    noise: float = 0.0
    size: int = 200
    name: str = field(default="glide", init=False)

    def __post_init__(self) -> None:
        check_integers(self, n_frames=(1,), seed=(0,), size=(8, LARGEST))
        if self.speed is not None and not 0 <= self.speed <= FASTEST:
            raise ValueError(
                f"speed={self.speed!r} is out of range; use pixels per frame from 0 to {FASTEST:g}, "
                "or leave it out for calm and lively stretches"
            )
        if not 0 <= self.noise <= NOISIEST:
            raise ValueError(f"noise={self.noise!r} is out of range; use 0 to {NOISIEST:g}, relative to the contrast")
        super().__post_init__()

    def checksum(self) -> str:
        """Return the sha256 of the film's parameters and the version of the generator."""
        speed = None if self.speed is None else float(self.speed)
        text = f"glide {VERSION} {self.n_frames} {self.seed} {speed!r} {float(self.noise)!r} {self.size}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _frame(self, index: int, *, colour: bool) -> Frame:
        return channels(self._render(self.motion(start=index, stop=index + 1), 0), colour=colour)

    def motion(self, start: int = 0, stop: int | None = None) -> GlideMotion:
        """Return the true motion of the camera in the frames ``start`` to ``stop - 1``."""
        stop = self.n_frames if stop is None else stop
        if not 0 <= start < stop <= self.n_frames:
            raise ValueError(f"start={start} and stop={stop} need 0 <= start < stop <= n_frames={self.n_frames}")
        # The first speed needs the frame before.
        time = np.arange(start - 1.0, stop)
        way = _stretches(self.seed, time) if self.speed is None else self.speed * time
        row, column, zoom, angle = _path(self.seed, way)
        speed = np.hypot(np.diff(row), np.diff(column)) * zoom[1:]
        return GlideMotion(
            start=start, row=row[1:], column=column[1:], zoom=zoom[1:], angle=angle[1:], speed=speed, size=self.size
        )

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        block = 512
        for start in range(0, self.n_frames, block):
            motion = self.motion(start=start, stop=min(start + block, self.n_frames))
            for index in range(len(motion)):
                yield channels(self._render(motion, index), colour=colour)

    @property
    def contrast(self) -> float:
        """Return the median standard deviation of grey levels in 16 x 16 patches. It is the unit of `noise`."""
        return _world(self.seed).contrast

    def _render(self, motion: GlideMotion, index: int) -> Frame:
        noise = np.random.default_rng((self.seed, 2, motion.start + index)) if self.noise else None
        return view(self.seed, motion, index, noise=self.noise, rng=noise)


def view(seed: int, motion: GlideMotion, index: int, *, noise: float, rng: np.random.Generator | None) -> Frame:
    """Return the grey frame ``(size, size)`` at entry `index` of `motion`. `rng` draws noise, unless it is None."""
    world = _world(seed)
    zoom = motion.zoom[index]
    cos, sin = np.cos(motion.angle[index]) / zoom, np.sin(motion.angle[index]) / zoom
    frame = np.empty((motion.size, motion.size), dtype=np.float32)
    _sample(world.coefficients, motion.row[index], motion.column[index], cos, sin, frame)
    if rng is not None:
        frame += np.float32(noise * world.contrast) * rng.standard_normal(frame.shape, dtype=np.float32)
    return np.clip(frame, 0.0, 1.0, out=frame)


GLIDE = BuiltinName("glide", GlideFilm)


def _path(seed: int, way: Array) -> tuple[Array, ...]:
    """Return world row, world column, zoom and angle, each ``(n,)``, of the camera after distances `way` (n,)."""
    # Table sizes are powers of two, so that few tables are computed whichever frames are requested.
    at, row, column, row_slope, column_slope = _places(seed, 1 << int(way.max() / KNOT).bit_length())
    k = slice(*np.searchsorted(at, [way.min() - 2 * KNOT, way.max() + 2 * KNOT]))
    pairs = (row, row_slope), (column, column_slope)
    return *(CubicHermiteSpline(at[k], place[k], slope[k])(way) for place, slope in pairs), *_waves(seed, way)[1:]


@lru_cache(maxsize=4)
def _places(seed: int, n_knots: int) -> tuple[Array, ...]:
    """Return five arrays (n,) at the spline knots: distance travelled, world row and column, and slopes of these two.

    The camera moves along its heading by 1 / zoom world pixels for each frame pixel, so that its speed in frame pixels
    does not depend on the zoom. The path starts before frame 0, because the first speed needs an earlier position.
    """
    at = KNOT * np.arange(-2 * FASTEST / KNOT, n_knots + 4)
    heading, zoom, _ = _waves(seed, at)
    slopes = np.sin(heading) / zoom, np.cos(heading) / zoom
    places = [np.cumsum(KNOT * (np.concatenate([[0.0], slope[:-1]]) + slope) / 2) for slope in slopes]
    return at, *places, *slopes


def _waves(seed: int, way: Array) -> tuple[Array, Array, Array]:
    """Return heading, zoom and angle, each ``(n,)``, of the camera after distances `way` (n,)."""
    rng = np.random.default_rng((seed, 0))
    wave = {}
    for channel, periods in PERIODS.items():
        frequencies = 1.0 / (periods * rng.uniform(0.87, 1.15, size=3))
        wave[channel] = np.sin(2 * np.pi * (way[:, None] * frequencies + rng.uniform(size=3))) @ WEIGHTS
    return HEADING_RANGE * wave["heading"], ZOOM * np.exp(ZOOM_RANGE * wave["zoom"]), ANGLE_RANGE * wave["angle"]


def _stretches(seed: int, time: Array) -> Array:
    """Return the distance ``(n,)`` in frame pixels that the camera has travelled at each of the times ``(n,)``."""
    count = int(time.max() // STRETCH[0]) + 2
    # Stretches are drawn in order, so that a longer film begins like a shorter one.
    draws = np.random.default_rng((seed, 1)).uniform(size=(count, 2))
    length = np.floor(STRETCH[0] + (STRETCH[1] - STRETCH[0]) * draws[:, 0])
    calm = np.arange(count) % 2 == 1
    low, high = np.where(calm, np.array([CALM]).T, np.array([LIVELY]).T)
    speed = low + (high - low) * draws[:, 1]
    before = np.concatenate([speed[:1], speed[:-1]])
    # Speeds change by a smoothstep, which covers half a ramp at the new speed.
    distance = before * length + (speed - before) * (length - RAMP / 2)
    begin = np.concatenate([[0.0], np.cumsum(length)[:-1]])
    covered = np.concatenate([[0.0], np.cumsum(distance)[:-1]])
    k = np.clip(np.searchsorted(begin, time, side="right") - 1, 0, None)
    since = time - begin[k]
    u = np.clip(since / RAMP, 0.0, 1.0)
    gained = RAMP * (u**3 - u**4 / 2) + np.maximum(since - RAMP, 0.0)
    return np.asarray(covered[k] + before[k] * since + (speed[k] - before[k]) * gained)


class _World(NamedTuple):
    coefficients: Levels  # of a cubic spline through the picture (WORLD, WORLD)
    contrast: float  # median standard deviation of grey levels in a patch


@lru_cache(maxsize=8)  # 4 MiB each
def _world(seed: int) -> _World:
    rng = np.random.default_rng((seed, 3))
    small, large = RADIUS
    # Inverse distribution function of r^-3 between the two radii.
    radius = 1.0 / np.sqrt(small**-2 - (small**-2 - large**-2) * rng.uniform(size=N_LEAVES))
    leaves = np.column_stack(
        [
            rng.uniform(0, WORLD, size=(N_LEAVES, 2)),
            radius,
            radius * rng.uniform(*ASPECT, size=N_LEAVES),
            rng.uniform(0, np.pi, size=N_LEAVES),
            rng.uniform(*SHADE, size=N_LEAVES),
            rng.uniform(-SHADING, SHADING, size=N_LEAVES),
            rng.uniform(*FOLD, size=N_LEAVES) * rng.choice([-1, 1], size=N_LEAVES),
            rng.uniform(*VEIN, size=N_LEAVES) * rng.choice([-1, 1], size=N_LEAVES),
            rng.uniform(*VEIN_GAP, size=N_LEAVES),
        ]
    )
    picture = np.full((WORLD, WORLD), 0.5, dtype=np.float32)
    _lay(leaves, _texture(rng), rng.integers(WORLD, size=(N_LEAVES, 2)), picture)
    coefficients = spline_filter(picture, order=3, mode="grid-wrap", output=np.float32)
    side = round(PATCH / ZOOM)
    variance = uniform_filter(picture**2, side, mode="wrap") - uniform_filter(picture, side, mode="wrap") ** 2
    return _World(coefficients, float(np.sqrt(np.median(variance))))


def _texture(rng: np.random.Generator) -> Levels:
    """Return random noise ``(WORLD, WORLD)`` with a 1/f amplitude spectrum and standard deviation ``TEXTURE``."""
    rows, columns = np.fft.fftfreq(WORLD)[:, None], np.fft.rfftfreq(WORLD)
    frequency = np.maximum(np.hypot(rows, columns), 1.0 / WORLD)
    # Details finer than eight pixels would look like noise.
    amplitude = np.exp(-((8 * frequency) ** 2)) / frequency
    waves = amplitude * np.exp(2j * np.pi * rng.uniform(size=frequency.shape))
    noise = irfft2(waves, s=(WORLD, WORLD))
    noise -= noise.mean()
    return np.asarray((noise * (TEXTURE / noise.std())).astype(np.float32))


@njit(cache=True, nogil=True)
def _lay(leaves: Array, texture: Levels, offsets: Any, picture: Levels) -> None:
    """Paint leaves into the picture, in place. Later leaves cover earlier ones.

    A leaf is the area between two parabolas, with veins that branch off its midrib. A row of `leaves` holds: row,
    column, half length, half width, angle, grey level (shade), its gradient along the leaf (shading), the step at the
    midrib (fold), the contrast of veins, and their distance (gap). `offsets` (n, 2) shift the texture of each leaf.
    """
    for n in range(len(leaves)):
        row, column, length, width, angle, shade, shading, fold, vein, gap = leaves[n]
        cos, sin = np.cos(angle), np.sin(angle)
        reach = int(length) + 3
        for i in range(int(row) - reach, int(row) + reach + 1):
            for j in range(int(column) - reach, int(column) + reach + 1):
                along = (cos * (i - row) + sin * (j - column)) / length
                across = cos * (j - column) - sin * (i - row)
                if abs(along) >= 1.0:
                    continue
                inside = (width * (1.0 - along * along) - abs(across)) / SOFT + 0.5
                if inside <= 0.0:
                    continue
                cover = min(inside, 1.0)
                r, c = i % WORLD, j % WORLD
                side = max(min(across / SOFT, 0.5), -0.5)
                # The fourth power makes veins narrow.
                wave = np.cos(np.pi * (length * along - 0.8 * abs(across)) / gap)
                grey = shade + shading * along + fold * side + vein * wave**4
                grey += texture[(r + offsets[n, 0]) % WORLD, (c + offsets[n, 1]) % WORLD]
                picture[r, c] += np.float32(cover * (min(max(grey, 0.0), 1.0) - picture[r, c]))


@njit(cache=True, fastmath=True, nogil=True)
def _sample(world: Levels, centre_row: float, centre_column: float, cos: float, sin: float, frame: Frame) -> None:
    """Fill `frame` from the spline with coefficients `world`. `cos` and `sin` are those of the angle, over the zoom."""
    size = frame.shape[0]
    last = world.shape[0] - 1  # the side is a power of two
    half = (size - 1) / 2
    one = np.float32(1.0)
    sixth = np.float32(1.0 / 6.0)
    for i in range(size):
        y = i - half
        row_0 = centre_row + cos * y - sin * half
        column_0 = centre_column - sin * y - cos * half
        for j in range(size):
            row = row_0 + sin * j
            column = column_0 + cos * j
            r = int(np.floor(row))
            c = int(np.floor(column))
            u = np.float32(row - r)
            v = np.float32(column - c)
            u0 = (one - u) ** 3 * sixth
            u3 = u**3 * sixth
            u1 = np.float32(2.0 / 3.0) - u * u + np.float32(0.5) * u**3
            u2 = one - u0 - u1 - u3
            v0 = (one - v) ** 3 * sixth
            v3 = v**3 * sixth
            v1 = np.float32(2.0 / 3.0) - v * v + np.float32(0.5) * v**3
            v2 = one - v0 - v1 - v3
            total = np.float32(0.0)
            for k in range(4):
                weight = u0 if k == 0 else (u1 if k == 1 else (u2 if k == 2 else u3))
                line = world[(r - 1 + k) & last]
                total += weight * (
                    v0 * line[(c - 1) & last]
                    + v1 * line[c & last]
                    + v2 * line[(c + 1) & last]
                    + v3 * line[(c + 2) & last]
                )
            frame[i, j] = total
