"""From frames to standardised patches, and back: crop, shrink, cut, standardise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from psmt.data import SeriesSource, Spec, open_frames, open_source
from psmt.data.contract import check_stop
from psmt.errors import FrameSourceError
from psmt.types import Array
from psmt.utils.constraints import Constraint, allowing, check_count, check_parameters, check_real, count
from psmt.utils.disk_series import IN_MEMORY, DiskSeries
from psmt.utils.validation import check_finite, real_array

__all__ = ["PatchCutter", "Patches", "destandardise", "iter_patches", "read_patches", "read_values", "standardise"]


_PART = 1 << 12
"""Patches that are standardised at a time when they are written to disk."""


@dataclass(frozen=True, kw_only=True)
class PatchCutter:
    """Cuts one patch out of each frame: crop the largest centred square, resize it, cut the patch.

    Shrinking averages areas with exact fractional weights; enlarging interpolates linearly.

    Parameters
    ----------
    frame_size : int or None
        Height and width of the resized square; None keeps its size.
    patch_size : int
        Height and width of the patch.
    position : (int, int) or None
        Row and column of the patch's top-left corner in the resized square; None is the centre.

    Examples
    --------
    >>> cutter = PatchCutter(frame_size=4, patch_size=2)
    >>> frame = np.arange(64.0).reshape(8, 8)
    >>> cutter.reduce(frame)[1:3, 1:3]
    array([[22.5, 24.5],
           [38.5, 40.5]])
    >>> cutter.cut(frame)
    array([22.5, 24.5, 38.5, 40.5])
    """

    frame_size: int | None = 200
    patch_size: int = 16
    position: tuple[int, int] | None = None

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "frame_size": allowing(None, count()),
        "patch_size": count(),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)
        if self.position is not None:
            if len(self.position) != 2:
                raise ValueError(f"position={self.position!r} must be (row, column), or None for the centre")
            for name, value in zip(("row", "column"), self.position, strict=True):
                check_count(f"position {name}", value, minimum=0)
        if self.frame_size is not None:
            self.corner(self.frame_size)

    def reduce(self, frame: ArrayLike) -> Array:
        """Return the largest centred square of a frame, resized to ``(size, size)``."""
        square = _centred_square(frame)
        side = len(square)
        size = self.frame_size or side
        if size == side:
            return square.astype(np.float64)
        weights = _weights(side, size)
        reduced: Array = (weights @ square.astype(np.float64)) @ weights.T
        return reduced

    def cut(self, frame: ArrayLike) -> Array:
        """Return the patch as a vector ``(patch_size**2,)``; only the pixels it needs are resized."""
        square = _centred_square(frame)
        side = len(square)
        size = self.frame_size or side
        row, column = self.corner(size)
        if size == side:
            patch = square[row : row + self.patch_size, column : column + self.patch_size]
            return patch.astype(np.float64).ravel()
        rows, left = _window(side, size, row, self.patch_size)
        columns, right = _window(side, size, column, self.patch_size)
        return (left @ square[rows, columns].astype(np.float64) @ right.T).ravel()

    def corner(self, size: int) -> tuple[int, int]:
        """Return row and column of the patch's top-left pixel in a square of ``size`` pixels."""
        room = size - self.patch_size
        if room < 0:
            raise ValueError(
                f"patch_size={self.patch_size} is larger than the reduced frame of {size} x {size}; "
                f"use patch_size <= {size} or a larger frame_size"
            )
        if self.position is None:
            return room // 2, room // 2
        if max(self.position) > room:
            raise ValueError(
                f"position={self.position} puts a patch of {self.patch_size} outside the reduced frame of "
                f"{size} x {size}; use rows and columns from 0 to {room}"
            )
        return self.position


@dataclass(frozen=True, kw_only=True, eq=False)
class Patches:
    """Standardised patches with their mean and contrast, so that grey levels can be restored. Made by `standardise`.

    Attributes
    ----------
    values : ndarray (n, features)
        Patches of zero mean and unit variance; zeros for a flat patch.
    mean : ndarray (n,)
        Mean grey level of each patch.
    contrast : ndarray (n,)
        Standard deviation of each patch; 0 for a flat patch, which is restored as its mean.
    """

    values: Array
    mean: Array
    contrast: Array

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: slice) -> Patches:
        """Return the patches of a slice, as views."""
        if not isinstance(key, slice):
            raise TypeError(f"patches[{key!r}] is not a slice; write patches[a:b], or patches.values[{key!r}]")
        return Patches(values=self.values[key], mean=self.mean[key], contrast=self.contrast[key])

    def to_grey(self, standardised: ArrayLike | None = None) -> Array:
        """Return grey levels ``(n, features)`` of these patches, or of others such as predictions of them."""
        values = self.values if standardised is None else np.asarray(standardised, dtype=np.float64)
        if values.shape != self.values.shape:
            raise ValueError(
                f"standardised has shape {values.shape} but the patches have {self.values.shape}; "
                "for other shapes use destandardise(values, mean, contrast)"
            )
        return destandardise(values, self.mean, self.contrast)


