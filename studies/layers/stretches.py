"""Films, the stretches of them that are predicted, and the samples that rules learn from.

A patch of 16 x 16 pixels is predicted as four blocks of 8 x 8. Everything is learned from at most 300 frames before the
start of a stretch; the next 48 frames are predicted one step ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from psmt.data import FrameSource, open_frames
from psmt.data.patches import PatchCutter
from psmt.engines import engine_for
from psmt.types import Ints, Levels, Mask
from studies.layers.shapes import SHAPES

SIDE = 128  # rows and columns of the part of the frame that is used
PATCH, BLOCK = 16, 8
CONTEXT = 2  # pixels around a block that rules see
PAST, HORIZON = 300, 48
STARTS = (0.5, 0.65, 0.8, 0.95)  # of the film's length
EXPLORED = (0.15, 0.3)  # starts that were used to choose the form and the constants of the rules
N_PLACES = 40  # patches at random places that rules learn from
SCORED = np.array([(56, 56), (24, 24), (24, 88), (88, 24), (88, 88)])  # corners of the patches that are predicted
FLAT = 0.02  # contrast, in grey levels, that is added to that of a block

GLIDE = "builtin:glide?frames=696&seed={}&speed={}&noise={}&size=128"
BUILTIN = (
    *(GLIDE.format(11 + k, speed, 0.05) for k, speed in enumerate((0.25, 0.5, 1, 2))),
    GLIDE.format(15, 0.5, 0.3),
    "builtin:shapes?frames=696&seed=11&shapes=9&speed=0.7&noise=0.03&size=128",
)
"""Built-in films that are scored beside the given ones."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Blocks and what is known about them, in the order time, patch, block; n of them."""

    x: Levels
    """The last frame in the block and its context, (n, 144)."""
    d: Levels
    """Its change since the frame before."""
    d2: Levels
    """The change before that."""
    w: Levels
    """Its change by motion: the last frame moved on by the optical flow of the last two, less the last frame."""
    w_patch: Levels
    """The same, by the flow inside the patch alone, in the block (n, 64)."""
    y: Levels
    """The change to the next frame in the block (n, 64)."""
    mean: Levels
    scale: Levels
    """Mean and contrast (n, 1) of the last frame in the block."""
    shape: tuple[int, int]
    """Times, and blocks at each time."""

    def block(self, name: str) -> Levels:
        """A field without its context, (n, 64)."""
        values: Levels = getattr(self, name)
        return values if values.shape[1] == BLOCK**2 else values[:, MIDDLE]

    @property
    def held_out(self) -> Mask:
        """Samples (n,) that penalties are chosen on: every fifth piece of twelve frames.

        The last fifth of the past would do worse: a stretch is seldom like the frames just before it alone.
        """
        return np.repeat(np.arange(self.shape[0]) // 12 % 5 == 4, self.shape[1])

    def stack(self, *, moved: bool = False, n_lags: int = 2, motion: str = "w") -> Levels:
        """Standardised blocks of the last `n_lags` frames, latest first (n, n_lags * 64); one step later if `moved`."""
        x = self.block("x")
        frames = [x + self.block(motion), x] if moved else [x, x - self.block("d")]
        return np.concatenate([(frame - self.mean) / self.scale for frame in frames[:n_lags]], axis=1)


_WIDE = BLOCK + 2 * CONTEXT
MIDDLE = np.arange(_WIDE**2).reshape(_WIDE, _WIDE)[CONTEXT:-CONTEXT, CONTEXT:-CONTEXT].ravel()


@dataclass(frozen=True, eq=False)
class Stretch:
    """Frames (time, SIDE, SIDE) of a film around a start."""

    film: str
    start: int
    """Frame of the film at which predictions begin."""
    frames: Levels
    n_past: int
    """Frames before the start; the others are predicted."""
    seed: int = 0

    @cached_property
    def moved(self) -> Levels:
        """Each frame moved on by the flow since the frame before (time, SIDE, SIDE)."""
        kernels = engine_for("cpu").frames
        pairs = zip(self.frames, self.frames[1:], strict=False)
        return np.stack([self.frames[0], *(kernels.moved(now, kernels.flow(before, now)) for before, now in pairs)])

    @cached_property
    def learned(self) -> Samples:
        """Samples of the past at random places."""
        corners = np.random.default_rng(self.seed).integers(PATCH, SIDE - 2 * PATCH + 1, (N_PLACES, 2))
        return self.samples(np.arange(2, self.n_past - 1), corners)

    @cached_property
    def scored(self) -> Samples:
        """Samples of the predicted frames, at the scored patches."""
        return self.samples(np.arange(self.n_past - 1, len(self.frames) - 1), SCORED)

    def own(self, patch: int) -> Samples:
        """Samples of the past at one of the scored patches."""
        return self.samples(np.arange(2, self.n_past - 1), SCORED[[patch]])

    def samples(self, times: Ints, patches: Ints) -> Samples:
        """Samples of the patches with these corners (n, 2), where the last frame is that at each of the times."""
        corners = blocks_of(patches)
        wide = corners - CONTEXT
        now, before, earlier = (cut(self.frames[times - lag], wide, _WIDE) for lag in range(3))
        block = now[:, MIDDLE]
        return Samples(
            x=now,
            d=now - before,
            d2=before - earlier,
            w=cut(self.moved[times], wide, _WIDE) - now,
            w_patch=self._inside(times, patches) - block,
            y=cut(self.frames[times + 1], corners, BLOCK) - block,
            mean=block.mean(axis=1, keepdims=True),
            scale=np.sqrt(block.var(axis=1, keepdims=True) + np.float32(FLAT**2)),
            shape=(len(times), len(corners)),
        )

    def _inside(self, times: Ints, patches: Ints) -> Levels:
        """Blocks (n, 64) of patches that are moved on by the flow inside them."""
        kernels = engine_for("cpu").frames
        moved = []
        for t in times:
            for i, j in patches:
                before, now = (np.ascontiguousarray(self.frames[s, i : i + PATCH, j : j + PATCH]) for s in (t - 1, t))
                moved.append(kernels.moved(now, kernels.flow(before, now)))
        return cut(np.array(moved), blocks_of(np.zeros((1, 2), np.int64)), BLOCK)


def blocks_of(patches: Ints) -> Ints:
    """Corners (4 n, 2) of the blocks of patches with these corners (n, 2)."""
    inside = np.array([(i, j) for i in (0, BLOCK) for j in (0, BLOCK)])
    return np.asarray((patches[:, None] + inside).reshape(-1, 2), dtype=np.int64)


def cut(frames: Levels, corners: Ints, side: int) -> Levels:
    """Squares at the corners (n, 2) of frames (time, height, width), as (time * n, side**2)."""
    windows = sliding_window_view(frames, (side, side), axis=(1, 2))
    return np.ascontiguousarray(windows[:, corners[:, 0], corners[:, 1]]).reshape(-1, side * side)


def stretches(film: str, *, explored: bool = False) -> Iterator[Stretch]:
    """Yield the stretches of a film that are scored, or those that choices were made on."""
    name = film.rsplit("/", 1)[-1].removeprefix("builtin:").replace("frames=696&", "").replace("&size=128", "")
    frames = _read(film)
    fractions: tuple[float, ...] = EXPLORED if explored else STARTS
    if film.startswith("builtin:") or len(frames) * (fractions[1] - fractions[0]) < HORIZON:
        fractions = fractions[:1]
    for fraction in fractions:
        start = int(fraction * len(frames))
        first = max(start - PAST, 0)
        yield Stretch(name, start, frames[first : start + HORIZON], start - first)


def _read(film: str) -> Levels:
    """The middle (time, SIDE, SIDE) of a film whose frames are reduced to at most 200 x 200."""
    opened: FrameSource = SHAPES.parse(film) if SHAPES.matches(film) else open_frames(film)
    frames = []
    for frame in opened:
        size = min(200, *np.shape(frame)[:2])
        reduced = PatchCutter(frame_size=size, patch_size=PATCH).reduce(frame)
        first = (size - SIDE) // 2
        frames.append(reduced[first : first + SIDE, first : first + SIDE].astype(np.float32))
    return np.array(frames)
