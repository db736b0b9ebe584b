"""Beyond the paper: a map of all atoms, those that move together side by side."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from psmt.experiments.topology.component_panels import atom_colour
from psmt.experiments.topology.result import TopologyResult
from psmt.figures.panels import WIDTH, as_picture, contrast, panel, show_tiles, tile_gap, tiled
from psmt.figures.style import INK, QUIET, TEXT, TITLE


def atom_map_figure(result: TopologyResult) -> Figure:
    """Figure of all used atoms, those that move together side by side; the chosen atoms are framed."""
    atom_map = result.atom_map
    place = {int(atom): where for atom, where in zip(atom_map.atoms, atom_map.places, strict=True)}
    pictures = [as_picture(contrast(result.dictionary[atom]), result.picture_shape) for atom in place]
    canvas = tiled(pictures, list(place.values()), atom_map.shape)
    tall, wide = as_picture(result.dictionary[0], result.picture_shape).shape
    gap = tile_gap(tall)
    inside = WIDTH - 0.3
    map_height = inside * canvas.shape[0] / canvas.shape[1]
    height = map_height + 1.25
    figure = Figure(figsize=(WIDTH, height))
    axes = panel(figure, 0.15, 0.45, inside, map_height)
    show_tiles(axes, canvas)
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
