"""The map of regimes from measured errors: its file and its figure."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from psmt.evaluation import log_mse, mean_interval
from psmt.experiments.expectation import (
    COPIES,
    FORMAT,
    METHODS,
    REGIME_NOTE,
    Against,
    Ratio,
    RegimeMap,
    draw_ratios,
    draw_regimes,
)
from psmt.figures.layouts import panel_figure
from psmt.figures.style import INK, SMALL
from psmt.types import Array


def measured_map(errors: Mapping[tuple[float, float], Array]) -> RegimeMap:
    """The map from MSEs (n_starts, n_methods, 2), vs code and vs frame, by (speed, noise)."""
    ratios: dict[Against, dict[str, dict[tuple[float, float], Ratio]]] = {
        against: {method: {} for method in METHODS} for against in COPIES
    }
    for cell, values in errors.items():
        logs = log_mse(values)
        for column, (against, copying) in enumerate(COPIES.items()):
            gaps = logs[:, :, column] - logs[:, [list(METHODS).index(copying)], column]
            for method, gap in zip(METHODS, gaps.T, strict=True):
                # Starts are in different films, so they are independent.
                ratios[against][method][cell] = Ratio(*np.exp(mean_interval(gap)).tolist())
    speeds, noises = (tuple(sorted(set(axis))) for axis in zip(*errors, strict=True))
    return RegimeMap(speeds=speeds, noises=noises, ratios=ratios)


def map_to_json(known: RegimeMap) -> bytes:
    """The file that `RegimeMap.from_json` reads: three digits per number, one line per method."""
    lines = [
        f'  "{against} {method}": {json.dumps([[float(f"{x:.3g}") for x in cells[cell]] for cell in known.cells])}'
        for against, methods in known.ratios.items()
        for method, cells in methods.items()
    ]
    head = {"format": FORMAT, "made_by": "studies.regimes", "speeds": known.speeds, "noises": known.noises}
    named = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    return ("{\n" + ",\n".join(named + lines) + "\n}\n").encode()


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
