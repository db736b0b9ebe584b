"""Standardised patches of frames: crop, resize, cut and standardise them, and restore their grey levels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from psmt.data import Film, SeriesSource, Spec, open_frames, open_source
from psmt.data.contract import check_stop
from psmt.errors import FrameSourceError
from psmt.types import Array, Levels
from psmt.utils.constraints import Declared, allowing, check_count, check_parameters, check_real, count, parameter
from psmt.utils.disk_series import IN_MEMORY, DiskSeries
from psmt.utils.validation import check_finite, real_array

_PART = 1 << 12  # number of patches that are standardised at a time while patches are written to disk


@dataclass(frozen=True, kw_only=True)
class PatchCutter:
    """Cuts one patch out of each frame: crops the largest centred square, resizes it, and cuts the patch out of it.

    Shrinking averages over areas, with exact weights for partly covered pixels. Enlarging interpolates linearly.

    Parameters
    ----------
    frame_size : int or None
        Height and width to which the square is resized. None does not resize it.
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

    frame_size: int | None = parameter(200, allowing(None, count()))
    patch_size: int = parameter(16, count())
    position: tuple[int, int] | None = None

    _parameter_constraints = Declared()

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
        """Return the largest centred square of a frame, resized to ``(frame_size, frame_size)``."""
        square = _centred_square(frame)
        return self._region(square, (0, 0), (self.frame_size or len(square),) * 2)

    def cut(self, frame: ArrayLike) -> Array:
        """Return the patch of a frame as a vector ``(patch_size**2,)``. Only the pixels of the patch are resized."""
        square = _centred_square(frame)
        return self._region(square, self.corner(self.frame_size or len(square)), (self.patch_size,) * 2).ravel()

    def surroundings(self, frame: ArrayLike, *, whole: bool = False) -> tuple[Array, tuple[int, int]]:
        """Return a square around the patch, and the row and column of the patch's top-left pixel in this square.

        The square is cut out of the resized frame. It is three times as high and wide as the patch, but ends at the
        edges of the frame. If `whole` is True, it is the whole resized frame.

        >>> around, (row, column) = PatchCutter(frame_size=4, patch_size=2).surroundings(np.arange(64.0).reshape(8, 8))
        >>> around.shape, around[row : row + 2, column : column + 2].ravel()
        ((4, 4), array([22.5, 24.5, 38.5, 40.5]))
        """
        square = _centred_square(frame)
        size = self.frame_size or len(square)
        row, column = self.corner(size)
        margin = size if whole else self.patch_size
        top, left = max(row - margin, 0), max(column - margin, 0)
        height, width = (min(first + self.patch_size + margin, size) for first in (row, column))
        return self._region(square, (top, left), (height - top, width - left)), (row - top, column - left)

    def _region(self, square: NDArray[Any], corner: tuple[int, int], shape: tuple[int, int]) -> Array:
        """Return the part of the resized square with this top-left corner and this shape (height, width)."""
        side = len(square)
        size = self.frame_size or side
        if size == side:
            rows, columns = (slice(first, first + count) for first, count in zip(corner, shape, strict=True))
            return square[rows, columns].astype(np.float64)
        (rows, left), (columns, right) = (_window(side, size, *own) for own in zip(corner, shape, strict=True))
        return np.asarray(left @ square[rows, columns].astype(np.float64) @ right.T)

    def corner(self, size: int) -> tuple[int, int]:
        """Return the row and column of the patch's top-left pixel in a resized square of ``size`` x ``size`` pixels."""
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
    """Standardised patches, made by `standardise`, with the means and contrasts that restore their grey levels.

    Attributes
    ----------
    values : ndarray (n, features)
        Patches of zero mean and unit variance. A flat patch is all zeros.
    mean : ndarray (n,)
        Mean grey level of each patch.
    contrast : ndarray (n,)
        Standard deviation of each patch. It is 0 for a flat patch.
    """

    values: Array
    mean: Array
    contrast: Array

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: slice) -> "Patches":
        """Return the patches in a slice, as views of the arrays."""
        if not isinstance(key, slice):
            raise TypeError(f"patches[{key!r}] is not a slice; write patches[a:b], or patches.values[{key!r}]")
        return Patches(values=self.values[key], mean=self.mean[key], contrast=self.contrast[key])

    def to_grey(self, standardised: ArrayLike | None = None) -> Array:
        """Return the grey levels ``values * contrast + mean`` of each patch, ``(n, features)``.

        If other values ``(n, features)``, such as predictions, are given as `standardised`, they are used instead.
        """
        values = self.values if standardised is None else np.asarray(standardised, dtype=np.float64)
        if values.shape != self.values.shape:
            raise ValueError(
                f"standardised has shape {values.shape} but the patches have {self.values.shape}; choose the patches "
                "that the values belong to, as in patches[a:b].to_grey(values)"
            )
        return np.asarray(values * self.contrast[:, None] + self.mean[:, None])


