"""Frames from anywhere, in constant memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.errors import FrameSourceError, MissingSourceError
from psmt.sources.arrays import ArrayFrames, NpzFrames, open_array, open_npy, open_npz
from psmt.sources.contract import Frame, FrameSource, check_stop
from psmt.sources.glide import GlideFilm, GlideMotion, parse_glide
from psmt.sources.images import ImageFolder, open_images
from psmt.sources.video_files import VideoFilm, open_video

__all__ = [
    "ArrayFrames",
    "Frame",
    "FrameSource",
    "GlideFilm",
    "GlideMotion",
    "ImageFolder",
    "NpzFrames",
    "VideoFilm",
    "open_frames",
]


def open_frames(source: str | os.PathLike[str] | NDArray[Any] | FrameSource, *, stop: int | None = None) -> FrameSource:
    """Return the frames of a film, folder, file or array as a `FrameSource`.

    Parameters
    ----------
    source : path, str, array or FrameSource
        - a video in any container that libav opens (mp4, mov, mkv, avi, webm, ...);
        - a folder of images, taken in natural order (``img2`` before ``img10``);
        - a ``.npy`` file, or a ``.npz`` file with one array or one called ``frames``;
        - ``"builtin:glide"``, with options such as ``"builtin:glide?frames=2000&seed=1&noise=0.02"``;
        - an array ``(time, height, width)`` or ``(time, height, width, 3)``;
        - a `FrameSource`, which only ``stop`` is applied to.
    stop : int, optional
        Read no frame from this index on.

    Raises
    ------
    FrameSourceError
        When the source cannot be read. Damage that shows only later is raised while iterating.

    Examples
    --------
    >>> film = open_frames("builtin:glide?frames=50&seed=1", stop=3)
    >>> film.n_frames, film.shape
    (3, (200, 200))
    >>> [frame.dtype.name for frame in film]
    ['float32', 'float32', 'float32']
    """
    check_stop(stop)
    if isinstance(source, FrameSource):
        return source.head(stop)
    if isinstance(source, np.ndarray):
        return open_array(source, stop=stop)
    if isinstance(source, str) and source.startswith("builtin:"):
        return parse_glide(source).head(stop)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source is a {type(source).__name__}; give a path, 'builtin:glide', an array or a FrameSource")
    return _open_path(Path(source), stop=stop)


def _open_path(path: Path, *, stop: int | None) -> FrameSource:
    if not path.exists():
        raise MissingSourceError(f"{path} does not exist; check the path, or try builtin:glide")
    try:
        if path.is_dir():
            return open_images(path, stop=stop)
        if path.suffix.lower() == ".npy":
            return open_npy(path, stop=stop)
        if path.suffix.lower() == ".npz":
            return open_npz(path, stop=stop)
        return open_video(path, stop=stop)
    except PermissionError as error:
        raise FrameSourceError(f"{path} may not be read ({error.strerror}); check its permissions") from error
