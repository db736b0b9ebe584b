"""The built-in film: one take of a camera gliding over two photographs, with its motion known."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft2, rfft2
from scipy.interpolate import CubicSpline
from scipy.ndimage import fourier_gaussian, spline_filter
from sklearn.datasets import load_sample_images

from psmt.errors import FrameSourceError
from psmt.sources.contract import Film, Opener, check_stop
from psmt.sources.pixels import REC601, Frame, channels
from psmt.types import Array, Levels

__all__ = ["BUILTIN", "GlideFilm", "GlideMotion", "parse_glide"]

VERSION = 1  # a change of any frame needs a new number, because checksums name it
LARGEST = 400

# The world: china.jpg on the left, flower.jpg on the right, laid over one another by this many columns.
OVERLAP = 200
BLEND = (555, 645)  # world columns over which one photograph fades into the other
HEIGHT = 412  # the lowest rows of both photographs show cut-off things that a mirror would turn into eyes
GAMMA = 0.8  # lifts the shadows, which are otherwise too dark to see the leaves in
MARGIN = 320  # mirrored pixels around the world, more than the widest view reaches over its edge
FADE = 12  # rows over which the mirror image under china.jpg fades
ASIDE = 67  # into one moved by this many columns

# Where there is something to see: per world column, the middle and half the height of the band of rows that
# the centre of the camera stays in. Sky, lake and the dark ground behind the flower are outside.
BAND_COLUMN = (60.0, 140.0, 215.0, 285.0, 340.0, 390.0, 450.0, 500.0, 560.0, 620.0, 700.0, 760.0, 830.0)
BAND_MIDDLE = (305.0, 255.0, 235.0, 270.0, 322.0, 345.0, 340.0, 318.0, 268.0, 225.0, 228.0, 235.0, 235.0)
BAND_HALF = (40.0, 85.0, 105.0, 70.0, 26.0, 20.0, 26.0, 32.0, 45.0, 55.0, 80.0, 105.0, 70.0)

# Sums of three sinusoids, in lively frames per turn. Each seed stretches the periods a little, so that no two
# share a common multiple, and draws the phases.
WEIGHTS = np.array([0.62, 0.26, 0.12])
PERIODS = {
    "column": np.array([1730.0, 910.0, 390.0]),
    "row": np.array([530.0, 290.0, 170.0]),
    "zoom": np.array([1270.0, 610.0, 350.0]),
    "angle": np.array([1490.0, 830.0, 410.0]),
}
ZOOM = 1.8  # frame pixels per world pixel: enough for leaves to be seen from one frame to the next
ZOOM_RANGE = 0.27  # natural logarithm: zoom lies between ZOOM * exp(-0.27) and ZOOM * exp(0.27)
ANGLE_RANGE = 0.30  # radians

# Calm and lively stretches take turns. Paces are lively frames per frame.
STRETCH = (110, 380)
CALM = (0.005, 0.03)
LIVELY = (0.4, 0.7)
RAMP = 40  # frames from one pace to the next

# World pixels per frame pixel that the world is kept blurred for, so that zooming out does not alias.
LEVEL_SCALE = np.array([1.0, 1.16, 1.35])


@dataclass(frozen=True, kw_only=True)
class GlideMotion:
    """Where the camera was, per frame: arrays of shape ``(n_frames,)``.

    Attributes
    ----------
    start : int
        The frame that index 0 of each array belongs to.
    row, column : ndarray
        The world pixel under the centre of the frame.
    zoom : ndarray
        Frame pixels per world pixel; above 1 the camera is close.
    angle : ndarray
        Radians by which the camera is turned, from the row axis towards the column axis.
    speed : ndarray
        Frame pixels that the centre has moved since the frame before.
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

    def to_world(self, index: int, row: ArrayLike, column: ArrayLike) -> tuple[Array, Array]:
        """Return the world row and column under pixels of the frame ``start + index``.

        With ``c = (size - 1) / 2``, ``y = (row - c) / zoom`` and ``x = (column - c) / zoom`` this is
        ``(row_ + y cos(angle) + x sin(angle), column_ - y sin(angle) + x cos(angle))``.
        """
        cos, sin, centre = np.cos(self.angle[index]), np.sin(self.angle[index]), (self.size - 1) / 2
        y = (np.asarray(row, dtype=float) - centre) / self.zoom[index]
        x = (np.asarray(column, dtype=float) - centre) / self.zoom[index]
        return self.row[index] + cos * y + sin * x, self.column[index] - sin * y + cos * x

    def to_frame(self, index: int, row: ArrayLike, column: ArrayLike) -> tuple[Array, Array]:
        """Return the frame row and column that world pixels are seen at: the inverse of `to_world`."""
        cos, sin, centre = np.cos(self.angle[index]), np.sin(self.angle[index]), (self.size - 1) / 2
        down = (np.asarray(row, dtype=float) - self.row[index]) * self.zoom[index]
        right = (np.asarray(column, dtype=float) - self.column[index]) * self.zoom[index]
        return cos * down - sin * right + centre, sin * down + cos * right + centre


