"""Beyond the paper: a map of all atoms, those that move together side by side."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from psmt.experiments.topology import TopologyResult, picture_side
from psmt.figures.panels import WIDTH, atom_colour, contrast, number, panel
from psmt.figures.style import INK, QUIET, TEXT, TITLE


def atom_map_figure(result: TopologyResult) -> Figure:
    """Figure of all used atoms, those that move together side by side; the chosen atoms are framed."""
    atom_map = result.atom_map
    side = picture_side(result.dictionary)
    gap = max(1, side // 8)
    pitch = side + gap
    rows, columns = atom_map.shape
    canvas = np.full((max(rows * pitch - gap, 1), max(columns * pitch - gap, 1)), np.nan)
    place = {int(atom): where for atom, where in zip(atom_map.atoms, atom_map.places, strict=True)}
    for atom, (row, column) in place.items():
        picture = contrast(result.dictionary[atom].reshape(side, side))
        canvas[row * pitch : row * pitch + side, column * pitch : column * pitch + side] = picture
    inside = WIDTH - 0.3
    map_height = inside * canvas.shape[0] / canvas.shape[1]
    height = map_height + 1.25
    figure = Figure(figsize=(WIDTH, height))
    axes = panel(figure, 0.15, 0.45, inside, map_height)
    axes.imshow(canvas, cmap="gray", vmin=-1, vmax=1, interpolation="auto", interpolation_stage="rgba")
    axes.set_axis_off()
    at = 0.15 / WIDTH
    for i, atom in enumerate(result.chosen):
        if atom not in place:
            continue
        row, column = place[atom]
        corner = (column * pitch - 0.5 - gap / 2, row * pitch - 0.5 - gap / 2)
        axes.add_patch(
            Rectangle(corner, pitch, pitch, fill=False, linewidth=2.6, edgecolor=atom_colour(i), clip_on=False)
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
        f"{number(atom_map.beside)} side by side, {number(atom_map.apart)} between any two.",
        fontsize=TEXT,
        color=QUIET,
        va="center",
    )
    return figure