def standardise(values: ArrayLike, *, flat: float = 1e-3) -> Patches:
    """Scale each patch ``(n, features)`` to zero mean and unit variance; mean and contrast are kept.

    A patch whose standard deviation is below ``flat`` holds little but noise. It becomes zeros with contrast 0, and is
    restored as its mean.

    Parameters
    ----------
    values : array_like (n, features)
        Grey levels.
    flat : float
        Standard deviation below which a patch is flat.

    Examples
    --------
    >>> patches = standardise([[1.0, 3.0], [5.0, 5.0]])
    >>> patches.values
    array([[-1.,  1.],
           [ 0.,  0.]])
    >>> patches.to_grey()
    array([[1., 3.],
           [5., 5.]])
    """
    grey = real_array(values, name="values").astype(np.float64, copy=False)
    if grey.ndim != 2 or grey.shape[1] == 0:
        raise ValueError(f"values has shape {grey.shape}; patches are (n, features)")
    check_real("flat", flat)
    for index in np.flatnonzero(~np.isfinite(grey).all(axis=1))[:1]:
        check_finite(grey[index], name=f"patch {index}")
    mean = grey.mean(axis=1)
    centred = grey - mean[:, None]
    contrast = np.sqrt(np.einsum("ij,ij->i", centred, centred) / grey.shape[1])
    contrast[contrast < flat] = 0.0
    # A constant patch has contrast 0 even with flat=0.
    scale = np.divide(1.0, contrast, out=np.zeros_like(contrast), where=contrast > 0)
    centred *= scale[:, None]
    return Patches(values=centred, mean=mean, contrast=contrast)


def destandardise(values: ArrayLike, mean: ArrayLike, contrast: ArrayLike) -> Array:
    """Return grey levels ``(..., features)`` of standardised values, given mean and contrast ``(...)``.

    >>> destandardise([-1.0, 1.0], 0.5, 0.25)
    array([0.25, 0.75])
    """
    scale = np.asarray(contrast, dtype=np.float64)[..., None]
    grey: Array = np.asarray(values, dtype=np.float64) * scale + np.asarray(mean, dtype=np.float64)[..., None]
    return grey


def iter_patches(frames: Iterable[ArrayLike], cutter: PatchCutter) -> Iterator[Array]:
    """Yield the grey patch ``(patch_size**2,)`` of each frame, not standardised; one frame is in memory at a time.

    >>> frames = np.zeros((3, 8, 8))
    >>> sum(1 for patch in iter_patches(frames, PatchCutter(frame_size=None, patch_size=4)))
    3
    """
    for index, frame in enumerate(frames):
        yield _cut_finite(cutter, frame, index)


def read_patches(
    source: Spec,
    *,
    frame_size: int | None = 200,
    patch_size: int = 16,
    position: tuple[int, int] | None = None,
    start: int = 0,
    stop: int | None = None,
    flat: float = 1e-3,
    progress: Callable[[int, int | None], object] | None = None,
) -> Patches:
    """Return the standardised patches ``(n, patch_size**2)`` of the frames ``start`` to ``stop``.

    Only the patches are kept in memory.

    Parameters
    ----------
    source : path, str, array, iterator or FrameSource
        Anything that `psmt.data.open_frames` takes; it is read once.
    frame_size, patch_size, position
        As for `PatchCutter`.
    start, stop : int
        First frame, and the frame after the last; None reads to the end of the film.
    flat : float
        As for `standardise`.
    progress : callable, optional
        Called as ``progress(done, total)`` after each frame; ``total`` is None if it is unknown.

    Returns
    -------
    Patches
        `values` ``(n, patch_size**2)`` with the mean and contrast of each patch.

    Raises
    ------
    FrameSourceError
        If the source cannot be read, or ends before ``stop`` or ``start``.

    Examples
    --------
    >>> patches = read_patches("builtin:glide?frames=20", start=5)
    >>> patches.values.shape
    (15, 256)
    """
    cutter = PatchCutter(frame_size=frame_size, patch_size=patch_size, position=position)
    return standardise(np.array(list(_cut_all(source, cutter, start, stop, progress))), flat=flat)


