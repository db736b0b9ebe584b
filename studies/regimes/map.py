"""The map of regimes from measured errors: its file and its figure."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from psmt.evaluation import log_mse, mean_interval
from psmt.experiments.expectation import (
    COPIES,
    FOOT,
    FORMAT,
    LEFT,
    METHODS,
    Against,
    Ratio,
    RegimeMap,
    draw_cells,
    draw_frame,
    draw_maps,
    place_figure,
)
from psmt.figures.panels import WIDTH, panel
from psmt.figures.style import INK, SMALL
from psmt.types import Array

_SMALL = 0.16
"""Inches per row of a small map."""


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
    """The map as in reports, and below it a small map of each other method, vs code and vs frame."""
    others = [method for method in METHODS if method not in ("linear", *COPIES.values())]
    small = len(known.noises) * _SMALL
    below = 2 * small + 0.95
    figure = Figure(figsize=(WIDTH, place_figure(known).get_figheight() + below))
    draw_maps(figure, known, FOOT + below)
    width = (WIDTH - LEFT - 0.15 - (len(others) - 1) * 0.12) / len(others)
    for i, against in enumerate(COPIES):
        for j, method in enumerate(others):
            axes = panel(figure, LEFT + j * (width + 0.12), FOOT - 0.32 + (1 - i) * (small + 0.14), width, small)
            draw_cells(axes, known, method, against, words=False)
            axes.set_xticks([])
            axes.set_yticks([])
            if i == 0:
                axes.set_title(METHODS[method].removeprefix("PSMT, "), fontsize=SMALL, color=INK, pad=4)
            if j == 0:
                axes.set_ylabel(f"vs {against}", fontsize=SMALL, color=INK, rotation=0, ha="right", va="center")
    draw_frame(figure, "Which method predicts better than copying, by the film’s speed and noise")
    return figure
