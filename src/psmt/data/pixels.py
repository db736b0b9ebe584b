"""What a pixel says: where white is, what is grey, and which numbers are neither."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psmt.errors import FrameSourceError
from psmt.types import Levels
from psmt.utils.validation import check_finite

__all__ = ["Frame", "channels", "check_kind", "grey", "scaled"]

Frame: TypeAlias = Levels
"""One frame, ``(height, width)`` or in colour ``(height, width, 3)``, float32 with white at 1."""

REC601 = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""What red, green and blue add to grey."""


def white_level(dtype: np.dtype[Any]) -> float | None:
    """Return the value that means white in an integer dtype; None for all kinds that have no agreed one."""
    return {"b1": 1.0, "u1": 255.0, "u2": 65535.0}.get(f"{dtype.kind}{dtype.itemsize}")


def check_kind(dtype: np.dtype[Any], *, where: str) -> None:
    """Raise unless numbers of this kind are grey levels."""
    if not (white_level(dtype) or dtype.kind == "f"):
        raise FrameSourceError(
            f"{where} has dtype {dtype}, which has no agreed white; "
            "give bool, uint8, uint16, or floating point with white at 1"
        )


def scaled(pixels: NDArray[Any], *, where: str) -> Frame:
    """Return pixels as float32: integers with white at 1, floating point as it is.

    >>> scaled(np.array([0, 51, 255], dtype=np.uint8), where="a doctest")
    array([0. , 0.2, 1. ], dtype=float32)
    """
    if top := white_level(pixels.dtype):
        return pixels.astype(np.float32) / np.float32(top)
    with np.errstate(over="ignore"):
        values = pixels.astype(np.float32)
    check_finite(values, name=where, error=FrameSourceError)
    return values


def grey(pixels: Frame) -> Frame:
    """Return ``(height, width)`` Rec. 601 luma of ``(height, width, 3)`` pixels; grey passes through."""
    return pixels if pixels.ndim == 2 else pixels @ REC601


def channels(pixels: Frame, *, colour: bool) -> Frame:
    """Return pixels with ``colour`` as ``(height, width, 3)``, a grey frame three times over, else as `grey`."""
    if not colour:
        return grey(pixels)
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels
