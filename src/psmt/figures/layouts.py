"""Layouts that figures share: a titled grid of panels, and a chart of estimates with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from psmt.figures.panels import WIDTH
from psmt.figures.style import INK, QUIET, SMALL, TEXT, TITLE, style_axes


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
    """Figure with a title above and a note below a grid of panels, and the panels by name.

    `layout` is that of `Figure.subplot_mosaic`: rows of names, where a name that is repeated spans several places and
    "." is left empty. Sizes are in inches, `heights` and `widths` relative. Space between panels is made for their
    labels (constrained layout).
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


class Estimate(NamedTuple):
    """A mean with its interval, and the values behind it."""

    mean: float
    low: float
    high: float
    values: ArrayLike = ()


def draw_estimates(
    axes: Axes,
    rows: Mapping[str, Mapping[str, Estimate]],
    colours: Mapping[str, str],
    *,
    reference: float = 0.0,
) -> None:
    """Chart with a labelled row of estimates per key of `rows`, one above the other by the names in `colours`.

    Dots are single values, bars are intervals; a line marks the `reference`.
    """
    style_axes(axes, grid=False)
    axes.axvline(reference, color=QUIET, linewidth=0.9)
    gap = min(0.24, 0.7 / max(len(colours), 1))
    for row, estimates in enumerate(rows.values()):
        shown = [name for name in colours if name in estimates]
        for place, name in enumerate(shown):
            mean, low, high, values = estimates[name]
            y, dots = -row + gap * ((len(shown) - 1) / 2 - place), np.asarray(values, dtype=np.float64)
            axes.scatter(dots, np.full(len(dots), y), s=11, color=colours[name], alpha=0.35, linewidths=0, zorder=3)
            if np.isfinite([low, high]).all():
                axes.plot([low, high], [y, y], color=colours[name], linewidth=2.4, solid_capstyle="butt", zorder=4)
            if np.isfinite(mean):
                axes.plot([mean], [y], marker="o", markersize=6, color=colours[name], markeredgecolor="white", zorder=5)
    axes.set_ylim(0.5 - len(rows), 0.5)
    axes.set_yticks([-row for row in range(len(rows))], list(rows), fontsize=SMALL)
    axes.tick_params(axis="y", length=0)


def draw_key(figure: Figure, colours: Mapping[str, str]) -> None:
    """Legend of names and colours in the upper right corner."""
    handles = [
        Line2D([], [], color=colour, marker="o", markersize=6, linewidth=2.4, label=name)
        for name, colour in colours.items()
    ]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False, fontsize=TEXT)
