"""What the claims rest on: by how much errors differ on the film and on its nulls, start by start, with intervals."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from psmt.evaluation import Interval
from psmt.experiments.prediction.claims import comparisons
from psmt.experiments.prediction.effects import MARGIN, Comparison
from psmt.experiments.prediction.run import PredictionResult
from psmt.figures.panels import panel
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TEXT, TITLE, style_axes
from psmt.types import Array

_STYLES = {"film": ("the film", COLOURS[0]), "shuffled": ("frames shuffled", COLOURS[4]), "noise": ("noise", QUIET)}
_WIDTH, _LABELS, _ROW, _HEAD, _FOOT = 10.0, 3.75, 0.62, 0.72, 0.95
_LINE_GAP = 0.24
"""Of a row, between the film and its nulls."""


def effects_figure(result: PredictionResult) -> Figure:
    """Figure with a row per comparison: differences of log MSE, a dot per start, means with their intervals."""
    parts = [part for group in comparisons(result).values() for part in group]
    height = _HEAD + _ROW * len(parts) + _FOOT
    figure = Figure(figsize=(_WIDTH, height))
    axes = panel(figure, _LABELS, _FOOT, _WIDTH - _LABELS - 0.2, _ROW * len(parts))
    style_axes(axes, grid=False)
    axes.axvspan(-MARGIN, MARGIN, color=RULE, alpha=0.8, linewidth=0)
    axes.axvline(0, color=QUIET, linewidth=0.9)
    for row, part in enumerate(parts):
        _draw(axes, -row, part)
    axes.set_ylim(0.5 - len(parts), 0.5)
    names = [part.name.replace(" against ", "\nagainst ") for part in parts]
    axes.set_yticks([-row for row in range(len(parts))], names, fontsize=SMALL)
    axes.tick_params(axis="y", length=0)
    # Linear near a tie, logarithmic beyond: an effect of 0.1 is to be seen beside one of 5.
    axes.set_xscale("symlog", linthresh=0.1, linscale=0.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
    axes.set_xlabel("difference of mean log MSE: left of 0 the first method is better", fontsize=TEXT, color=INK)
    figure.text(
        0.15 / _WIDTH, 1 - 0.16 / height, "Over many starts", fontsize=TITLE, fontweight="bold", color=INK, va="top"
    )
    figure.text(
        0.15 / _WIDTH,
        0.16 / height,
        f"Dots: starts ({len(result.starts)} of the film). Bars: means, 95% intervals. Grey band: ties, ±{MARGIN:g}. A "
        "claim holds where its bars on the film are left of the band and of the nulls.",
        fontsize=SMALL,
        color=QUIET,
    )
    keys = [
        Line2D([], [], color=colour, marker="o", markersize=6, linewidth=2.4, label=name)
        for film, (name, colour) in _STYLES.items()
        if film == "film" or result.nulls.get(film)
    ]
    figure.legend(
        handles=keys,
        loc="upper right",
        bbox_to_anchor=(1 - 0.2 / _WIDTH, 1 - 0.1 / height),
        ncols=len(keys),
        frameon=False,
        fontsize=TEXT,
    )
    return figure


def _draw(axes: Axes, row: int, part: Comparison) -> None:
    films = {"film": (part.differences, part.effect)} | {
        null: (part.null_differences[null], effect) for null, effect in part.null_effects.items()
    }
    for (film, (values, effect)), shift in zip(films.items(), (1, 0, -1) if len(films) > 1 else (0,), strict=False):
        _draw_line(axes, row + _LINE_GAP * shift, values, effect, _STYLES[film][1])


def _draw_line(axes: Axes, y: float, values: Array, effect: Interval, colour: str) -> None:
    axes.scatter(values, np.full(len(values), y), s=11, color=colour, alpha=0.35, linewidths=0, zorder=3)
    if effect.is_finite:
        axes.plot([effect.low, effect.high], [y, y], color=colour, linewidth=2.4, solid_capstyle="butt", zorder=4)
    if np.isfinite(effect.mean):
        axes.plot([effect.mean], [y], marker="o", markersize=6, color=colour, markeredgecolor="white", zorder=5)
