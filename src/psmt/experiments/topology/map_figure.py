"""Beyond the paper: a map of all atoms, those that move together side by side."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from psmt.experiments.topology.component_panels import atom_colour
from psmt.experiments.topology.result import TopologyResult
from psmt.figures.panels import WIDTH, as_picture, contrast, panel
from psmt.figures.style import INK, QUIET, TEXT, TITLE

BETWEEN = "#9aa1a9"
"""What is seen between the atoms."""


def atom_map_figure(result: TopologyResult) -> Figure:
    """Figure of all used atoms, those that move together side by side; the chosen atoms are framed."""
    atom_map, series = result.atom_map, result.settings.series
    place = {int(atom): where for atom, where in zip(atom_map.atoms, atom_map.places, strict=True)}
    tall, wide = as_picture(result.dictionary[0], series=series).shape
    gap = max(1, tall // 8)
    rows, columns = atom_map.shape
    canvas = np.full((max(rows * (tall + gap) - gap, 1), max(columns * (wide + gap) - gap, 1)), np.nan)
    for atom, (row, column) in place.items():
        top, left = row * (tall + gap), column * (wide + gap)
        canvas[top : top + tall, left : left + wide] = as_picture(contrast(result.dictionary[atom]), series=series)
    inside = WIDTH - 0.3
    map_height = inside * canvas.shape[0] / canvas.shape[1]
    height = map_height + 1.25
    figure = Figure(figsize=(WIDTH, height))
    axes = panel(figure, 0.15, 0.45, inside, map_height)
    # What lies between atoms is grey: neither a bright nor a dark page makes a grid of it.
    grey = colormaps["gray"].with_extremes(bad=BETWEEN)
    axes.imshow(canvas, cmap=grey, vmin=-1, vmax=1, interpolation="auto", interpolation_stage="rgba")
    axes.set_axis_off()
    at = 0.15 / WIDTH
    for i, atom in enumerate(result.chosen):
        if atom not in place:
            continue
        row, column = place[atom]
        corner = (column * (wide + gap) - 0.5 - gap / 2, row * (tall + gap) - 0.5 - gap / 2)
        axes.add_patch(
            Rectangle(
                corner, wide + gap, tall + gap, fill=False, linewidth=2.6, edgecolor=atom_colour(i), clip_on=False
            )
        )
        figure.text(
            at, 0.2 / height, f"□ atom {atom}", fontsize=TEXT, fontweight="bold", color=atom_colour(i), va="center"
        )
        at += 0.12
    figure.text(
        0.15 / WIDTH,
        1 - 0.25 / height,
        "All atoms, arranged by how they move",
        fontsize=TITLE,
        fontweight="bold",
        color=INK,
        va="center",
    )
    figure.text(
        0.15 / WIDTH,
        1 - 0.53 / height,
        f"{len(place):,} atoms in use; neighbours have similar columns of P. Correlation as pictures: "
        f"{_number(atom_map.beside)} side by side, {_number(atom_map.apart)} between any two.",
        fontsize=TEXT,
        color=QUIET,
        va="center",
    )
    return figure


def _number(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "none"
