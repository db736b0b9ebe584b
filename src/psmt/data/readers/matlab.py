"""Series in MATLAB's ``.mat`` files, up to version 7.2: plain numbers are read, and nothing else is looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from psmt.data.contract import Opener, has_suffix
from psmt.data.readers.series import SeriesSource
from psmt.errors import FrameSourceError

_NAMES = ("series", "frames", "X")
"""What the array to read may be called where a file has several."""

_NUMBERS = ("double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
"""MATLAB's classes of plain numbers."""


def open_mat(path: Path, stop: int | None = None) -> SeriesSource:
    """Return the series ``(time, features)`` of a ``.mat`` file: its only matrix of numbers, or that called ``series``.

    Single numbers and vectors, such as a TR, are passed over.
    """
    from scipy.io import loadmat, whosmat

    try:
        with path.open("rb") as file:
            if b"MATLAB 7.3" in file.read(128):  # which is HDF5 behind this header
                raise FrameSourceError(f"{path} is of MATLAB 7.3; save it by save(name, 'series', '-v7')")
        name = _matrix(path, whosmat(path))
        array = loadmat(path, variable_names=[name])[name]
    except (FrameSourceError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # scipy has many ways to say that a file is damaged
        raise FrameSourceError(f"{path} cannot be read as a MATLAB file: {error}; save it again") from error
    return SeriesSource(name=path.name, array=np.asarray(array), path=path, stop=stop)


def _matrix(path: Path, found: list[tuple[str, tuple[int, ...], str]]) -> str:
    """Return the name of the one matrix that is to be read."""
    matrices = [name for name, shape, kind in found if kind in _NUMBERS and len(shape) == 2 and min(shape) > 1]
    called = matrices if len(matrices) == 1 else [name for name in _NAMES if name in matrices]
    if not called:
        raise FrameSourceError(
            f"{path} has {len(matrices)} matrices ({', '.join(matrices) or 'none'}) and none is called 'series'; "
            "save the one to read, (time, features), under that name"
        )
    return called[0]


MAT: Opener[SeriesSource] = Opener(lambda spec: has_suffix(spec, ".mat"), open_mat)
