"""Figures of the map of regimes: where copying is beaten, by speed and noise, and where a film lies."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from psmt.data.speed_and_noise import Regime
from psmt.experiments.expectation import COPIES, METHODS, Against, RegimeMap, scale
from psmt.figures.panels import WIDTH, heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, TITLE, style_axes
from psmt.report.numbers import ratio

_WINS, _LOSES = COLOURS[0], COLOURS[1]
_COLOURS = LinearSegmentedColormap.from_list("copying", [_WINS, "#ffffff", _LOSES])
_FULL = np.log(30.0)
"""A ratio of 30, or 1 / 30, has the full colour."""

_SHORT = {
    "linear": "straight\nline",
    "hold": "hold",
    "gain": "gain",
    "phase": "phase",
    "baseline1": "Base-\nline 1",
    "baseline2": "Base-\nline 2",
    "copy_code": "copy\ncode",
    "copy": "copy",
    "mean": "mean",
    "ridge": "ridge",
    "trend": "linear\npixels",
}

# Inches.
_LEFT, _GAP, _HEAD, _FOOT, _ROW, _SMALL = 0.75, 0.28, 0.9, 0.95, 0.36, 0.16


def place_figure(known: RegimeMap, regime: Regime | None = None) -> Figure:
    """The straight line relative to copying the code and the patch, and the best method; with a film's place."""
    figure, height = _figure(known, 0.0)
    _draw_large(figure, known, _FOOT, regime)
    _draw_words(
        figure, height, "Where the paper’s straight line beats copying" + ("" if regime is None else ", and this film")
    )
    return figure


def methods_figure(known: RegimeMap) -> Figure:
    """The same without a film; below it, a small map of each other method vs code and vs frame."""
    others = [method for method in METHODS if method not in ("linear", *COPIES.values())]
    small = len(known.noises) * _SMALL
    below = 2 * small + 0.95
    figure, height = _figure(known, below)
    _draw_large(figure, known, _FOOT + below, None)
    width = (WIDTH - _LEFT - 0.15 - (len(others) - 1) * 0.12) / len(others)
    for i, against in enumerate(COPIES):
        for j, method in enumerate(others):
            axes = panel(figure, _LEFT + j * (width + 0.12), _FOOT - 0.32 + (1 - i) * (small + 0.14), width, small)
            _draw_cells(axes, known, method, against, words=False)
            axes.set_xticks([])
            axes.set_yticks([])
            if i == 0:
                axes.set_title(METHODS[method].removeprefix("PSMT, "), fontsize=SMALL, color=INK, pad=4)
            if j == 0:
                axes.set_ylabel(f"vs {against}", fontsize=SMALL, color=INK, rotation=0, ha="right", va="center")
    _draw_words(figure, height, "Who predicts better than copying, by the film’s speed and noise")
    return figure


def _figure(known: RegimeMap, below: float) -> tuple[Figure, float]:
    height = _HEAD + len(known.noises) * _ROW + _FOOT + below
    return Figure(figsize=(WIDTH, height)), height


def _draw_large(figure: Figure, known: RegimeMap, bottom: float, regime: Regime | None) -> None:
    width = (WIDTH - _LEFT - 0.15 - 2 * _GAP) / 3
    height = len(known.noises) * _ROW
    titles = ("straight line ÷ copying code", "straight line ÷ copying patch", "least error vs frame")
    for k, title in enumerate(titles):
        axes = panel(figure, _LEFT + k * (width + _GAP), bottom, width, height)
        if k < 2:
            _draw_cells(axes, known, "linear", ("code", "frame")[k], words=True)
        else:
            _draw_best(axes, known)
        heading(axes, "abc"[k], title)
        axes.set_xticks(range(len(known.speeds)), [f"{speed:g}" for speed in known.speeds])
        axes.set_yticks(range(len(known.noises)), [f"{noise:g}" for noise in known.noises])
        axes.tick_params(labelleft=k == 0)
        axes.set_xlabel("speed (pixels per frame)", fontsize=SMALL, color=INK)
        if k == 0:
            axes.set_ylabel("noise ÷ contrast", fontsize=SMALL, color=INK)
        if regime is not None:
            _draw_film(axes, known, regime)


def _draw_cells(axes: Axes, known: RegimeMap, method: str, against: Against, *, words: bool) -> None:
    """Ratios to copying as colours; with `words` as numbers too, in brackets if inconclusive."""
    by_cell = known.ratios[against][method]
    logs = np.array([[np.log(by_cell[speed, noise].mean) for speed in known.speeds] for noise in known.noises])
    axes.imshow(logs, cmap=_COLOURS, vmin=-_FULL, vmax=_FULL, origin="lower", aspect="auto")
    _quiet_axes(axes)
    if not words:
        return
    for i, noise in enumerate(known.noises):
        for j, speed in enumerate(known.speeds):
            value = by_cell[speed, noise]
            text = ratio(value.mean) if abs(value.mean - 1) >= 0.005 else f"{value.mean:.2f}"
            axes.text(
                j,
                i,
                f"({text})" if value.verdict == "inconclusive" else text,
                ha="center",
                va="center",
                fontsize=7.0,
                color="white" if abs(logs[i, j]) > 0.72 * _FULL else INK,
                fontweight="bold" if value.verdict == "holds" else "normal",
            )


def _draw_best(axes: Axes, known: RegimeMap) -> None:
    """The best method in each cell, on the colour of its ratio to copying."""
    best = {cell: known.best(cell, "frame") for cell in known.cells}
    logs = [
        [np.log(known.ratios["frame"][best[speed, noise]][speed, noise].mean) for speed in known.speeds]
        for noise in known.noises
    ]
    axes.imshow(logs, cmap=_COLOURS, vmin=-_FULL, vmax=_FULL, origin="lower", aspect="auto")
    _quiet_axes(axes)
    for i, noise in enumerate(known.noises):
        for j, speed in enumerate(known.speeds):
            colour = "white" if logs[i][j] < -0.72 * _FULL else INK
            text = _SHORT[best[speed, noise]]
            axes.text(j, i, text, ha="center", va="center", fontsize=6.6, color=colour, linespacing=0.9)


def _draw_film(axes: Axes, known: RegimeMap, regime: Regime) -> None:
    slow, middle, fast = (scale(speed, known.speeds) for speed in (regime.slow, regime.speed, regime.fast))
    noise = scale(regime.noise, known.noises)
    axes.plot([slow, fast], [noise, noise], color=INK, linewidth=2.2, zorder=5, solid_capstyle="round")
    axes.plot(middle, noise, marker="D", markersize=7.5, color="#f0e442", markeredgecolor=INK, zorder=6)


def _quiet_axes(axes: Axes) -> None:
    style_axes(axes, grid=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)


def _draw_words(figure: Figure, height: float, title: str) -> None:
    figure.text(0.12 / WIDTH, 1 - 0.14 / height, title, fontsize=TITLE, fontweight="bold", color=INK, va="top")
    note = (
        "MSE divided by that of copying: blue wins, orange loses; in brackets, inconclusive (95% interval over "
        "films, 5% margin)."
    )
    if "this film" in title:
        note += "\nDiamond: this film’s median speed and its noise; bar: the middle half of its speeds."
    figure.text(0.12 / WIDTH, 0.12 / height, note, fontsize=SMALL, color=QUIET, va="bottom", linespacing=1.4)
