"""Shared layouts and charts: a grid of panels with a title, and estimates with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from psmt.evaluation import Interval
from psmt.figures.panels import WIDTH
from psmt.figures.style import COLOURS, INK, MARKERS, QUIET, SMALL, TEXT, TITLE, style_axes


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
    """Return a figure with a title above and a note below a grid of panels, and the panels by name.

    `layout` has the format of `Figure.subplot_mosaic`: rows of names, where a repeated name spans several places and
    "." is left empty. `height` and `width` are in inches, `heights` and `widths` are relative. Constrained layout makes
    space for the labels of panels.
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
    axes: Axes,
    rows: Mapping[str, Mapping[str, Interval]],
    colours: Mapping[str, str],
    *,
    reference: float = 0.0,
) -> None:
    """Draw means with their intervals as bars, one labelled row per key of `rows`. A line marks the `reference`."""
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


def draw_key(figure: Figure, colours: Mapping[str, str]) -> None:
    """Draw a legend of names and colours in the upper right corner."""
    handles = [
        Line2D([], [], color=colour, marker="o", markersize=6, linewidth=2.4, label=name)
        for name, colour in colours.items()
    ]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False, fontsize=TEXT)


def size_style(i: int) -> dict[str, str]:
    """Return colour and marker of the i-th number of atoms, smallest first."""
    return {"color": COLOURS[(0, 2, 1, 3, 4, 5)[i % 6]], "marker": MARKERS[i % len(MARKERS)]}
