"""Parts of figures: axes placed in inches, headings, labels, and pictures of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.figures.style import INK, TEXT
from psmt.types import Array

WIDTH = 10.0
"""Width of a figure in inches."""

GREY_LEVELS = colormaps["gray"].with_extremes(bad="#9aa1a9")
"""Levels from black to white, and a grey between pictures (NaN) that is visible on bright and on dark pages."""

_BARS, _LEVELS = 64, 16
"""Largest number of bars in the picture of a series, and number of pixels from zero to either end of a bar."""


def panel(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes at a position given in inches."""
    whole_width, whole_height = figure.get_size_inches()
    return figure.add_axes((left / whole_width, bottom / whole_height, width / whole_width, height / whole_height))


def heading(axes: Axes, letter: str, text: str, *, lift: float = 7) -> None:
    """Write a letter and a title above a panel, `lift` points up."""
    axes.annotate(
        f"{letter}  {text}",
        (0, 1),
        (0, lift),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=10.5,
        fontweight="bold",
        color=INK,
        annotation_clip=False,
    )


def label_axes(axes: Axes, x: str, y: str = "", size: float = TEXT) -> None:
    """Set the labels of both axes."""
    axes.set_xlabel(x, fontsize=size, color=INK)
    axes.set_ylabel(y, fontsize=size, color=INK)


def contrast(values: Array) -> Array:
    """Return the values, scaled so that the largest absolute value is 1."""
    return values / max(float(np.abs(values).max()), 1e-12)


def as_picture(values: Array, shape: tuple[int, int] | None, limit: float = 1.0) -> Array:
    """Return values (n_features,) as a picture (height, width), black at -`limit` and white at `limit`.

    With a `shape`, the values are pixels. Without it, as for the sensors of a series, they are drawn as bars from a
    middle line. If there are many values, neighbours share a bar.

    >>> as_picture(np.array([1.0, 2.0, -4.0, 0.0]), (2, 2))
    array([[ 1.,  2.],
           [-4.,  0.]])
    >>> as_picture(np.linspace(-1, 1, 31), None).shape
    (32, 31)
    """
    if shape is not None:
        return values.reshape(shape)
    bars = np.array([part.mean() for part in np.array_split(values, min(len(values), _BARS))])
    levels = limit * (np.arange(_LEVELS, -_LEVELS, -1) - 0.5)[:, None] / _LEVELS
    reached = np.where(levels > 0, levels <= bars, levels >= bars)
    # Few bars are widened, so that the picture is about as wide as it is high.
    return np.repeat(np.where(reached, limit * np.sign(levels), 0.0), max(2 * _LEVELS // len(bars), 1), axis=1)


def tiled(pictures: Sequence[Array], places: Sequence[tuple[int, int]], grid: tuple[int, int]) -> Array:
    """Return one picture that shows `pictures` (height, width) at `places` (row, column) of a grid. Gaps are NaN.

    >>> tiled([np.ones((2, 2))], [(0, 1)], (1, 2)).shape
    (2, 5)
    """
    if not pictures:
        return np.full((1, 1), np.nan)
    tall, wide = pictures[0].shape
    gap = tile_gap(tall)
    rows, columns = grid
    canvas = np.full((rows * (tall + gap) - gap, columns * (wide + gap) - gap), np.nan)
    for picture, (row, column) in zip(pictures, places, strict=True):
        top, left = row * (tall + gap), column * (wide + gap)
        canvas[top : top + tall, left : left + wide] = picture
    return canvas


def tile_gap(tall: int) -> int:
    """Return the number of pixels between pictures of height `tall`."""
    return max(1, tall // 8)


def show_tiles(axes: Axes, canvas: Array, limit: float = 1.0) -> None:
    """Draw a picture that `tiled` returned, with grey gaps."""
    axes.imshow(canvas, GREY_LEVELS, vmin=-limit, vmax=limit, interpolation="antialiased", interpolation_stage="rgba")
    axes.set_axis_off()
