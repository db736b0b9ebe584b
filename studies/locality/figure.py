"""Rows of P by solution, and below them how local each is and what it predicts, on every material."""

from __future__ import annotations

from math import exp

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from psmt.evaluation import Interval
from psmt.figures.panels import WIDTH, contrast, heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, TITLE, style_axes
from psmt.types import Array
from studies.locality.made_up import ATOMS_PER_PLACE, KINDS, PLACES
from studies.locality.result import MATERIALS, LocalityResult, Material
from studies.locality.settings import label

# Inches. On top the rows of P; below, a line of panels per material, whose methods stand at the left.
_LEFT, _RIGHT, _GAP = 1.75, 0.2, 0.3
_HEAD, _PICTURE, _BETWEEN = 0.95, 1.35, 0.8
_STEP, _LINE_GAP, _FOOT = 0.19, 0.8, 1.1
_COLUMNS = {
    "atoms": "atoms per row",
    "group": "share in one place",
    "frames": "share of frames",
    "mse": "MSE ÷ closed form's",
}


def locality_figure(result: LocalityResult) -> Figure:
    """Figure with P of the first made-up series in turn, and a forest plot per material."""
    methods = result.materials[0].methods
    line = len(methods) * _STEP
    n = len(result.materials)
    height = _HEAD + _PICTURE + _BETWEEN + n * line + (n - 1) * _LINE_GAP + _FOOT
    figure = Figure(figsize=(WIDTH, height))
    _draw_pictures(figure, result, height - _HEAD - _PICTURE)
    width = (WIDTH - _LEFT - _RIGHT - (len(_COLUMNS) - 1) * _GAP) / len(_COLUMNS)
    for i, material in enumerate(result.materials):
        bottom = height - _HEAD - _PICTURE - _BETWEEN - i * (line + _LINE_GAP) - line
        for j, what in enumerate(_COLUMNS):
            axes = panel(figure, _LEFT + j * (width + _GAP), bottom, width, line)
            _draw_methods(axes, material, what, methods)
            axes.set_yticks(range(len(methods)), [label(method) for method in methods] if j == 0 else [])
            if j == 0:
                heading(axes, "bcdefg"[i % 6], MATERIALS[material.name])
            axes.set_xlabel(_COLUMNS[what], fontsize=SMALL, color=INK, labelpad=2)
    figure.text(
        0.12 / WIDTH,
        1 - 0.14 / height,
        "How local P is, and what it predicts",
        fontsize=TITLE,
        fontweight="bold",
        color=INK,
        va="top",
    )
    figure.text(
        0.12 / WIDTH,
        0.12 / height,
        "Dots: means over starts; lines: their 95% intervals (bootstrap). Dashed: the closed form. Left is more local "
        "or better, but for\nthe share in one place. “Turned” is the closed form after a rotation (varimax) that "
        "changes no prediction.",
        fontsize=SMALL,
        color=QUIET,
        va="bottom",
        linespacing=1.4,
    )
    return figure


def _draw_pictures(figure: Figure, result: LocalityResult, bottom: float) -> None:
    """Weights of P, rows sorted by their place, for four solutions of the series in which places take turns."""
    material = next(material for material in result.materials if material.name == "times")
    solutions = [name for name in material.methods if name.partition("-")[0] in ("closed", "turned", "early", "sparse")]
    early = [name for name in solutions if name.startswith("early")][-1:]
    sparse = [name for name in solutions if name.startswith("sparse")]
    chosen = ["closed", "turned", *early, *sparse[len(sparse) // 2 :][:1]]
    width = (WIDTH - 0.75 - _RIGHT - (len(chosen) - 1) * _GAP) / len(chosen)
    for j, name in enumerate(chosen):
        axes = panel(figure, 0.75 + j * (width + _GAP), bottom, width, _PICTURE)
        axes.imshow(
            contrast(_by_place(material.weights(name))),
            cmap="RdBu_r",
            vmin=-1,
            vmax=1,
            aspect="auto",
            interpolation="nearest",
        )
        for place in range(1, PLACES):
            axes.axvline(place * ATOMS_PER_PLACE - 0.5, color=INK, linewidth=0.6)
        axes.set_xticks((np.arange(PLACES) + 0.5) * ATOMS_PER_PLACE - 0.5, [f"place {p + 1}" for p in range(PLACES)])
        axes.set_yticks([])
        axes.tick_params(length=0, labelsize=SMALL, labelcolor=INK)
        axes.annotate(
            label(name), (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", fontsize=SMALL, color=INK
        )
        if j == 0:
            axes.set_ylabel("rows of P", fontsize=SMALL, color=INK)
            heading(axes, "a", f"P of one window, {KINDS['times']}: weights of the atoms", lift=19)


def _by_place(weights: Array) -> Array:
    """Rows of P, sorted by the middle of the places that they lie in."""
    mass = (weights**2).reshape(len(weights), PLACES, -1).sum(axis=2)
    return weights[np.lexsort((-mass.max(axis=1), mass.argmax(axis=1)))]


def _draw_methods(axes: Axes, material: Material, what: str, methods: list[str]) -> None:
    relative = what == "mse"
    for y, method in enumerate(methods):
        found = material.log_ratio(method, what) if relative else material.interval(method, what)
        if found.mean != found.mean:
            continue
        if relative:
            found = Interval(*map(exp, (found.mean, max(found.low, -50.0), min(found.high, 50.0))))
        colour = _colour(method)
        if found.low > 0 and found.high < 1e9:
            axes.plot([found.low, found.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=3)
        axes.plot(
            [found.mean],
            [y],
            marker="o",
            markersize=4.6,
            color=colour,
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=4,
        )
    closed = 1.0 if relative else float(material.interval("closed", what).mean)
    style_axes(axes, grid=False)
    if closed == closed:
        axes.axvline(closed, color=QUIET, linewidth=0.9, linestyle=(0, (3, 2)), zorder=1)
    axes.set_ylim(len(methods) - 0.5, -0.5)
    if relative:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 30 else (1,)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    elif closed == closed:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    else:
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_locator(FixedLocator([]))
        axes.text(0.5, 0.5, "not known of a film", transform=axes.transAxes, ha="center", fontsize=SMALL, color=QUIET)


def _colour(method: str) -> str:
    kinds = {"closed": 0, "turned": 5, "sgd": 2, "early": 4, "sparse": 1}
    kind = method.partition("-")[0]
    return COLOURS[kinds[kind]] if kind in kinds else INK
