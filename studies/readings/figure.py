"""Figure of all readings: their results on Table 1 and on Fig. 4, and those of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from psmt.experiments.table_1 import PAPER_SIZE
from psmt.figures.panels import heading, panel_figure
from psmt.figures.style import COLOURS, INK, MARKERS, QUIET, SMALL, style_axes
from psmt.report import INCONCLUSIVE, Evidence, Verdict
from studies.readings.result import ORDER, PAPER_LOGS, ReadingResult, ReadingsResult

_VERDICT: dict[Verdict, str] = {"yes": COLOURS[2], "no": COLOURS[1], INCONCLUSIVE: "#9aa3ad"}
_BAND = "#dce9f5"
_PANELS = {
    "More atoms help": "error, most ÷ fewest atoms",
    "More frames help": "error, longest ÷ shortest H",
    "Size of Table 1": "trimmed mean MSE",
    "Order of Fig. 4": "difference of log MSE",
    "Size of Fig. 4": "mean log MSE vs code",
}
"""Titles of the panels, and labels of their horizontal axes."""


def readings_figure(result: ReadingsResult) -> Figure:
    """Draw one row per reading, with five columns: atoms, frames and size of Table 1; order and size of Fig. 4."""
    readings = result.by_reading
    figure, panels = panel_figure(
        [list(_PANELS)],
        width=13.0,
        height=2.1 + 0.27 * len(readings),
        title=f"Reading the paper: {len(readings)} ways to fill in what it leaves open",
        note="Green: as in the paper; orange: not; grey: inconclusive (95% intervals, ties within 1%). Blue bands: the "
        "paper's own results, on its own film. a, b, d: left of the line is as in the paper.",
    )
    for letter, (title, axes) in zip("abcde", panels.items(), strict=True):
        heading(axes, letter, title)
        axes.set_xlabel(_PANELS[title], fontsize=SMALL, color=INK)
        style_axes(axes, grid=False)
        axes.set_ylim(len(readings) - 0.5, -0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        for row in range(0, len(readings), 2):
            axes.axhspan(row - 0.5, row + 0.5, color="#f4f6f8", zorder=0, linewidth=0)
    atoms, frames, sizes, order, logs = panels.values()
    atoms.set_yticks(range(len(readings)), [own.reading.name for own in readings], fontsize=SMALL, color=INK)
    _draw_changes(atoms, [own.atoms for own in readings], as_ratio=True)
    _draw_changes(frames, [own.frames for own in readings], as_ratio=True)
    _draw_sizes(sizes, readings)
    _draw_changes(order, [[own.differences[pair] for pair in ORDER] for own in readings], as_ratio=False)
    _draw_logs(logs, readings)
    return figure


def _draw_changes(axes: Axes, rows: Sequence[Sequence[Evidence]], *, as_ratio: bool) -> None:
    """Draw means with their intervals, in the colours of the verdicts."""
    ends = [abs(end) for row in rows for own in row for end in own.statistic if np.isfinite(end)]
    limit = 1.12 * max(min(max(ends, default=1.0), 6.0), 0.05)
    for i, row in enumerate(rows):
        for k, own in enumerate(row):
            y = i + 0.4 * ((k + 0.5) / len(row) - 0.5)
            colour = _VERDICT[own.as_measured.verdict]
            # Infinite intervals, and marks outside the axes, end at the edge.
            mean, low, high = np.clip(own.statistic, -limit, limit)
            axes.plot([low, high], [y, y], color=colour, linewidth=1.2, zorder=3, solid_capstyle="butt")
            axes.plot(mean, y, MARKERS[k % 6], color=colour, markersize=4.2, zorder=4, clip_on=False)
    axes.axvline(0, color=QUIET, linewidth=0.9, zorder=1)
    axes.set_xlim(-limit, limit)
    if as_ratio:
        axes.xaxis.set_major_locator(FixedLocator(np.log(_ratio_ticks(limit)).tolist()))
        axes.xaxis.set_major_formatter(lambda value, _: f"{np.exp(value):.3g}")
    _draw_legend(axes, {own.name: MARKERS[k % 6] for k, own in enumerate(rows[0])}, markersize=4.2, handletextpad=0.1)


def _ratio_ticks(limit: float) -> list[float]:
    """Return ratios for the ticks of an axis, including 1. Their logarithms are within `limit`, and labels fit."""
    kept = [1.0]
    for tick in (0.02, 50, 0.05, 20, 0.1, 10, 0.2, 5, 0.5, 2, 0.8, 1.25, 0.9, 1.1):
        if abs(np.log(tick)) <= limit and all(abs(np.log(tick / other)) > 0.3 * limit for other in kept):
            kept.append(tick)
    return sorted(kept)


def _draw_sizes(axes: Axes, readings: Sequence[ReadingResult]) -> None:
    """Draw all errors of Table 1. They are green if they lie in the paper's band."""
    axes.axvspan(*PAPER_SIZE, color=_BAND, zorder=0.5, linewidth=0)
    for i, own in enumerate(readings):
        means = sorted(own.means.values())
        colour = _VERDICT["yes" if own.table_size else "no"]
        axes.plot(means, [i] * len(means), "o-", color=colour, linewidth=1.2, markersize=3.4, zorder=4)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    low, high = axes.set_xlim(min(low, 0.1), max(high, 1.3))
    axes.xaxis.set_major_locator(FixedLocator([s for s in (0.001, 0.01, 0.1, 1, 10, 100, 1000) if low <= s <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _draw_logs(axes: Axes, readings: Sequence[ReadingResult]) -> None:
    """Draw the log MSE of all methods. PSMT is green if it lies in the paper's band."""
    axes.axvspan(*PAPER_LOGS, color=_BAND, zorder=0.5, linewidth=0)
    for i, own in enumerate(readings):
        colour = _VERDICT["yes" if own.prediction_size else "no"]
        for method, marker in (("baseline2", "2"), ("baseline1", "1"), ("copy", "|"), ("mean", "x")):
            axes.plot(own.logs[method], i, marker, color=INK if method == "copy" else QUIET, markersize=5, zorder=3)
        axes.plot(own.logs["psmt"], i, "o", color=colour, markersize=4.6, zorder=4)
    names = {"PSMT": "o", "B 2": "2", "B 1": "1", "copy": "|", "mean": "x"}
    _draw_legend(axes, names, markersize=5, handletextpad=-0.5)


def _draw_legend(axes: Axes, markers: dict[str, str], *, markersize: float, **how: Any) -> None:
    """Draw a legend above the heading of a panel."""
    handles = [
        Line2D([], [], color=QUIET, marker=marker, linestyle="none", markersize=markersize, label=name)
        for name, marker in markers.items()
    ]
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.25, 1.0),
        borderaxespad=3.0,
        ncols=len(handles) or 1,
        fontsize=7,
        frameon=False,
        columnspacing=0.6,
        **how,
    )
