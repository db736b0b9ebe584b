"""Fig. 2 and Table 1 of the paper: how well frames come back, by atoms M and window H."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from psmt.experiments.sweep.result import Combination, Segment, SweepResult
from psmt.figures.panels import WIDTH, heading, panel
from psmt.figures.style import INK, QUIET, SMALL, TITLE, style_axes
from psmt.figures.sweep_chart import MARKERS, draw_sweep, size_colour

# Inches. A panel is one combination: M from top to bottom, H from left to right; the chart stands beside them.
_LEFT, _RIGHT, _HEAD, _FOOT, _NOTES = 1.2, 0.12, 0.8, 0.5, 0.45
_ROW, _ROW_GAP, _GAP = 1.25, 0.14, 0.2
_CHART, _CHART_GAP = 2.2, 0.78
_LOG_FROM = 25
"""Spread of the errors from which on the axis is logarithmic."""


def sweep_figure(result: SweepResult, lams: Sequence[float]) -> Figure:
    """Figure with a block per λ: a panel per (M, H), median and quartiles of the MSE at each segment; and Table 1."""
    table = result.table()
    sizes = [size for size in result.settings.n_atoms if any(r.n_atoms == size and not r.missing for r in table)]
    rows = max(len(sizes), 2)  # one row would leave the chart too flat
    row = (rows * _ROW + (rows - len(sizes)) * _ROW_GAP) / len(sizes)
    inside = len(sizes) * row + (len(sizes) - 1) * _ROW_GAP
    block = _HEAD + inside + _FOOT
    height = len(lams) * block + _NOTES
    figure = Figure(figsize=(WIDTH, height))
    for k, lam in enumerate(lams):
        bottom = height - (k + 1) * block + _FOOT
        _draw_title(figure, bottom + inside + _HEAD, lam)
        _draw_block(figure, result, lam, sizes, bottom, row)
        chart = panel(figure, WIDTH - _RIGHT - _CHART, bottom, _CHART, inside)
        draw_sweep(chart, [entry for entry in table if entry.lam == lam])
        heading(chart, "abcdefghi"[len(result.settings.ratios) % 9], "Table 1 as a chart")
    _draw_notes(figure, height, table, sizes, result.n_frames)
    return figure


def _draw_block(figure: Figure, result: SweepResult, lam: float, sizes: list[int], bottom: float, row: float) -> None:
    """The panels of one λ, from `bottom` inches on, each `row` inches high."""
    ratios, segments = result.settings.ratios, [s for s in result.segments() if s.lam == lam]
    width = (WIDTH - _LEFT - _RIGHT - _CHART - _CHART_GAP - (len(ratios) - 1) * _GAP) / len(ratios)
    span = min(s.lower for s in segments), max(s.upper for s in segments)
    for i, size in enumerate(sizes):
        for j, window in enumerate(result.settings.windows(size)):
            below = bottom + (len(sizes) - 1 - i) * (row + _ROW_GAP)
            axes = panel(figure, _LEFT + j * (width + _GAP), below, width, row)
            _draw_segments(axes, [s for s in segments if (s.n_atoms, s.window) == (size, window)], i)
            _draw_frame(axes, span, result.n_frames, window)
            axes.tick_params(labelbottom=i == len(sizes) - 1, labelleft=j == 0)
            if i == 0:
                heading(axes, "abcdefgh"[j % 8], f"H = {ratios[j]:g} M")
            if i == len(sizes) - 1:
                axes.set_xlabel("centre of segment (frame)", fontsize=SMALL, color=INK)
            if j == 0:
                axes.set_ylabel("MSE", fontsize=SMALL, color=INK, labelpad=3)
                axes.text(
                    (0.12 - _LEFT) / width,
                    0.5,
                    f"M =\n{size:,}",
                    transform=axes.transAxes,
                    fontsize=10.5,
                    fontweight="bold",
                    color=size_colour(i),
                    va="center",
                )


def _draw_segments(axes: Axes, segments: list[Segment], i: int) -> None:
    if not segments:
        return
    centers = np.array([(s.start + s.stop) / 2 for s in segments])
    lower, median, upper = np.array([(s.lower, s.median, s.upper) for s in segments]).T
    if len(segments) == 1:
        # A band needs two ends: one segment is drawn as long as it is.
        lower, median, upper = (np.repeat(values, 2) for values in (lower, median, upper))
        centers = np.array([segments[0].start, segments[0].stop], dtype=np.float64)
    colour = size_colour(i)
    axes.fill_between(centers, lower, upper, color=colour, alpha=0.22, linewidth=0)
    axes.plot(
        centers,
        median,
        color=colour,
        linewidth=1.6,
        marker=MARKERS[i % len(MARKERS)] if len(segments) > 1 else "",
        markersize=3.6,
        markevery=max(1, len(centers) // 16),
        markeredgecolor="white",
        markeredgewidth=0.4,
    )


def _draw_frame(axes: Axes, span: tuple[float, float], n_frames: int, window: int) -> None:
    """The same axes for all panels; a combination without segments says what it needs."""
    low, high = span
    style_axes(axes)
    if low > 0 and high / low > _LOG_FROM:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.15, 1.25 * high)
        steps = [m * 10.0**e for e in range(-9, 6) for m in ((1,) if high / low > 300 else (1, 3))]
        axes.yaxis.set_major_locator(FixedLocator([s for s in steps if low / 1.15 <= s <= 1.25 * high]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(0, 1.12 * high if high > 0 else 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlim(0, n_frames)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 5, 10], prune="upper"))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if not axes.lines:
        axes.text(
            0.5, 0.5, f"needs {window:,} frames", transform=axes.transAxes, ha="center", fontsize=SMALL, color=QUIET
        )


def _draw_title(figure: Figure, top: float, lam: float) -> None:
    """What a block shows, just below `top` inches."""
    width, height = figure.get_size_inches()
    figure.text(
        0.12 / width,
        (top - 0.14) / height,
        f"Reconstruction error by atoms M and window H, λ = {lam:g}",
        fontsize=TITLE,
        fontweight="bold",
        color=INK,
        va="top",
    )


def _draw_notes(figure: Figure, height: float, table: list[Combination], sizes: list[int], n_frames: int) -> None:
    notes = [
        "Line: median of the frames of a segment; band: the half of them in the middle (interquartile range). "
        "Chart: filled, 25% of each tail trimmed; hollow, all frames."
    ]
    missing = {row.n_atoms: row.window for row in reversed(table) if row.n_atoms not in sizes}
    if missing:
        names = ", ".join(f"M = {size:,} (from {missing[size]:,})" for size in sorted(missing))
        notes.append(f"Not in {n_frames:,} frames: {names}.")
    figure.text(
        0.12 / WIDTH, 0.12 / height, "\n".join(notes), fontsize=SMALL, color=QUIET, va="bottom", linespacing=1.4
    )
