"""Figure of the rows of P by solution, and of the locality and error of each solution on every material."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from psmt.evaluation import Interval
from psmt.figures.panels import contrast, draw_estimates, heading, panel_figure
from psmt.figures.style import COLOURS, INK, QUIET, SMALL
from psmt.types import Array
from studies.locality.made_up import ATOMS_PER_PLACE, KINDS, PLACES
from studies.locality.result import MATERIALS, LocalityResult, Material
from studies.locality.settings import label

_MEASURES = {
    "atoms": "atoms per row",
    "group": "share in one place",
    "frames": "share of frames",
    "mse": "MSE ÷ closed form's",
}

_COLOURS = {
    "closed": COLOURS[0],
    "turned": COLOURS[5],
    "sgd": COLOURS[2],
    "early": COLOURS[4],
    "sparse": COLOURS[1],
    "copy": INK,
    "copy_code": INK,
    "mean": INK,
}


def locality_figure(result: LocalityResult) -> Figure:
    """Draw P of a made-up series for up to four solutions, and a chart of means per material and measure."""
    methods = result.materials[0].methods
    early, sparse = ([name for name in methods if name.startswith(kind)] for kind in ("early", "sparse"))
    solutions = ["closed", "turned", *early[-1:], *sparse[len(sparse) // 2 :][:1]]
    layout = [[*solutions, *["."] * (len(_MEASURES) - len(solutions))]]
    layout += [[f"{material.name} {what}" for what in _MEASURES] for material in result.materials]
    chart_height = 0.19 * len(methods) + 0.85
    figure, panels = panel_figure(
        layout,
        height=3.3 + chart_height * len(result.materials),
        title="How local P is, and what it predicts",
        note="Dots: means over starts; bars: their 95% intervals. Vertical line: the closed form. Further "
        "left is more local or better,\nexcept for the share in one place. “Rotated”: after a rotation (varimax), "
        "which does not change predictions.",
        heights=[2.3, *[chart_height] * len(result.materials)],
    )
    (in_turn,) = (material for material in result.materials if material.name == "times")
    for name in solutions:
        _draw_weights(panels[name], in_turn.weights(name), label(name))
    panels["closed"].set_ylabel("rows of P", fontsize=SMALL, color=INK)
    _wide_heading(panels["closed"], "a", f"P of one window, {KINDS['times']}: weights of the atoms", lift=21)
    for letter, material in zip("bcdefg", result.materials, strict=False):
        for what in _MEASURES:
            _draw_measure(panels[f"{material.name} {what}"], material, what)
        first = panels[f"{material.name} atoms"]
        first.tick_params(labelleft=True)
        first.set_title(" ")
        _wide_heading(first, letter, MATERIALS[material.name])
    return figure


def _wide_heading(axes: Axes, letter: str, text: str, *, lift: float = 7) -> None:
    """Write a heading that may be wider than its panel. The layout ignores it, so an empty title reserves its place."""
    heading(axes, letter, text, lift=lift)
    axes.texts[-1].set_in_layout(False)


def _draw_weights(axes: Axes, weights: Array, title: str) -> None:
    """Draw weights (n_components, n_atoms), with rows sorted by the place where most of their mass lies."""
    mass = (weights**2).reshape(len(weights), PLACES, -1).sum(axis=2)
    rows = contrast(weights[np.lexsort((-mass.max(axis=1), mass.argmax(axis=1)))])
    axes.imshow(rows, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    for place in range(1, PLACES):
        axes.axvline(place * ATOMS_PER_PLACE - 0.5, color=INK, linewidth=0.6)
    axes.set_xticks((np.arange(PLACES) + 0.5) * ATOMS_PER_PLACE - 0.5, [str(p + 1) for p in range(PLACES)])
    axes.set_xlabel("place", fontsize=SMALL, color=INK)
    axes.set_yticks([])
    axes.tick_params(length=0, labelsize=SMALL, labelcolor=INK)
    axes.set_title(f" \n{title}", fontsize=SMALL, color=INK, loc="left", pad=4)


def _draw_measure(axes: Axes, material: Material, what: str) -> None:
    """Draw means over starts with their intervals, one row per method. Errors are relative to the closed form."""
    relative = what == "mse"
    intervals = {
        method: np.exp(material.log_ratio(method, what)) if relative else material.interval(method, what)
        for method in material.methods
    }
    rows = {label(method): {method: Interval(*interval)} for method, interval in intervals.items()}
    colours = {method: _COLOURS[method.partition("-")[0]] for method in material.methods}
    draw_estimates(axes, rows, colours, reference=float(intervals["closed"][0]))
    axes.tick_params(labelleft=False)
    axes.set_xlabel(_MEASURES[what], fontsize=SMALL, color=INK, labelpad=2)
    if relative:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 30 else (1,)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    elif what != "group" or material.has_groups:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    else:
        axes.xaxis.set_major_locator(FixedLocator([]))
        axes.text(0.5, 0.5, "not known of a film", transform=axes.transAxes, ha="center", fontsize=SMALL, color=QUIET)
