"""Checks of grey levels that `FramePSMT` and its baselines are given."""

from __future__ import annotations

from numpy.typing import ArrayLike

from psmt.errors import NotEnoughFramesError
from psmt.schema import Field
from psmt.types import Levels
from psmt.validation import check_levels

FRAME_FIELD = Field(("height", "width"), "float32", low=-1e8, high=1e8)
"""A saved frame: grey levels, white at 1 or wherever it is. Their fourth powers stay finite in float32."""


def check_film(frames: ArrayLike, *, minimum: int) -> Levels:
    """Finite grey levels (time, height, width) of at least `minimum` frames."""
    film = check_levels(frames, name="frames", n_axes=3)
    if len(film) < minimum:
        raise NotEnoughFramesError(f"frames has {len(film)} frames; at least {minimum} are needed")
    return film


def check_next_frame(frame: ArrayLike, shape: tuple[int, ...]) -> Levels:
    """Finite grey levels (height, width) of the shape that the model was fitted with."""
    received = check_levels(frame, name="frame", n_axes=2)
    if received.shape != shape:
        raise ValueError(f"frame has shape {received.shape}; the model was fitted with frames of {shape}")
    return received