def read_values(
    source: Spec,
    *,
    frame_size: int | None = 200,
    patch_size: int = 16,
    position: tuple[int, int] | None = None,
    stop: int | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    store: Path | None = None,
) -> Array:
    """Return the input of a model, ``(time, features)``: standardised patches of frames, or a series as it is.

    Parameters
    ----------
    source : path, str, array, iterator, FrameSource or SeriesSource
        Anything that `psmt.data.open_source` takes; it is read once.
    frame_size, patch_size, position
        As for `PatchCutter`; ignored for a series.
    stop : int
        Read at most this many frames.
    progress : callable, optional
        As for `read_patches`; called once for a series.
    store : path, optional
        A file for patches of more than 32 MiB, which are then a `DiskSeries` (see `psmt.utils.disk_series`). The file
        is deleted when no array uses it any more.

    Raises
    ------
    FrameSourceError
        If the source cannot be read, or ends before ``stop``.

    Examples
    --------
    >>> read_values("builtin:glide?frames=20", patch_size=8).shape
    (20, 64)
    >>> read_values(np.array([[1.0, 2.0], [3.0, 4.0]]), stop=1)
    array([[1., 2.]])
    """
    opened = open_source(source, stop=stop)
    if not isinstance(opened, SeriesSource):
        cutter = PatchCutter(frame_size=frame_size, patch_size=patch_size, position=position)
        patches = _cut_all(opened, cutter, 0, stop, progress)
        held = np.array(list(islice(patches, None if store is None else IN_MEMORY // (8 * patch_size**2))))
        following = next(patches, None)
        if following is None or store is None:
            return standardise(held).values
        return DiskSeries.write(store, _standardised_parts(held, chain([following], patches)))
    n_frames = opened.n_frames
    if stop is not None and n_frames < stop:
        raise FrameSourceError(f"{opened.name} has {n_frames} frames, too few for stop={stop}; use stop <= {n_frames}")
    if progress is not None:
        progress(n_frames, n_frames)
    return opened.values


def _cut_all(
    source: Spec,
    cutter: PatchCutter,
    start: int,
    stop: int | None,
    progress: Callable[[int, int | None], object] | None,
) -> Iterator[Array]:
    """Yield the patch (patch_size**2,) of each frame from ``start`` to ``stop``; see `read_patches`."""
    check_count("start", start, minimum=0)
    check_stop(stop)
    if stop is not None and stop <= start:
        raise ValueError(f"stop={stop} leaves no frame after start={start}; use stop > start, or None")
    frames = open_frames(source, stop=stop)
    end = frames.n_frames if stop is None else stop
    total = None if end is None else max(end - start, 0)
    seen = 0
    for frame in frames:
        seen += 1
        if seen <= start:
            continue
        yield _cut_finite(cutter, frame, seen - 1)
        if progress is not None:
            progress(seen - start, total)
    if seen <= start or (stop is not None and seen < stop):
        wanted = f"start={start}" if seen <= start else f"stop={stop}"
        raise FrameSourceError(
            f"{frames.name} has {seen} frames, too few for {wanted}; use start < {seen} and stop <= {seen}"
        )


def _standardised_parts(first: Array, patches: Iterator[Array]) -> Iterator[Array]:
    """Yield all patches (n, features) standardised, some at a time."""
    part = first
    while len(part):
        yield standardise(part).values
        part = np.array(list(islice(patches, _PART)))


def _cut_finite(cutter: PatchCutter, frame: ArrayLike, index: int) -> Array:
    patch = cutter.cut(frame)
    check_finite(patch, name=f"frame {index}", error=FrameSourceError)
    return patch


def _centred_square(frame: ArrayLike) -> NDArray[Any]:
    pixels = np.asarray(frame)
    if pixels.ndim != 2 or 0 in pixels.shape:
        raise ValueError(f"a frame of shape {pixels.shape} cannot be cut; give one grey frame (height, width)")
    height, width = pixels.shape
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]


@lru_cache(maxsize=32)
def _weights(side: int, size: int) -> csr_array:
    """Weights ``(size, side)`` that resize one axis from ``side`` to ``size`` pixels; rows sum to 1."""
    edges = np.arange(size + 1) * side / size
    if size > side:
        centre = np.clip((edges[:-1] + edges[1:]) / 2 - 0.5, 0, side - 1)
        left = np.minimum(centre.astype(int), max(side - 2, 0))
        pairs = np.stack([left, np.minimum(left + 1, side - 1)], axis=1)
        share = np.stack([1 - (centre - left), centre - left], axis=1)
        rows = np.repeat(np.arange(size), 2)
        return csr_array((share.ravel(), (rows, pairs.ravel())), shape=(size, side))
    pixel = np.arange(side)
    # The share of each output pixel that overlaps each input pixel.
    low = np.maximum(edges[:-1, None], pixel)
    high = np.minimum(edges[1:, None], pixel + 1)
    return csr_array(np.maximum(high - low, 0.0) * size / side)


@lru_cache(maxsize=128)
def _window(side: int, size: int, first: int, count: int) -> tuple[slice, Array]:
    """Input pixels that the outputs ``first .. first + count`` depend on, and their weights."""
    weights = _weights(side, size)[first : first + count].toarray()
    needed = np.flatnonzero(weights.any(axis=0))
    window = slice(int(needed[0]), int(needed[-1]) + 1)
    return window, weights[:, window]
