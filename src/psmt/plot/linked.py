"""Which atoms move together: the graph of a model's embedding, or the sizes of its parts over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_is_fitted

from psmt.embedding.atom_graph import THRESHOLD, links, similar_columns
from psmt.engines import engine_for
from psmt.figures.graphs import draw_graph, stable_positions
from psmt.figures.panels import as_picture, contrast
from psmt.figures.style import COLOURS, QUIET, RULE, SMALL, style_axes
from psmt.plot.drawn import Shape, axes_of, label, numbers, shape_of
from psmt.plot.tables import is_table, read_table

_PICTURES = 4
"""Atoms of each coloured part that are shown as pictures."""


def topology(
    model: Any,
    *,
    threshold: float = THRESHOLD,
    shape: Shape = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Axes with the graph of atoms whose columns of P point the same way; or of a table, with components over time.

    Parts of the graph of more than two atoms have colours, the largest first, and some of their atoms are shown.

    Parameters
    ----------
    model : fitted PSMT, embedding (n_components, n_atoms); or table
        A table is what ``psmt topology`` writes, topology.csv, or its result: the component of each chosen atom is
        drawn over time.
    threshold : float
        Cosine above which two atoms are linked.
    shape : (height, width), None or 'auto'
        Of atoms that are pictures, see `psmt.plot`.
    ax : Axes, optional
        Where to draw; a new figure's where none is given.
    """
    if is_table(model):
        return _over_time(model, ax)
    if hasattr(model, "get_params"):
        check_is_fitted(model)
    matrix = numbers(getattr(model, "embedding_", model), "embedding")
    used, similarity = similar_columns(matrix, None, engine_for("cpu"))
    pairs = links(used, similarity, threshold)
    ax = axes_of(ax, (7.4, 4.4))
    ax.set_axis_off()
    label(ax, f"{len(pairs):,} links between {len(used):,} atoms (cosine above {threshold:g})")
    if not len(pairs):
        ax.text(0.5, 0.5, "no atoms move together", transform=ax.transAxes, ha="center", color=QUIET)
        return ax
    linked, edges = np.unique(pairs, return_inverse=True)
    edges = edges.reshape(pairs.shape)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(len(linked), len(linked)))
    part = connected_components(graph, directed=False)[1]
    sizes = np.bincount(part)
    largest = [int(k) for k in np.argsort(-sizes, kind="stable")[: len(COLOURS)] if sizes[k] > 2]
    colours = np.array([COLOURS[largest.index(k)] if k in largest else RULE for k in part])
    positions = stable_positions([edges], len(linked))
    draw_graph(ax, positions, edges, colours)
    ax.set_aspect("equal")
    if (dictionary := getattr(model, "dictionary_", None)) is not None:
        known = shape_of(shape, model.codes_[-200:] @ dictionary)
        for row, k in enumerate(largest):
            # Where the part is densest, so that pictures stand for the whole of it.
            degree = np.bincount(edges.ravel(), minlength=len(linked)) * (part == k)
            for column, node in enumerate(np.argsort(-degree, kind="stable")[: min(_PICTURES, sizes[k])]):
                picture = as_picture(contrast(dictionary[linked[node]]), known)
                _show_atom(ax, picture, (1.5 + 0.42 * column, 1.05 - 0.42 * row), COLOURS[row])
        ax.set_xlim(-1.1, 1.5 + 0.42 * _PICTURES)
    return ax


def _show_atom(ax: Axes, picture: Any, place: tuple[float, float], colour: str) -> None:
    """A picture beside the graph, framed in the colour of its part."""
    image = OffsetImage(picture, zoom=28 / max(picture.shape), cmap="gray", clim=(-1, 1), interpolation="nearest")
    frame = {"edgecolor": colour, "linewidth": 1.8, "boxstyle": "square,pad=0.05"}
    ax.add_artist(AnnotationBbox(image, place, pad=0.0, bboxprops=frame))


def _over_time(table: Any, ax: Axes | None) -> Axes:
    columns = read_table(table, ("center", "atom", "component_size"), made_by="psmt topology (topology.csv)")
    ax = axes_of(ax, (7.0, 3.4))
    for i, atom in enumerate(dict.fromkeys(columns["atom"].tolist())):
        own = columns["atom"] == atom
        colour = COLOURS[i % len(COLOURS)]
        ax.plot(columns["center"][own], columns["component_size"][own], color=colour, label=f"atom {atom:g}")
    style_axes(ax)
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.legend(frameon=False, fontsize=SMALL)
    label(ax, "Links over time", "frame at the centre of the window", "atoms in component")
    return ax
