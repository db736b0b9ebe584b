"""What figures share: places in inches, headings, and pictures of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.figures.style import INK
from psmt.types import Array

WIDTH = 10.0
"""Inches that a figure is wide."""

BETWEEN = "#9aa1a9"
"""What is seen between pictures."""

_BARS, _LEVELS = 64, 16
"""Bars in the picture of a series at the most, and their steps from zero to either end."""


def panel(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at a place given in inches."""
    whole_width, whole_height = figure.get_size_inches()
    return figure.add_axes((left / whole_width, bottom / whole_height, width / whole_width, height / whole_height))


def heading(axes: Axes, letter: str, text: str, *, lift: float = 7) -> None:
    """Letter and title above a panel, `lift` points up."""
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


def contrast(values: Array) -> Array:
    """The values with the largest of them at 1 or -1."""
    return values / max(float(np.abs(values).max()), 1e-12)


def as_picture(values: Array, shape: tuple[int, int] | None, limit: float = 1.0) -> Array:
    """Values (n_features,) as a picture (height, width) whose black and white are at -`limit` and `limit`.

    With a `shape` they are its pixels. Without, such as the sensors of a series, they are bars from a middle line;
    neighbours share a bar where there are many. That their number is a square does not make a picture of them.

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
    return np.where(reached, limit * np.sign(levels), 0.0)


def tiled(pictures: Sequence[Array], places: Sequence[tuple[int, int]], grid: tuple[int, int]) -> Array:
    """One picture of pictures (height, width), each at its row and column of a grid, with gaps of NaN between them.

    >>> tiled([np.ones((2, 2))], [(0, 1)], (1, 2)).shape
    (2, 5)
    """
    if not pictures:
        return np.full((1, 1), np.nan)
    tall, wide = pictures[0].shape
    gap = tile_gap(tall)
    (rows, columns) = grid
    canvas = np.full((rows * (tall + gap) - gap, columns * (wide + gap) - gap), np.nan)
    for picture, (row, column) in zip(pictures, places, strict=True):
        top, left = row * (tall + gap), column * (wide + gap)
        canvas[top : top + tall, left : left + wide] = picture
    return canvas


def tile_gap(tall: int) -> int:
    """Pixels between pictures that are `tall` high."""
    return max(1, tall // 8)


def show_tiles(axes: Axes, canvas: Array, limit: float = 1.0) -> None:
    """Draw what `tiled` gives; what lies between is grey: neither a bright nor a dark page makes a grid of it."""
    grey = colormaps["gray"].with_extremes(bad=BETWEEN)
    axes.imshow(canvas, cmap=grey, vmin=-limit, vmax=limit, interpolation="antialiased", interpolation_stage="rgba")
    axes.set_axis_off()
