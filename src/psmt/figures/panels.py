"""Parts of figures: places in inches, headings, labels, and pictures of values."""

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

BETWEEN = "#9aa1a9"
"""Colour between pictures: no grid shows on a bright or a dark page."""

_BARS, _LEVELS = 64, 16
"""Most bars in the picture of a series, and their steps from zero to either end."""


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


def label_axes(axes: Axes, x: str, y: str = "", size: float = TEXT) -> None:
    """Labels of both axes."""
    axes.set_xlabel(x, fontsize=size, color=INK)
    axes.set_ylabel(y, fontsize=size, color=INK)


def contrast(values: Array) -> Array:
    """The values, scaled so that the largest absolute value is 1."""
    return values / max(float(np.abs(values).max()), 1e-12)


def as_picture(values: Array, shape: tuple[int, int] | None, limit: float = 1.0) -> Array:
    """Values (n_features,) as a picture (height, width), black at -`limit` and white at `limit`.

    With a `shape`, values are its pixels. Without, as for the sensors of a series, they are bars from a middle line;
    if there are many values, neighbours share a bar.

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
    rows, columns = grid
    canvas = np.full((rows * (tall + gap) - gap, columns * (wide + gap) - gap), np.nan)
    for picture, (row, column) in zip(pictures, places, strict=True):
        top, left = row * (tall + gap), column * (wide + gap)
        canvas[top : top + tall, left : left + wide] = picture
    return canvas


def tile_gap(tall: int) -> int:
    """Pixels between pictures that are `tall` high."""
    return max(1, tall // 8)


def show_tiles(axes: Axes, canvas: Array, limit: float = 1.0) -> None:
    """Draw the canvas of `tiled`, with grey gaps."""
    grey = colormaps["gray"].with_extremes(bad=BETWEEN)
    axes.imshow(canvas, cmap=grey, vmin=-limit, vmax=limit, interpolation="antialiased", interpolation_stage="rgba")
    axes.set_axis_off()
