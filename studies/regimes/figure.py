"""The map of regimes with all methods."""

from __future__ import annotations

from matplotlib.figure import Figure

from psmt.experiments.expectation import COPIES, METHODS, REGIME_NOTE, RegimeMap, draw_ratios, draw_regimes
from psmt.figures.layouts import panel_figure
from psmt.figures.style import INK, SMALL


def methods_figure(known: RegimeMap) -> Figure:
    """Figure of the straight line and the best method; below it, a small map of each other method vs code and frame."""
    others = [method for method in METHODS if method not in ("linear", *COPIES.values())]
    small = [[f"{against} {method}" for method in others] for against in COPIES]
    tall, low = 0.9 + 0.36 * len(known.noises), 0.6 + 0.32 * len(known.noises)
    figure, panels = panel_figure(
        [[[["a", "b", "c"]]], [small]],
        height=0.95 + tall + low,
        heights=[tall, low],
        title="Which methods predict better than copying, by the film’s speed and noise",
        note=REGIME_NOTE,
    )
    draw_regimes({letter: panels[letter] for letter in "abc"}, known)
    for against in COPIES:
        for method in others:
            axes = panels[f"{against} {method}"]
            draw_ratios(axes, known, against, dict.fromkeys(known.cells, method))
            axes.set(xticks=[], yticks=[])
            if against == "code":
                axes.set_title(METHODS[method].removeprefix("PSMT, "), fontsize=SMALL, color=INK, pad=4)
            if method == others[0]:
                axes.set_ylabel(f"vs {against}", fontsize=SMALL, color=INK, rotation=0, ha="right", va="center")
    return figure
