"""Parts of figures: grids of panels, estimates with intervals, headings, axis labels, and values as pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from psmt.evaluation import Interval
from psmt.figures.style import INK, QUIET, SMALL, TEXT, TITLE, style_axes
from psmt.types import Array

WIDTH = 10.0
"""Width of a figure in inches."""

GREY_LEVELS = colormaps["gray"].with_extremes(bad="#9aa1a9")
"""Levels from black to white, and a grey between pictures (NaN) that is visible on bright and on dark pages."""

_BARS, _LEVELS = 64, 16
"""Largest number of bars in the picture of a series, and number of pixels from zero to either end of a bar."""


def panel_figure(
    layout: Sequence[Sequence[Any]],
    *,
    height: float,
    title: str = "",
    note: str = "",
    width: float = WIDTH,
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
) -> tuple[Figure, dict[Any, Axes]]:
    """Return a figure and its axes by name. The figure has a title, a grid of panels, and a note at the bottom.

    `layout` is that of `Figure.subplot_mosaic`: rows of names, in which a repeated name spans several places and "." is
    left empty. `height` and `width` are in inches. `heights` and `widths` are relative sizes of rows and columns.
    """
    title_height = (0.42 if title else 0.06) / height
    note_height = (0.14 + 0.17 * (note.count("\n") + 1) if note else 0.06) / height
    inside = (0.006, note_height, 0.988, 1 - title_height - note_height)
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(rect=inside, w_pad=0.08, h_pad=0.08))
    axes = figure.subplot_mosaic([list(row) for row in layout], height_ratios=heights, width_ratios=widths)
    if title:
        figure.text(0.012, 1 - 0.12 / height, title, fontsize=TITLE, fontweight="bold", color=INK, va="top")
    if note:
        figure.text(0.012, 0.1 / height, note, fontsize=SMALL, color=QUIET, va="bottom", linespacing=1.4)
    return figure, axes


def draw_estimates(
    axes: Axes, rows: Mapping[str, Mapping[str, Interval]], colours: Mapping[str, str], *, reference: float = 0.0
) -> None:
    """Draw means as dots and their intervals as horizontal bars. A vertical line marks the `reference`.

    `rows` maps the label of each row to its intervals by name. `colours` maps these names to colours.
    """
    style_axes(axes, grid=False)
    axes.axvline(reference, color=QUIET, linewidth=0.9)
    gap = min(0.24, 0.7 / max(len(colours), 1))
    for row, estimates in enumerate(rows.values()):
        shown = [name for name in colours if name in estimates]
        for place, name in enumerate(shown):
            mean, low, high = estimates[name]
            y = -row + gap * ((len(shown) - 1) / 2 - place)
            if np.isfinite([low, high]).all():
                axes.plot([low, high], [y, y], color=colours[name], linewidth=2.4, solid_capstyle="butt", zorder=4)
            if np.isfinite(mean):
                axes.plot([mean], [y], marker="o", markersize=6, color=colours[name], markeredgecolor="white", zorder=5)
    axes.set_ylim(0.5 - len(rows), 0.5)
    axes.set_yticks([-row for row in range(len(rows))], list(rows), fontsize=SMALL)
    axes.tick_params(axis="y", length=0)


def heading(axes: Axes, letter: str, text: str, *, lift: float = 7) -> None:
    """Write a panel's letter and title, `lift` points above the panel."""
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
    """Set the labels of the x and y axis."""
    axes.set_xlabel(x, fontsize=size, color=INK)
    axes.set_ylabel(y, fontsize=size, color=INK)


def contrast(values: Array) -> Array:
    """Return the values divided by the largest absolute value."""
    return values / max(float(np.abs(values).max()), 1e-12)


def as_picture(values: Array, shape: tuple[int, int] | None, limit: float = 1.0) -> Array:
    """Return values (n_features,) as a picture (height, width), to be drawn from black (-`limit`) to white (`limit`).

    If `shape` is given, the values are its pixels. If it is None, as for a series, the picture is a bar chart of the
    values. If there are more than 64 values, a bar is the mean of several neighbours.

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


def tiled(pictures: Sequence[Array], columns: int) -> Array:
    """Return one array with all `pictures` (height, width), row by row in `columns` columns, and NaN between them.

    >>> tiled([np.ones((2, 2))] * 3, 2).shape
    (5, 5)
    """
    if not pictures:
        return np.full((1, 1), np.nan)
    tall, wide = pictures[0].shape
    gap = max(1, tall // 8)
    canvas = np.full((-(-len(pictures) // columns) * (tall + gap) - gap, columns * (wide + gap) - gap), np.nan)
    for k, picture in enumerate(pictures):
        top, left = k // columns * (tall + gap), k % columns * (wide + gap)
        canvas[top : top + tall, left : left + wide] = picture
    return canvas


def show_tiles(axes: Axes, canvas: Array, limit: float = 1.0) -> None:
    """Draw an array that `tiled` returned. The gaps between pictures are grey."""
    axes.imshow(canvas, GREY_LEVELS, vmin=-limit, vmax=limit, interpolation="antialiased", interpolation_stage="rgba")
    axes.set_axis_off()
