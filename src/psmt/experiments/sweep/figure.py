"""Fig. 2 of the paper: reconstruction errors by number of atoms and window length."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from psmt.experiments.sweep.run import SweepResult
from psmt.figures.panels import heading, panel_figure
from psmt.figures.style import COLOURS, INK, MARKERS, QUIET, SMALL, style_axes
from psmt.types import Array

_LOG_FROM = 25  # the axis is logarithmic if the largest error is at least this many times the smallest

_STYLES = [{"color": COLOURS[k], "marker": mark} for k, mark in zip((0, 2, 1, 3, 4, 5), MARKERS, strict=True)]
"""Colour and marker of each number of atoms, smallest first."""


def sweep_figure(result: SweepResult, lams: Sequence[float]) -> Figure:
    """Draw Fig. 2 for each penalty λ: quartiles of the errors, a panel for each number of atoms and window length."""
    table, settings, n_frames = result.table(), result.settings, result.n_frames
    sizes = [size for size in settings.n_atoms if any(own.n_atoms == size and not own.missing for own in table)]
    ratios, n_rows = range(len(settings.ratios)), len(sizes)
    note = "Line: median of the frames of a segment; band: quartiles."
    missing = {own.n_atoms: own.window for own in reversed(table) if own.n_atoms not in sizes}
    if missing:
        names = ", ".join(f"M = {size:,} (from {missing[size]:,})" for size in sorted(missing))
        note += f"\nNot in {n_frames:,} frames: {names}."
    figure, panels = panel_figure(
        [[f"{lam} {i} {j}" for j in ratios] for lam in lams for i in range(n_rows)],
        height=1.0 + len(lams) * (0.7 + 1.3 * max(n_rows, 2)),
        title="Reconstruction error (MSE) by atoms M and window H",
        note=note,
    )
    for lam in lams:
        quartiles = {
            key[1:]: np.quantile(own, (0.25, 0.5, 0.75), axis=1) for key, own in result.errors.items() if key[0] == lam
        }
        span = min(own.min() for own in quartiles.values()), max(own.max() for own in quartiles.values())
        for i, size in enumerate(sizes):
            for j, window in enumerate(settings.windows(size)):
                axes = panels[f"{lam} {i} {j}"]
                if (size, window) in quartiles:
                    _draw_segments(axes, quartiles[size, window], settings.segments(window, n_frames), i)
                else:
                    about = {"ha": "center", "fontsize": SMALL, "color": QUIET}
                    axes.text(0.5, 0.5, f"needs {window:,} frames", about, transform=axes.transAxes)
                _draw_frame(axes, span, n_frames)
                axes.tick_params(labelbottom=i == n_rows - 1, labelleft=j == 0)
                if i == 0:
                    heading(axes, "abcdefgh"[j % 8], f"H = {settings.ratios[j]:g} M, λ = {lam:g}")
                if i == n_rows - 1:
                    axes.set_xlabel("centre of segment (frame)", fontsize=SMALL, color=INK)
                if j == 0:
                    axes.set_ylabel(f"M = {size:,}", fontsize=10.5, fontweight="bold", color=_STYLES[i % 6]["color"])
    return figure


def _draw_segments(axes: Axes, quartiles: Array, places: Sequence[tuple[int, int]], i: int) -> None:
    """Draw quartiles (3, n_windows) in style `i`, at the centres of windows. `places` has each (start, stop)."""
    lower, median, upper = quartiles
    centers = np.mean(places, axis=1)
    look: dict[str, Any] = _STYLES[i % 6] | {"markersize": 3.6, "markeredgecolor": "white", "markeredgewidth": 0.4}
    if len(places) == 1:
        # A band needs two ends: one segment is drawn over its whole length.
        look["marker"] = None
        lower, median, upper = np.repeat(quartiles, 2, axis=1)
        centers = np.array(places[0], dtype=np.float64)
    axes.fill_between(centers, lower, upper, color=look["color"], alpha=0.22, linewidth=0)
    axes.plot(centers, median, linewidth=1.6, markevery=max(1, len(centers) // 16), **look)


def _draw_frame(axes: Axes, span: tuple[float, float], n_frames: int) -> None:
    """Set the limits and ticks of a panel. `span` is the (smallest, largest) error in all panels of the same λ."""
    low, high = span
    style_axes(axes)
    if low > 0 and high / low > _LOG_FROM:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.15, 1.25 * high)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 300 else (1.0, 3.0)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(0, 1.12 * high if high > 0 else 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlim(0, n_frames)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 5, 10], prune="upper"))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
