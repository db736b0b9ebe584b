"""Frames of a film at a chosen size, in luma, which is predicted, and chroma, which is carried along."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmt.data import Frame, FrameSource
from psmt.data.contract import grey
from psmt.data.patches import PatchCutter
from psmt.utils.validation import Constraint, allowing, check_parameters, count

SMALLEST = 16
"""Side of the smallest frame that is predicted: one window."""


class ColourFrame(NamedTuple):
    """A frame in two parts that add up to its colours."""

    luma: Frame
    """Grey levels (height, width)."""
    chroma: Frame
    """(height, width, 3): what is left of red, green and blue; zeros in a grey film."""

    def coloured(self, luma: NDArray[Any]) -> NDArray[Any]:
        """Other grey levels (height, width) in the colours of this frame, (height, width, 3)."""
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
        """Height and width of the frames that `read` yields; raises for films that are too small."""
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
        if self.size == "native" or film.shape == self.shape(film):
            for pixels in film.iter_colour():
                yield _split(pixels)
            return
        cutter = PatchCutter(frame_size=self.size, patch_size=1)
        for pixels in film.iter_colour():
            channels = [cutter.reduce(pixels[:, :, k]) for k in range(3)]
            yield _split(np.stack(channels, axis=2).astype(np.float32))


def _split(pixels: Frame) -> ColourFrame:
    """Luma and chroma of red, green and blue (height, width, 3)."""
    luma = grey(pixels)
    return ColourFrame(luma, pixels - luma[:, :, None])
