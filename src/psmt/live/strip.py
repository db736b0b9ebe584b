"""The three pictures of a frame, beside each other in one JPEG file that all pages share."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from psmt.types import Levels

ERROR_SCALE = 0.4
"""Absolute error that the error map draws brightest; below it goes by the root, so that small errors are seen too."""

_QUALITY = 85
"""As JPEG counts."""


def draw_strip(frame: Levels, expected: Levels | None, error: Levels) -> bytes:
    """Return a JPEG file (size, 3 size) of frame, expectation and absolute error, each (size, size).

    Where nothing is expected yet, the second one is grey.
    """
    size = len(frame)
    levels = np.full((size, 3 * size), 0.5, np.float32)
    levels[:, :size] = frame
    if expected is not None:
        levels[:, size : 2 * size] = expected
    np.sqrt(error / np.float32(ERROR_SCALE), out=levels[:, 2 * size :])
    np.clip(levels, 0, 1, out=levels)
    file = BytesIO()
    Image.fromarray((levels * np.float32(255) + np.float32(0.5)).astype(np.uint8)).save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()
