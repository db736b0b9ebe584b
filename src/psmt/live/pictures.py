"""Pictures that the page shows: frame, prediction and error as one JPEG strip."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from psmt.types import Levels

ERROR_SCALE = 0.4
"""Absolute error that is drawn brightest. Brightness is the square root of the error, to make small errors visible."""


def draw_strip(frame: Levels, predicted: Levels | None, error: Levels) -> bytes:
    """Return a JPEG file of frame, prediction (grey if None) and absolute error, side by side."""
    return draw_row(frame, predicted, np.sqrt(error / np.float32(ERROR_SCALE)))


def draw_row(*parts: Levels | None) -> bytes:
    """Return a JPEG file of n pictures of the same height and width, side by side. None is drawn grey.

    It has colour if one of the pictures has.
    """
    known = [part for part in parts if part is not None]
    shape = max((part.shape for part in known), key=len)
    levels = np.full((len(parts), *shape), 0.5, np.float32)
    for place, part in zip(levels, parts, strict=True):
        if part is not None:
            place[:] = part if part.shape == shape else part[:, :, None]
    levels = np.concatenate(list(np.clip(levels, 0, 1)), axis=1)
    file = BytesIO()
    Image.fromarray((levels * np.float32(255) + np.float32(0.5)).astype(np.uint8)).save(file, "JPEG", quality=85)
    return file.getvalue()
