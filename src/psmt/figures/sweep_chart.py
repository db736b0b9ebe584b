"""Table 1 as a chart: reconstruction errors by atoms M and window H."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from psmt.figures.style import COLOURS, INK, SMALL, style_axes

MARKERS = ("o", "s", "^", "D", "v", "P")
"""Markers by M, smallest first."""


def size_colour(i: int) -> str:
    """Colour of the i-th M, smallest first."""
    return COLOURS[(0, 2, 1, 3, 4, 5)[i % 6]]


def draw_sweep(axes: Axes, table: Sequence[Any]) -> None:
    """Draw trimmed means and standard deviations, with a line per M over H / M, and untrimmed means as hollow markers.

    Entries have the attributes `n_atoms`, `window`, `trimmed_mean`, `trimmed_std` and `mean`; missing ones are NaN.
    """
    there = [row for row in table if np.isfinite(row.mean)]
    # A window is a whole number of codes, so H / M is only close to the ratio asked for.
    ratios = sorted({round(row.window / row.n_atoms, 2) for row in table})
    sizes = sorted({row.n_atoms for row in there})
    top = 0.0
    for i, size in enumerate(sizes):
        rows = sorted((row for row in there if row.n_atoms == size), key=lambda row: row.window)
        at = np.array([ratios.index(round(row.window / size, 2)) for row in rows]) + 0.14 * (i - (len(sizes) - 1) / 2)
        look: dict[str, Any] = {"color": size_colour(i), "marker": MARKERS[i % len(MARKERS)]}
        means, stds = [row.trimmed_mean for row in rows], [row.trimmed_std for row in rows]
        axes.errorbar(
            at, means, yerr=stds, linewidth=1.5, elinewidth=1.0, markersize=5.4, zorder=4, label=f"M = {size:,}", **look
        )
        untrimmed = [row.mean for row in rows]
        axes.plot(at + 0.06, untrimmed, linestyle="none", markersize=4.2, markerfacecolor="white", zorder=3, **look)
        top = max(top, *(max(row.mean, row.trimmed_mean + row.trimmed_std) for row in rows))
    style_axes(axes)
    axes.set_ylim(0, 1.08 * top if top > 0 else 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlim(-0.5, len(ratios) - 0.5)
    axes.set_xticks(range(len(ratios)), [f"{ratio:g} M" for ratio in ratios])
    axes.set_xlabel("window H", fontsize=SMALL, color=INK)
    axes.set_ylabel("mean MSE ± standard deviation", fontsize=SMALL, color=INK, labelpad=3)
