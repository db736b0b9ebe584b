"""Checks of grey levels that `FramePSMT` and its baselines are given."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from psmt.data import FrameSource
from psmt.errors import NotEnoughFramesError
from psmt.persistence.schema import Field
from psmt.types import Levels
from psmt.utils.validation import LARGEST_LEVEL, check_levels

FRAME_FIELD = Field(("height", "width"), "float32", low=-LARGEST_LEVEL, high=LARGEST_LEVEL)
"""A saved frame: grey levels, as large as they may be given."""


_FIRST_BYTES = 1 << 28
"""Room that is made at once for a source; a file may say that it has any number of frames."""


def check_film(frames: ArrayLike | FrameSource, *, minimum: int) -> Levels:
    """Finite grey levels (time, height, width) of at least `minimum` frames, given as an array or a source."""
    if isinstance(frames, FrameSource):
        # Straight into one array, where the source knows how many there are: a list beside it would double the memory.
        most = max(_FIRST_BYTES // (4 * max(prod(frames.shape), 1)), 64)
        read: Levels = np.empty((min(frames.n_frames or 0, most), *frames.shape), np.float32)
        n = 0
        for n, frame in enumerate(frames, start=1):
            if n > len(read):
                read = np.concatenate([read, np.empty((max(n, 64), *frames.shape), np.float32)])
            read[n - 1] = frame
        frames = read[:n]
    film = check_levels(frames, name="frames", n_axes=3)
    check_enough(len(film), minimum)
    return film


def check_each(source: FrameSource, *, minimum: int) -> Iterator[Levels]:
    """Finite grey levels (height, width) of each of at least `minimum` frames: a source is never held as a whole."""
    n = 0
    for frame in source:
        n += 1
        yield check_next_frame(frame, source.shape)
    check_enough(n, minimum)


def check_enough(n: int, minimum: int) -> None:
    """Raise `NotEnoughFramesError` unless there are as many frames as are needed."""
    if n < minimum:
        raise NotEnoughFramesError(f"frames has {n} frames; at least {minimum} are needed")


def check_next_frame(frame: ArrayLike, shape: tuple[int, ...]) -> Levels:
    """Finite grey levels (height, width) of the shape that the model was fitted with."""
    received = check_levels(frame, name="frame", n_axes=2)
    if received.shape != shape:
        raise ValueError(f"frame has shape {received.shape}; the model was fitted with frames of {shape}")
    return received