@dataclass(frozen=True, kw_only=True)
class GlideFilm(Film):
    """A camera that glides over the two photographs which scikit-learn ships, in one take.

    It pans, zooms and turns by fractions of a pixel; calm stretches, where it almost stands still, and lively
    ones take turns. Frame ``t`` depends on the seed and on ``t``, never on the length of the film.

    Parameters
    ----------
    n_frames : int
        Length of the film.
    seed : int
        Chooses the path and the noise.
    noise : float
        Standard deviation of Gaussian sensor noise, in grey levels; frames are clipped to [0, 1] after it.
    size : int
        Height and width of the frames, 8 to 400. A smaller sensor sees less of the world, not less sharply.

    Examples
    --------
    >>> film = GlideFilm(n_frames=1_000, seed=1)
    >>> film.frame(999).shape
    (200, 200)
    >>> film.motion(start=10, stop=14).speed.shape
    (4,)
    """

    n_frames: int = 10_000
    seed: int = 0
    noise: float = 0.0
    size: int = 200
    name: str = field(default="glide", init=False)
    shape: tuple[int, int] = field(init=False)
    fps: float = field(default=25.0, init=False)
    stop: None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for key, low, high in (("n_frames", 1, None), ("seed", 0, None), ("size", 8, LARGEST)):
            value = getattr(self, key)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or value < low or (high is not None and value > high):
                bound = f"of at least {low}" if high is None else f"from {low} to {high}"
                raise ValueError(f"{key}={value!r} is out of range; use an integer {bound}")
        if not (np.isfinite(self.noise) and self.noise >= 0):
            raise ValueError(f"noise={self.noise!r} is out of range; use a standard deviation of 0 or more")
        object.__setattr__(self, "shape", (self.size, self.size))

    def checksum(self) -> str:
        """Return the sha256 of the film's parameters and of the version of its making."""
        text = f"glide {VERSION} {self.n_frames} {self.seed} {float(self.noise)!r} {self.size}"
        return hashlib.sha256(text.encode()).hexdigest()

    def head(self, stop: int | None) -> GlideFilm:
        """Return the film without the frames from ``stop`` on."""
        check_stop(stop)
        return self if stop is None else replace(self, n_frames=min(self.n_frames, stop))

    def frame(self, index: int) -> Frame:
        """Return the grey frame ``(size, size)`` at ``index``, without making those before it."""
        if not 0 <= index < self.n_frames:
            raise IndexError(f"frame {index} is outside the film; it has the frames 0 to {self.n_frames - 1}")
        return self._render(self.motion(start=index, stop=index + 1), 0)

    def motion(self, start: int = 0, stop: int | None = None) -> GlideMotion:
        """Return the true motion of the camera in the frames ``start`` to ``stop``."""
        stop = self.n_frames if stop is None else stop
        if not 0 <= start < stop <= self.n_frames:
            raise ValueError(
                f"start={start} and stop={stop} must satisfy 0 <= start < stop <= n_frames={self.n_frames}"
            )
        # One frame more at the front gives the first speed.
        row, column, zoom, angle = _path(self.seed, np.arange(start - 1.0, stop))
        speed = np.hypot(np.diff(row), np.diff(column)) * zoom[1:]
        return GlideMotion(
            start=start,
            row=row[1:],
            column=column[1:],
            zoom=zoom[1:],
            angle=angle[1:],
            speed=speed,
            size=self.size,
        )

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        block = 512
        for start in range(0, self.n_frames, block):
            motion = self.motion(start=start, stop=min(start + block, self.n_frames))
            for index in range(len(motion)):
                yield channels(self._render(motion, index), colour=colour)

    def _render(self, motion: GlideMotion, index: int) -> Frame:
        zoom = motion.zoom[index]
        cos, sin = np.cos(motion.angle[index]) / zoom, np.sin(motion.angle[index]) / zoom
        row, column = motion.row[index] + MARGIN, motion.column[index] + MARGIN
        # Only the part of the world in view, at the sharpness that this zoom can show.
        reach = (self.size - 1) / 2 * (abs(cos) + abs(sin))
        top, left = int(row - reach) - 2, int(column - reach) - 2
        view = _view(1.0 / zoom, top, int(row + reach) + 4, left, int(column + reach) + 4)
        frame = np.empty(self.shape, dtype=np.float32)
        _sample(view, row - top, column - left, cos, sin, frame)
        if self.noise:
            rng = np.random.default_rng((self.seed, 2, motion.start + index))
            frame += np.float32(self.noise) * rng.standard_normal(self.shape, dtype=np.float32)
        return np.clip(frame, 0.0, 1.0, out=frame)