def standardise(values: ArrayLike, *, flat: float = 1e-3) -> Patches:
    """Scale each of the grey patches ``(n, features)`` to zero mean and unit variance, and return them as `Patches`.

    The result also has the means and contrasts, from which `Patches.to_grey` restores grey levels. A patch whose
    standard deviation is below ``flat`` holds little but noise. Its values become zeros, and its contrast 0.

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
    centred *= np.divide(1.0, contrast, out=np.zeros_like(contrast), where=contrast > 0)[:, None]
    return Patches(values=centred, mean=mean, contrast=contrast)


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
    """Return the standardised patches ``(n, patch_size**2)`` of the frames from ``start`` to ``stop - 1``.

    Frames are not kept in memory. `FrameSourceError` is raised if the source cannot be read or ends too early.

    Parameters
    ----------
    source : path, str, array, iterator or FrameSource
        Anything that `psmt.data.open_frames` takes. It is read once.
    frame_size, patch_size, position
        See `PatchCutter`.
    start, stop : int
        First frame, and the frame after the last one. ``stop=None`` reads to the end of the film.
    flat : float
        See `standardise`.
    progress : callable, optional
        Called as ``progress(done, total)`` after each frame. ``total`` is None if the number of frames is unknown.

    Examples
    --------
    >>> patches = read_patches("builtin:glide?frames=20", start=5)
    >>> patches.values.shape
    (15, 256)
    """
    cutter = PatchCutter(frame_size=frame_size, patch_size=patch_size, position=position)
    return standardise(np.array(list(_cut_all(source, cutter, start, stop, progress))), flat=flat)


def read_surroundings(
    film: Film, cutter: PatchCutter, stretches: Sequence[slice], *, whole: bool = False
) -> list[tuple[Levels, list[int]]]:
    """Return, for each slice of a film, the patch's surroundings (n, height, width) and the patch's corner in them.

    The corner is a row and a column. Only the frames of the slices are kept. See `PatchCutter.surroundings`.

    >>> film, cutter = open_frames("builtin:glide?frames=9"), PatchCutter(patch_size=8)
    >>> [(around.shape, corner) for around, corner in read_surroundings(film, cutter, [slice(0, 2), slice(5, 9)])]
    [((2, 24, 24), [8, 8]), ((4, 24, 24), [8, 8])]
    """
    found: list[list[Levels]] = [[] for _ in stretches]
    corner: tuple[int, ...] = ()
    for index, frame in enumerate(film.head(max((part.stop for part in stretches), default=None))):
        containing = [own for own, part in zip(found, stretches, strict=True) if part.start <= index < part.stop]
        if containing:
            around, corner = cutter.surroundings(frame, whole=whole)
            for own in containing:
                own.append(around.astype(np.float32))
    return [(np.array(own), list(corner)) for own in found]


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
    """Return the input of a model, ``(time, features)``: standardised patches of frames, or the values of a series.

    `source` is anything that `psmt.data.open_source` takes. If `store` is a path and the patches exceed 32 MiB, they
    are written to this file and returned as a `DiskSeries`, which reads them from disk. The file is deleted when no
    array uses it any more. `read_patches` explains the other parameters.

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
    film: Spec, cutter: PatchCutter, start: int, stop: int | None, progress: Callable[[int, int | None], object] | None
) -> Iterator[Array]:
    """Yield the grey patch (patch_size**2,) of each frame from ``start`` to ``stop - 1``. See `read_patches`."""
    check_count("start", start, minimum=0)
    check_stop(stop)
    if stop is not None and stop <= start:
        raise ValueError(f"stop={stop} leaves no frame after start={start}; use stop > start, or None")
    frames = open_frames(film, stop=stop)
    end = frames.n_frames if stop is None else stop
    total = None if end is None else max(end - start, 0)
    seen = 0
    for frame in frames:
        seen += 1
        if seen <= start:
            continue
        patch = cutter.cut(frame)
        check_finite(patch, name=f"frame {seen - 1}", error=FrameSourceError)
        yield patch
        if progress is not None:
            progress(seen - start, total)
    if seen <= start or (stop is not None and seen < stop):
        wanted = f"start={start}" if seen <= start else f"stop={stop}"
        raise FrameSourceError(
            f"{frames.name} has {seen} frames, too few for {wanted}; use start < {seen} and stop <= {seen}"
        )


def _standardised_parts(first: Array, patches: Iterator[Array]) -> Iterator[Array]:
    """Yield standardised patches (n, features): those in the array `first`, then `_PART` patches at a time."""
    part = first
    while len(part):
        yield standardise(part).values
        part = np.array(list(islice(patches, _PART)))


def _centred_square(frame: ArrayLike) -> NDArray[Any]:
    pixels = np.asarray(frame)
    if pixels.ndim != 2 or 0 in pixels.shape:
        raise ValueError(f"a frame of shape {pixels.shape} cannot be cut; give one grey frame (height, width)")
    height, width = pixels.shape
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]


@lru_cache(maxsize=32)
def resize_weights(side: int, size: int) -> csr_array:
    """Return the matrix ``(size, side)`` that resizes one axis from ``side`` to ``size`` pixels. Its rows sum to 1."""
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
    """Return the slice of n input pixels and the weights (count, n) for output pixels first .. first + count - 1."""
    weights = resize_weights(side, size)[first : first + count].toarray()
    needed = np.flatnonzero(weights.any(axis=0))
    window = slice(int(needed[0]), int(needed[-1]) + 1)
    return window, weights[:, window]
