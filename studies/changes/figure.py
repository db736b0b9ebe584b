"""Figure of the errors around sharp changes, and of the time that each method takes to recover."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.figures.panels import heading, panel_figure
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, line_style, style_axes
from studies.changes.result import METHODS, ChangesResult
from studies.changes.settings import CHANGES

_STYLES = {
    "psmt": line_style(COLOURS[0], 2.2, layer=6),
    "psmt_ignore": line_style(COLOURS[0], 1.3, (0, (3, 1.5)), 5),
    "psmt_gain": line_style(COLOURS[2], 1.8, layer=5),
    "psmt_hold": line_style(COLOURS[5], 1.4, layer=4),
    "baseline1": line_style(COLOURS[4], 1.2, (0, (4, 2))),
    "baseline2": line_style(COLOURS[4], 1.2),
    "copy": line_style(COLOURS[1], 1.8, layer=4),
    "copy_code": line_style(COLOURS[1], 1.2, (0, (1.5, 1.5))),
    "mean": line_style(QUIET, 1.2, (0, (1, 1.5))),
    "ridge": line_style(COLOURS[3], 1.3),
}

_SHOWN_BEFORE = 10
"""Number of frames before the change that are drawn."""


def changes_figure(result: ChangesResult) -> Figure:
    """Draw a column for each kind of change: the median MSE by frames since the change, and the times to recover."""
    figure, panels = panel_figure(
        [[f"{kind}: {what}" for kind in CHANGES] for what in ("error", "frames to recover")],
        height=7.1,
        title="Sharp changes",
        note=f"{len(result.places)} places. d to f: median and its 95% interval; hollow: not recovered within "
        f"{result.settings.horizon} frames. Lines are the same in all panels.",
        heights=(2.6, 2.2),
    )
    for letter, (name, axes) in zip("abcdef", panels.items(), strict=True):
        heading(axes, letter, name)
    errors, times = ([panels[f"{kind}: {what}"] for kind in CHANGES] for what in ("error", "frames to recover"))
    for kind, above, below in zip(CHANGES, errors, times, strict=True):
        _draw_errors(above, result, kind)
        _draw_times(below, result, kind)
    low, high = min(axes.get_ylim()[0] for axes in errors), max(axes.get_ylim()[1] for axes in errors)
    for axes in errors:
        axes.set_ylim(low, high)
    for axes in (*errors[1:], *times[1:]):
        axes.tick_params(labelleft=False)
    errors[0].set_ylabel("MSE, median over places", fontsize=SMALL, color=INK)
    return figure


def _draw_errors(axes: Axes, result: ChangesResult, kind: str) -> None:
    before = result.settings.before
    first = max(before - _SHOWN_BEFORE, 0)
    offsets = np.arange(first - before, result.settings.horizon)
    for method, style in _STYLES.items():
        axes.plot(offsets, np.median(result.errors_of(kind, method), axis=0)[first:], **style)
    style_axes(axes)
    axes.set_yscale("log")
    axes.axvline(0, color=QUIET, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xlim(offsets[0], offsets[-1])
    axes.set_xlabel("frames since the change", fontsize=SMALL, color=INK)


def _draw_times(axes: Axes, result: ChangesResult, kind: str) -> None:
    horizon = result.settings.horizon
    times = {summary.method: summary.recovery for summary in result.summaries(kind)}
    for i, (method, style) in enumerate(_STYLES.items()):
        median, low, high = times[method]
        axes.plot([low, high], [i, i], **style)
        (dot,) = axes.plot(median, i, marker="o", markersize=6, color=style["color"], zorder=8, clip_on=False)
        dot.set_markerfacecolor(style["color"] if median < horizon else "white")
    style_axes(axes, grid=False)
    axes.set_yticks(range(len(_STYLES)), [METHODS[method] for method in _STYLES])
    axes.set_ylim(len(_STYLES) - 0.5, -0.5)
    axes.set_xlim(0, 1.03 * horizon)
    axes.set_xlabel("frames", fontsize=SMALL, color=INK)