def parse_glide(source: str) -> GlideFilm:
    """Return the film that ``builtin:glide?frames=...&seed=...&noise=...&size=...`` names.

    >>> parse_glide("builtin:glide?frames=2000&noise=0.02")
    GlideFilm(name='glide', shape=(200, 200), n_frames=2000, fps=25.0, seed=0, noise=0.02, size=200)
    """
    name, _, query = source.removeprefix("builtin:").partition("?")
    if name != "glide":
        raise FrameSourceError(f"{source!r}: there is no built-in film {name!r}; the one there is: builtin:glide")
    kinds: dict[str, tuple[str, type]] = {
        "frames": ("n_frames", int),
        "seed": ("seed", int),
        "noise": ("noise", float),
        "size": ("size", int),
    }
    options: dict[str, Any] = {}
    for key, text in parse_qsl(query, keep_blank_values=True):
        if key not in kinds:
            raise FrameSourceError(f"{source!r}: unknown option {key!r}; use {', '.join(kinds)}")
        parameter, kind = kinds[key]
        try:
            options[parameter] = kind(text)
        except ValueError:
            article = "an integer" if kind is int else "a number"
            raise FrameSourceError(f"{source!r}: {key}={text!r} is not {article}") from None
    try:
        return GlideFilm(**options)
    except ValueError as error:
        raise FrameSourceError(f"{source!r}: {error}") from None


BUILTIN: Opener[GlideFilm] = Opener(
    lambda spec: isinstance(spec, str) and spec.startswith("builtin:"),
    lambda spec, stop: parse_glide(spec).head(stop),
)


def _path(seed: int, time: Array) -> tuple[Array, ...]:
    """Return row, column, zoom and angle at each time, all of shape ``(n_times,)``."""
    rng = np.random.default_rng((seed, 0))
    warped = _warp(seed, time)
    wave = {}
    for channel, periods in PERIODS.items():
        frequencies = 1.0 / (periods * rng.uniform(0.87, 1.15, size=3))
        turns = warped[:, None] * frequencies + rng.uniform(size=3)
        wave[channel] = np.sin(2 * np.pi * turns) @ WEIGHTS
    first, last = BAND_COLUMN[0], BAND_COLUMN[-1]
    column = (first + last) / 2 + (last - first) / 2 * wave["column"]
    row = _band_middle(column) + _band_half(column) * wave["row"]
    return row, column, ZOOM * np.exp(ZOOM_RANGE * wave["zoom"]), ANGLE_RANGE * wave["angle"]


_band_middle = CubicSpline(BAND_COLUMN, BAND_MIDDLE)
_band_half = CubicSpline(BAND_COLUMN, BAND_HALF)


