"""Input of the predictor: reads films frame by frame at a chosen height, and checks films and frames."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from psmt.data import Frame, FrameSource
from psmt.data.contract import REC601
from psmt.data.patches import resize_weights
from psmt.errors import NotEnoughFramesError
from psmt.numerics.arrays import array_namespace
from psmt.types import Levels
from psmt.utils.constraints import Constraint, allowing, check_parameters, count
from psmt.utils.validation import check_levels

SMALLEST = 16  # side of the smallest frame that is predicted
_COLOURED = 0.05  # a frame has colour if a channel differs from the luma by more than this; less may be rounding


@dataclass(frozen=True)
class FrameReader:
    """Reads the whole picture of films, without cropping it, one frame at a time.

    Parameters
    ----------
    size : int or 'native'
        Height in pixels to which frames are shrunk. The aspect ratio stays the same. 'native' keeps the frames as they
        are.
    """

    size: int | Literal["native"] = 200

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {"size": allowing("native", count(SMALLEST))}

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)

    def shape(self, film: FrameSource) -> tuple[int, int]:
        """Return the height and width of the frames that `read` yields. Raise `ValueError` if the film is too small."""
        height, width = film.shape
        if min(height, width) < SMALLEST:
            raise ValueError(f"{film.name} has frames of {height} x {width} pixels; at least {SMALLEST} are needed")
        if self.size == "native":
            return height, width
        least = -(-SMALLEST * height // width)
        if not least <= self.size <= height:
            raise ValueError(
                f"size={self.size} does not suit the frames of {film.name}, {height} rows of {width} pixels; "
                f"use {max(least, SMALLEST)} <= size <= {height}, or native"
            )
        return self.size, round(width * self.size / height)

    def read(self, film: FrameSource) -> Generator[Frame, None, None]:
        """Yield the frames of a film as (height, width, 3). The three channels of a grey film are equal."""
        shape = self.shape(film)
        for pixels in film.iter_colour():
            yield pixels if film.shape == shape else resized(pixels, shape)


def resized(pixels: Frame, shape: tuple[int, int]) -> Frame:
    """Return a colour frame (height, width, 3), resized to `shape` by averaging over areas."""
    height, width, n_channels = pixels.shape
    down, right = (resize_weights(old, new) for old, new in zip((height, width), shape, strict=True))
    rows = (down @ pixels.reshape(height, -1).astype(np.float64)).reshape(shape[0], width, n_channels)
    columns = right @ rows.transpose(1, 0, 2).reshape(width, -1)
    return np.asarray(columns.reshape(shape[1], shape[0], n_channels).transpose(1, 0, 2).astype(np.float32))


# Colour: red and blue minus the luma are the chroma. The luma and these two determine the frame.


def luma(frames: Levels) -> Levels:
    """Return the Rec. 601 luma (..., height, width) of colour frames (..., height, width, 3)."""
    return frames @ array_namespace(frames).asarray(REC601, device=frames.device)


def split(frame: Levels) -> tuple[Levels, Levels | None]:
    """Return the luma (height, width) and the chroma (2, height, width) of a frame. A grey frame's chroma is None."""
    if frame.ndim == 2:
        return frame, None
    grey = luma(frame)
    return grey, array_namespace(grey).stack([frame[:, :, 0] - grey, frame[:, :, 2] - grey])


def join_colour(grey: Levels, chroma: Levels) -> Levels:
    """Return the colour frame (height, width, 3) with this luma and chroma. This is the inverse of `split`."""
    red, green, blue = REC601.tolist()
    middle = grey - (red * chroma[0] + blue * chroma[1]) / green
    return array_namespace(grey).stack([grey + chroma[0], middle, grey + chroma[1]], axis=2)


def has_colour(frames: Levels) -> bool:
    """Return whether any of the frames (time, height, width, 3) has colour beyond rounding errors."""
    return any(float(np.ptp(frame, axis=2).max()) > _COLOURED for frame in frames)


# Checks


def check_film(frames: ArrayLike | FrameSource, *, minimum: int) -> Levels:
    """Return checked levels (time, height, width), or (time, height, width, 3) in colour. Sources are read in grey."""
    if isinstance(frames, FrameSource):
        # The array grows while it is read: a file may claim any number of frames.
        frames = np.fromiter(frames, np.dtype((np.float32, frames.shape)))
    film = check_levels(frames, name="frames", n_axes=3)
    _check_enough(len(film), minimum)
    return film


def check_grey_film(frames: ArrayLike | FrameSource, *, minimum: int) -> Levels:
    """Return the checked grey levels (time, height, width) of a film. Colour is reduced to luma."""
    film = check_film(frames, minimum=minimum)
    return luma(film) if film.ndim == 4 else film


def check_each(source: FrameSource, *, minimum: int) -> Iterator[Levels]:
    """Yield each frame (height, width) of a source, checked. Raise an error if there are fewer than `minimum`."""
    n = 0
    for frame in source:
        n += 1
        yield check_next_frame(frame, source.shape)
    _check_enough(n, minimum)


def _check_enough(n: int, minimum: int) -> None:
    if n < minimum:
        raise NotEnoughFramesError(f"frames has {n} frames; at least {minimum} are needed")


def check_next_frame(frame: ArrayLike, shape: tuple[int, ...]) -> Levels:
    """Return a frame as finite levels. Raise an error unless it has the `shape` of the frames seen in `fit`."""
    received = check_levels(frame, name="frame", n_axes=2)
    if received.shape != shape:
        raise ValueError(f"frame has shape {received.shape}; the model was fitted with frames of {shape}")
    return received
