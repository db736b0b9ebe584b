"""Errors around sharp changes, and how long each method takes to recover."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.figures.panels import WIDTH, heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, TITLE, LineStyle, style_axes
from studies.changes.result import METHODS, ChangesResult
from studies.changes.settings import KINDS

_STYLES = {
    "psmt": LineStyle(COLOURS[0], 2.2, layer=6),
    "psmt_ignore": LineStyle(COLOURS[0], 1.3, (0, (3, 1.5)), 5),
    "psmt_gain": LineStyle(COLOURS[2], 1.8, layer=5),
    "psmt_hold": LineStyle(COLOURS[5], 1.4, layer=4),
    "baseline1": LineStyle(COLOURS[4], 1.2, (0, (4, 2))),
    "baseline2": LineStyle(COLOURS[4], 1.2),
    "copy": LineStyle(COLOURS[1], 1.8, layer=4),
    "copy_code": LineStyle(COLOURS[1], 1.2, (0, (1.5, 1.5))),
    "mean": LineStyle(QUIET, 1.2, (0, (1, 1.5))),
    "ridge": LineStyle(COLOURS[3], 1.3),
}

# Inches. A column is a kind of change: errors above, times to recover below.
_LEFT, _RIGHT, _BOTTOM, _HEAD = 1.45, 0.15, 0.62, 0.8
_CURVES, _TIMES, _ROW_GAP, _GAP = 2.6, 2.2, 0.85, 0.25
_SHOWN_BEFORE = 10
"""Frames before the change that are drawn."""


def changes_figure(result: ChangesResult) -> Figure:
    """Figure with a column per kind of change: median MSE by frames since it, and times to recover with intervals."""
    kinds = [kind for kind in KINDS if kind != "none"]
    height = _HEAD + _CURVES + _ROW_GAP + _TIMES + _BOTTOM
    figure = Figure(figsize=(WIDTH, height))
    width = (WIDTH - _LEFT - _RIGHT - (len(kinds) - 1) * _GAP) / len(kinds)
    curves = [
        panel(figure, _LEFT + j * (width + _GAP), _BOTTOM + _TIMES + _ROW_GAP, width, _CURVES)
        for j in range(len(kinds))
    ]
    for j, (kind, axes) in enumerate(zip(kinds, curves, strict=True)):
        _draw_errors(axes, result, kind)
        heading(axes, "abc"[j], f"{kind}: error")
        below = panel(figure, _LEFT + j * (width + _GAP), _BOTTOM, width, _TIMES)
        _draw_times(below, result, kind)
        below.tick_params(labelleft=j == 0)
        heading(below, "def"[j], f"{kind}: frames to recover")
    low, high = min(axes.get_ylim()[0] for axes in curves), max(axes.get_ylim()[1] for axes in curves)
    for j, axes in enumerate(curves):
        axes.set_ylim(low, high)
        axes.tick_params(labelleft=j == 0)
    curves[0].set_ylabel("MSE, median over places", fontsize=SMALL, color=INK)
    figure.text(
        0.12 / WIDTH, 1 - 0.14 / height, "Sharp changes", fontsize=TITLE, fontweight="bold", color=INK, va="top"
    )
    figure.text(
        0.12 / WIDTH,
        1 - 0.38 / height,
        f"{len(result.places)} places. Lines below: 95% interval of the median; hollow: not back within "
        f"{result.settings.horizon} frames. Colours and dashes are the same above and below.",
        fontsize=SMALL,
        color=QUIET,
        va="top",
    )
    return figure


def _draw_errors(axes: Axes, result: ChangesResult, kind: str) -> None:
    before = result.settings.before
    first = max(before - _SHOWN_BEFORE, 0)
    offsets = np.arange(first - before, result.settings.horizon)
    for method, style in _STYLES.items():
        axes.plot(offsets, np.median(result.errors_of(kind, method), axis=0)[first:], **style.kwargs())
    style_axes(axes)
    axes.set_yscale("log")
    axes.axvline(0, color=QUIET, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xlim(offsets[0], offsets[-1])
    axes.set_xlabel("frames since the change", fontsize=SMALL, color=INK)


def _draw_times(axes: Axes, result: ChangesResult, kind: str) -> None:
    horizon = result.settings.horizon
    summaries = {summary.method: summary.recovery for summary in result.summaries(kind)}
    for i, (method, style) in enumerate(_STYLES.items()):
        time = summaries[method]
        if time.low == time.low:
            axes.plot([time.low, time.high], [i, i], **style.kwargs())
        inside = time.median < horizon
        axes.plot(
            time.median,
            i,
            marker="o",
            markersize=6,
            markerfacecolor=style.colour if inside else "white",
            markeredgecolor=style.colour,
            zorder=8,
            clip_on=False,
        )
    style_axes(axes, grid=False)
    axes.set_yticks(range(len(METHODS)), [METHODS[method] for method in _STYLES])
    axes.set_ylim(len(_STYLES) - 0.5, -0.5)
    axes.set_xlim(0, 1.03 * horizon)
    axes.set_xlabel("frames", fontsize=SMALL, color=INK)
