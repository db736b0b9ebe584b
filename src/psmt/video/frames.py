"""Frames as they come in: read from a film at a chosen size, and checked before they are used."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.data import Frame, FrameSource
from psmt.data.contract import grey
from psmt.data.patches import PatchCutter
from psmt.errors import NotEnoughFramesError
from psmt.types import Levels
from psmt.utils.constraints import Constraint, allowing, check_parameters, count
from psmt.utils.validation import check_levels

SMALLEST = 16  # side of the smallest frame that is predicted


class ColourFrame(NamedTuple):
    """A frame as luma, which is predicted, and chroma, which is carried along; they add up to its colours."""

    luma: Frame
    """Grey levels (height, width)."""
    chroma: Frame
    """Red, green and blue less the luma (height, width, 3); zeros in a grey film."""

    def coloured(self, luma: NDArray[Any]) -> NDArray[Any]:
        """Return other grey levels (height, width) in the colours of this frame, (height, width, 3)."""
        return np.asarray(luma[:, :, None] + self.chroma)


@dataclass(frozen=True)
class FrameReader:
    """Reads films one frame at a time.

    Parameters
    ----------
    size : int or 'native'
        Height and width to which the largest centred square is shrunk; 'native' keeps the film's own picture.
    """

    size: int | Literal["native"] = 200

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {"size": allowing("native", count(SMALLEST))}

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)

    def shape(self, film: FrameSource) -> tuple[int, int]:
        """Return height and width of the frames that `read` yields; raise for films that are too small."""
        height, width = film.shape
        side = min(height, width)
        if side < SMALLEST:
            raise ValueError(f"{film.name} has frames of {height} x {width} pixels; at least {SMALLEST} are needed")
        if self.size == "native":
            return height, width
        if self.size > side:
            raise ValueError(
                f"size={self.size} is larger than the frames of {film.name}, {height} x {width} pixels; "
                f"use size <= {side}, or native"
            )
        return self.size, self.size

    def read(self, film: FrameSource) -> Generator[ColourFrame, None, None]:
        """Yield the frames of a film."""
        cutter = None
        if self.size != "native" and film.shape != self.shape(film):
            cutter = PatchCutter(frame_size=self.size, patch_size=1)
        for pixels in film.iter_colour():
            if cutter is not None:
                pixels = np.stack([cutter.reduce(pixels[:, :, k]) for k in range(3)], axis=2).astype(np.float32)
            luma = grey(pixels)
            yield ColourFrame(luma, pixels - luma[:, :, None])


def check_film(frames: ArrayLike | FrameSource, *, minimum: int) -> Levels:
    """Return finite grey levels (time, height, width) of at least `minimum` frames, given as an array or a source."""
    if isinstance(frames, FrameSource):
        # The array grows while it is read: a file may claim any number of frames.
        frames = np.fromiter(frames, np.dtype((np.float32, frames.shape)))
    film = check_levels(frames, name="frames", n_axes=3)
    _check_enough(len(film), minimum)
    return film


def check_each(source: FrameSource, *, minimum: int) -> Iterator[Levels]:
    """Yield finite grey levels (height, width) of each of at least `minimum` frames, without storing the film."""
    n = 0
    for frame in source:
        n += 1
        yield check_next_frame(frame, source.shape)
    _check_enough(n, minimum)


def _check_enough(n: int, minimum: int) -> None:
    if n < minimum:
        raise NotEnoughFramesError(f"frames has {n} frames; at least {minimum} are needed")


def check_next_frame(frame: ArrayLike, shape: tuple[int, ...]) -> Levels:
    """Return finite grey levels (height, width) of the shape that the model was fitted with."""
    received = check_levels(frame, name="frame", n_axes=2)
    if received.shape != shape:
        raise ValueError(f"frame has shape {received.shape}; the model was fitted with frames of {shape}")
    return received
