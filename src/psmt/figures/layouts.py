"""Shared layouts and charts: a titled grid of panels, estimates with their intervals, and Table 1 as a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from psmt.evaluation import trimmed
from psmt.figures.panels import WIDTH, label_axes
from psmt.figures.style import COLOURS, INK, MARKERS, QUIET, SMALL, TEXT, TITLE, style_axes
from psmt.types import Array


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


def size_style(i: int) -> dict[str, str]:
    """Colour and marker of the i-th M, smallest first."""
    return {"color": COLOURS[(0, 2, 1, 3, 4, 5)[i % 6]], "marker": MARKERS[i % len(MARKERS)]}


def draw_sweep(axes: Axes, errors: Mapping[tuple[int, int], Array]) -> None:
    """Draw trimmed means and standard deviations of errors by (M, H), with a line per M over H / M.

    Hollow markers are untrimmed means. Empty arrays, of combinations that are missing, only take their place.
    """
    # A window is a whole number of codes, so H / M is only close to the ratio asked for.
    ratios = sorted({round(window / n_atoms, 2) for n_atoms, window in errors})
    sizes = sorted({n_atoms for (n_atoms, _), own in errors.items() if len(own)})
    top = 0.0
    for i, size in enumerate(sizes):
        windows = sorted(window for (n_atoms, window), own in errors.items() if n_atoms == size and len(own))
        at = np.array([ratios.index(round(window / size, 2)) for window in windows]) + 0.14 * (i - (len(sizes) - 1) / 2)
        inner = [trimmed(errors[size, window]) for window in windows]
        means, stds = (np.array([getattr(own, name)() for own in inner]) for name in ("mean", "std"))
        untrimmed = np.array([errors[size, window].mean() for window in windows])
        look: dict[str, Any] = size_style(i)
        axes.errorbar(
            at, means, yerr=stds, linewidth=1.5, elinewidth=1.0, markersize=5.4, zorder=4, label=f"M = {size:,}", **look
        )
        axes.plot(at + 0.06, untrimmed, linestyle="none", markersize=4.2, markerfacecolor="white", zorder=3, **look)
        top = max(top, float(untrimmed.max()), float((means + stds).max()))
    style_axes(axes)
    axes.set_ylim(0, 1.08 * top if top > 0 else 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlim(-0.5, len(ratios) - 0.5)
    axes.set_xticks(range(len(ratios)), [f"{ratio:g} M" for ratio in ratios])
    label_axes(axes, "window H", "mean MSE ± standard deviation", SMALL)
