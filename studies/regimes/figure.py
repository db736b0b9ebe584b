"""Draw the map of regimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from psmt.figures.panels import heading, panel_figure
from psmt.figures.style import COLOURS, INK, SMALL, style_axes
from psmt.report.numbers import ratio
from studies.regimes.map import COPIES, LABELS, METHODS, MeasuredMap, Place, Ratio, marks_of

_COLOURS = LinearSegmentedColormap.from_list("copying", [COLOURS[0], "#ffffff", COLOURS[1]])
_FULL = np.log(30.0)
"""Logarithm of the ratio that is drawn in the full colour. The reciprocal ratio has the full opposite colour."""

_NOTE = (
    "Mean MSE divided by another method's: blue wins, orange loses; in brackets, inconclusive (95% interval, 5% "
    "margin).\na, b: divided by the best method without an embedding in each cell. c: divided by copying."
)


def methods_figure(measured: MeasuredMap) -> Figure:
    """Draw maps of the straight line and of the best method, and a small map of each other method below them."""
    others = [method for method in METHODS if method not in ("psmt", *COPIES.values())]
    half = -(-len(others) // 2)
    small = [
        [f"{against} {method}" if method else "." for method in (*row, *[""] * (half - len(row)))]
        for against in COPIES
        for row in (others[:half], others[half:])
    ]
    n_noises = len(marks_of(measured.best("frame"))[1])
    tall, low = 0.9 + 0.36 * n_noises, 4 * (0.35 + 0.16 * n_noises)
    figure, panels = panel_figure(
        [[[["a", "b", "c"]]], [small]],
        height=0.95 + tall + low,
        heights=[tall, low],
        title="Which methods predict best, by the film’s speed and noise",
        note=f"{_NOTE} Small maps: each method divided by copying.",
    )
    _draw_regimes(panels, measured)
    for against in COPIES:
        for method in others:
            axes = panels[f"{against} {method}"]
            _draw_ratios(axes, measured.ratios[against][method])
            axes.set(xticks=[], yticks=[])
            axes.set_title(LABELS[method].removeprefix("PSMT, "), fontsize=SMALL, color=INK, pad=4)
            if method in (others[0], others[half]):
                axes.set_ylabel(f"vs {against}", fontsize=SMALL, color=INK, rotation=0, ha="right", va="center")
    return figure


def _draw_regimes(panels: Mapping[str, Axes], known: MeasuredMap) -> None:
    """Draw PSMT's straight line against the best simple method for codes (a) and frames (b); the best method (c)."""
    for letter, title, cells, write in (
        ("a", "line ÷ best simple, vs code", known.to_simple["code"]["psmt"], _write_ratio),
        ("b", "line ÷ best simple, vs frame", known.to_simple["frame"]["psmt"], _write_ratio),
        ("c", "least error vs frame", known.best("frame"), _write_method),
    ):
        axes, (speeds, noises) = panels[letter], marks_of(cells)
        _draw_ratios(axes, cells, write)
        heading(axes, letter, title)
        axes.set_xticks(range(len(speeds)), [f"{speed:g}" for speed in speeds])
        axes.set_yticks(range(len(noises)), [f"{noise:g}" for noise in noises])
        axes.tick_params(labelleft=letter == "a")
        axes.set_xlabel("speed (pixels per frame)", fontsize=SMALL, color=INK)
    panels["a"].set_ylabel("noise ÷ contrast", fontsize=SMALL, color=INK)


def _draw_ratios(
    axes: Axes, cells: Mapping[Place, Ratio], write: Callable[[Ratio], dict[str, Any]] | None = None
) -> None:
    """Draw the ratio in each cell of a map as a colour. `write` returns the text in the cell."""
    speeds, noises = marks_of(cells)
    logs = np.log([[cells[speed, noise].mean for speed in speeds] for noise in noises])
    axes.imshow(logs, cmap=_COLOURS, vmin=-_FULL, vmax=_FULL, origin="lower", aspect="auto")
    style_axes(axes, grid=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    if write is None:
        return
    for (i, j), value in np.ndenumerate(logs):
        colour = "white" if abs(value) > 0.72 * _FULL else INK
        axes.text(j, i, **write(cells[speeds[j], noises[i]]), ha="center", va="center", color=colour, linespacing=0.9)


def _write_ratio(value: Ratio) -> dict[str, Any]:
    text = ratio(value.mean) if abs(value.mean - 1) >= 0.005 else f"{value.mean:.2f}"
    weight = "bold" if value.verdict == "yes" else "normal"
    return {"s": f"({text})" if value.verdict == "inconclusive" else text, "fontsize": 7.0, "fontweight": weight}


def _write_method(value: Ratio) -> dict[str, Any]:
    return {"s": fill(LABELS[value.method], 8), "fontsize": 6.2}
