"""Data sources: frames of films, images, arrays, cameras and streams, and series ``(time, features)``.

To add a source, write a file with a function ``open_..(spec, stop)`` and add the function to `_BY_SUFFIX` or `_reader`.
The base classes are in `psmt.data.contract`.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.data.contract import Film, Frame, FrameSource, FrameStream, IndexedFilm, check_stop, require_film
from psmt.data.readers.arrays import open_array, open_npy, open_npz
from psmt.data.readers.images import open_images, open_tiff
from psmt.data.readers.streams import open_camera, open_stream, open_url
from psmt.data.readers.tables import SeriesSource, open_data_frame, open_mat, open_text
from psmt.data.readers.video import open_video
from psmt.data.synthetic.brain import BOLD, BoldSimulation
from psmt.data.synthetic.glide import GLIDE, GlideFilm, GlideMotion
from psmt.errors import FrameSourceError, MissingSourceError
from psmt.utils.files import shown

__all__ = ["Film", "Frame", "FrameSource", "FrameStream", "IndexedFilm", "SeriesSource", "open_stream", "require_film"]
__all__ += ["BoldSimulation", "GlideFilm", "GlideMotion"]
__all__ += ["Spec", "open_frames", "open_repeatable", "open_series", "open_source"]

Spec: TypeAlias = str | os.PathLike[str] | NDArray[Any] | Iterator[ArrayLike] | FrameSource | SeriesSource
"""Anything that a source can be opened from."""

Reader: TypeAlias = Callable[[Any, int | None], FrameSource | SeriesSource]
"""A function ``(spec, stop)`` that opens a source."""

_BY_SUFFIX: dict[str, Reader] = {
    ".csv": open_text,
    ".mat": open_mat,
    ".npy": open_npy,
    ".npz": open_npz,
    ".tif": open_tiff,
    ".tiff": open_tiff,
    ".tsv": open_text,
}
"""Readers of files by suffix. A file with any other suffix is opened as a video."""


def _reader(spec: object) -> Reader | None:
    """Return the function that opens a source of this kind, or None. A file path must be a `Path`, not a string."""
    if isinstance(spec, FrameSource | SeriesSource):
        return lambda opened, stop: opened.head(stop)
    if isinstance(spec, str):
        if GLIDE.matches(spec):
            return lambda name, stop: GLIDE.parse(name).head(stop)
        if BOLD.matches(spec):
            # The simulation has several subjects; a command that takes one series gets the first.
            return lambda name, stop: BOLD.parse(name).subject(0).head(stop)
        if spec.startswith("builtin:"):
            name = shown(spec.partition("?")[0])
            raise FrameSourceError(f"there is no built-in film {name}; use builtin:glide or builtin:bold")
        if spec.startswith("camera:"):
            return open_camera
        return open_url if re.match(r"[a-z][a-z0-9+.-]+://", spec, re.IGNORECASE) else None
    if isinstance(spec, Path):
        return open_images if spec.is_dir() else _BY_SUFFIX.get(spec.suffix.lower(), open_video)
    if isinstance(spec, np.ndarray):
        return open_array
    if hasattr(spec, "columns") and hasattr(spec, "to_numpy"):  # pandas need not be installed
        return open_data_frame
    return open_stream if isinstance(spec, Iterator) else None


def open_source(source: Spec, *, stop: int | None = None) -> FrameSource | SeriesSource:
    """Open a source: return a `FrameSource` for frames, or a `SeriesSource` for a ``(time, features)`` series.

    A source that cannot be read raises `FrameSourceError`. Damage inside a film raises it later, while iterating.

    Parameters
    ----------
    source : path, str, array, iterator, FrameSource or SeriesSource
        - a video in any container that libav opens (mp4, mov, mkv, avi, webm, ...);
        - a folder of images, taken in natural order (``img2`` before ``img10``);
        - a ``.tif`` or ``.tiff`` file, whose pages are the frames;
        - a ``.npy`` file, or a ``.npz`` file with a single array, or with one called ``frames`` or ``series``;
        - a series in a ``.csv`` or ``.tsv`` file, in a ``.mat`` file of MATLAB, or in a pandas data frame;
        - ``"builtin:glide"``, with options such as ``"builtin:glide?frames=2000&seed=1&noise=0.2"``;
        - ``"builtin:bold"``, the series of a simulated brain scan, with the options of `BoldSimulation`;
        - ``"camera:0"``, or an address such as ``"rtsp://..."``, ``"http://..."``, ``"udp://..."`` (a `FrameStream`);
        - an array ``(time, height, width)`` or ``(time, height, width, 3)``, or ``(time, features)`` for a series;
        - an iterator over frames (a `FrameStream`), as for `open_stream`;
        - an opened source, to which only ``stop`` is applied.
    stop : int, optional
        Read at most this many frames.

    Examples
    --------
    >>> import numpy as np
    >>> open_source(np.zeros((7, 3)), stop=5)
    SeriesSource(name='array', feature_names=None, path=None, stop=5)
    >>> open_source("builtin:glide?frames=50").repeatable
    True
    """
    check_stop(stop)
    spec: object = source
    try:
        reader = None if isinstance(source, os.PathLike) else _reader(source)
        if reader is None and isinstance(source, str | os.PathLike):
            spec = Path(source)
            if not spec.exists():
                raise MissingSourceError(f"{shown(spec)} does not exist; check the path, or try builtin:glide")
            reader = _reader(spec)
        if reader is not None:
            return reader(spec, stop)
    except MissingSourceError:
        raise
    except OSError as error:  # a folder without permission, a name that is too long
        why = error.strerror or error
        raise FrameSourceError(f"{shown(spec)} may not be read ({why}); check its name and permissions") from error
    raise TypeError(
        f"source is a {type(source).__name__}; give a path, 'builtin:glide', an array, an iterator or a FrameSource"
    )


def open_frames(source: Spec, *, stop: int | None = None) -> FrameSource:
    """Open frames from a film, folder, file, array, camera or stream. See `open_source` for the kinds of source.

    The result is a `Film`, which can be read again, or a `FrameStream`, which cannot. Iterating yields grey frames
    (height, width), float32. A series, or a source that cannot be read, raises `FrameSourceError`.

    >>> film = open_frames("builtin:glide?frames=50&seed=1", stop=3)
    >>> film.n_frames, film.shape
    (3, (200, 200))
    >>> [frame.dtype.name for frame in film]
    ['float32', 'float32', 'float32']
    """
    opened = open_source(source, stop=stop)
    if isinstance(opened, FrameSource):
        return opened
    raise FrameSourceError(
        f"{opened.name} has shape {opened.values.shape}, which is a series (time, features); frames are "
        "(time, height, width) or (time, height, width, 3): give those, or open it with open_series"
    )


def open_series(source: Spec, *, stop: int | None = None) -> SeriesSource:
    """Open a ``(time, features)`` series. See `open_source`. A source of frames raises `FrameSourceError`.

    >>> import numpy as np
    >>> open_series(np.zeros((7, 3))).n_features
    3
    """
    opened = open_source(source, stop=stop)
    if isinstance(opened, SeriesSource):
        return opened
    height, width = opened.shape
    raise FrameSourceError(
        f"{opened.name} has frames of {height} x {width} pixels; a series is (time, features): "
        "open it with open_frames, or make a series of its patches with read_patches"
    )


def open_repeatable(source: Spec, *, wanted_by: str, stop: int | None = None) -> Film | SeriesSource:
    """Open a film or a series. A stream raises an error, because the caller `wanted_by` reads its data again."""
    opened = open_source(source, stop=stop)
    return opened if isinstance(opened, SeriesSource) else require_film(opened, wanted_by=wanted_by)