def _warp(seed: int, time: Array) -> Array:
    """Return the time that passes for the camera, ``(n_times,)``: slow in calm stretches, never backwards."""
    count = int(time.max() // STRETCH[0]) + 2
    # The numbers of a stretch are drawn in order, so more of them never change those before.
    draws = np.random.default_rng((seed, 1)).uniform(size=(count, 2))
    length = np.floor(STRETCH[0] + (STRETCH[1] - STRETCH[0]) * draws[:, 0])
    calm = np.arange(count) % 2 == 1
    pace = np.where(
        calm, CALM[0] + (CALM[1] - CALM[0]) * draws[:, 1], LIVELY[0] + (LIVELY[1] - LIVELY[0]) * draws[:, 1]
    )
    before = np.concatenate([pace[:1], pace[:-1]])
    # A smoothstep leads from the old pace to the new one; it covers half a ramp at the new pace on the whole.
    distance = before * length + (pace - before) * (length - RAMP / 2)
    begin = np.concatenate([[0.0], np.cumsum(length)[:-1]])
    covered = np.concatenate([[0.0], np.cumsum(distance)[:-1]])
    k = np.clip(np.searchsorted(begin, time, side="right") - 1, 0, None)
    since = time - begin[k]
    u = np.clip(since / RAMP, 0.0, 1.0)
    gained = RAMP * (u**3 - u**4 / 2) + np.maximum(since - RAMP, 0.0)
    warped: Array = covered[k] + before[k] * since + (pace[k] - before[k]) * gained
    return warped


@lru_cache(maxsize=1)
def _world() -> Levels:
    """Return the spline coefficients of the world at falling sharpness, ``(n_levels, height, width)``."""
    china, flower = (
        (photo[:HEIGHT].astype(np.float32) @ REC601 / 255) ** GAMMA for photo in load_sample_images().images
    )
    shift = china.shape[1] - OVERLAP
    ramp = np.clip((np.arange(shift + flower.shape[1]) - BLEND[0]) / (BLEND[1] - BLEND[0]), 0.0, 1.0)
    ramp = ramp * ramp * (3.0 - 2.0 * ramp)
    wide = np.pad(china, ((0, 0), (0, shift + flower.shape[1] - china.shape[1])))
    far = np.pad(flower, ((0, 0), (shift, 0)))
    world = np.pad(wide * (1.0 - ramp) + far * ramp, MARGIN, mode="symmetric")
    # Under china.jpg the mirror image soon fades into one moved aside: leaves show no axis of symmetry.
    fade = np.clip(np.arange(MARGIN)[:, None] / FADE, 0.0, 1.0) * (1.0 - np.pad(ramp, MARGIN, mode="edge"))
    world[-MARGIN:] += fade * (np.roll(world[-MARGIN:], -ASIDE, axis=1) - world[-MARGIN:])
    return _levels(world)


def _levels(picture: NDArray[np.floating]) -> Levels:
    """Return spline coefficients of a picture, blurred for each of ``LEVEL_SCALE``."""
    spectrum, width = rfft2(picture), picture.shape[1]
    levels = []
    for scale in LEVEL_SCALE:
        # In the frequency domain, because a sampled Gaussian this narrow hardly blurs at all.
        blurred = irfft2(fourier_gaussian(spectrum, 0.6 * np.sqrt(scale**2 - 1.0), n=width), s=picture.shape)
        levels.append(spline_filter(blurred, order=3, mode="mirror", output=np.float32))
    return np.stack(levels)


def _view(scale: float, top: int, bottom: int, left: int, right: int) -> Levels:
    """Return spline coefficients of part of the world, for ``scale`` world pixels per frame pixel."""
    levels = _world()[:, top:bottom, left:right]
    position = float(np.interp(scale, LEVEL_SCALE, np.arange(len(LEVEL_SCALE))))
    level = min(int(position), len(LEVEL_SCALE) - 2)
    weight = np.float32(position - level)
    if weight == 0.0:
        return np.ascontiguousarray(levels[level])
    view: Levels = levels[level] + weight * (levels[level + 1] - levels[level])
    return view


@njit(cache=True, fastmath=True, nogil=True)
def _sample(view: Levels, centre_row: float, centre_column: float, cos: float, sin: float, frame: Frame) -> None:
    """Fill ``frame`` with the cubic spline ``view`` seen by a camera at the centre, turned and zoomed."""
    size = frame.shape[0]
    half = (size - 1) / 2
    for i in range(size):
        y = i - half
        row_0 = centre_row + cos * y - sin * half
        column_0 = centre_column - sin * y - cos * half
        for j in range(size):
            row = row_0 + sin * j
            column = column_0 + cos * j
            r = int(row)
            c = int(column)
            u = np.float32(row - r)
            v = np.float32(column - c)
            one = np.float32(1.0)
            sixth = np.float32(1.0 / 6.0)
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
                line = view[r - 1 + k]
                total += weight * (v0 * line[c - 1] + v1 * line[c] + v2 * line[c + 1] + v3 * line[c + 2])
            frame[i, j] = total
