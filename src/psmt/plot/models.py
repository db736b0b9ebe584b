"""Plots of a model: its atoms, its codes, the path of a series through its embedding, and the graph of its atoms."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from psmt.embedding.atom_graph import THRESHOLD, links, similar_columns
from psmt.engines import engine_for
from psmt.figures.graphs import draw_graph, stable_positions
from psmt.figures.panels import as_picture, contrast, show_tiles, tiled
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, style_axes
from psmt.plot.shared import ABOVE, Shape, axes_of, fitted, label, numbers, shape_of
from psmt.types import Array
from psmt.utils.constraints import check_count

_NAMED = 34
"""Largest number of names below an axis. If there are more features, every second or third is named."""

_STRONGEST = 3  # number of features that are named for each coloured component

_PICTURES = 4  # number of atoms of each coloured component that are shown as pictures


def atoms(model: Any, *, n: int = 64, shape: Shape = "auto", ax: Axes | None = None) -> Axes:
    """Draw the `n` most used atoms of a model as pictures or rows, most used first. Each atom has its own colour scale.

    `model` is anything with a ``dictionary_``, or an array (n_atoms, n_features). An object without codes is drawn in
    the order of its dictionary. If features are not pixels, each atom is a row of coloured cells, one per feature.

    >>> import numpy as np
    >>> atoms(np.eye(6), shape=(2, 3)).get_title("left")
    '6 atoms'
    """
    check_count("n", n)
    own = getattr(model, "dictionary_", getattr(model, "dictionary", model))
    dictionary, used = numbers(fitted(own), "dictionary"), getattr(model, "codes_", None)
    order = np.argsort(-used.sum(axis=0), kind="stable") if used is not None else np.arange(len(dictionary))
    order = order[:n]
    # Frames are smoother than atoms, so it is easier to detect from them whether features are pixels.
    known = shape_of(shape, dictionary if used is None else used[-200:] @ dictionary)
    of = "" if len(order) == len(dictionary) else f" of {len(dictionary):,}"
    title = f"{len(order):,}{of} atoms{', most used first' if used is not None else ''}"
    if known is None:
        names = getattr(model, "feature_names_in_", None)
        return label(_rows(dictionary[order], names, ax), f"{title}, {dictionary.shape[1]} features", "feature", "atom")
    ax = axes_of(ax, (6.0, 6.3))
    pictures = [as_picture(contrast(dictionary[atom]), known) for atom in order]
    show_tiles(ax, tiled(pictures, int(np.ceil(np.sqrt(len(order))))))
    return label(ax, title)


def _rows(dictionary: Array, names: Any, ax: Axes | None) -> Axes:
    """Draw atoms (n, n_features) as rows of cells, blue for negative and red for positive values."""
    n, n_features = dictionary.shape
    ax = axes_of(ax, (7.0, float(np.clip(0.12 * n + 1.4, 2.4, 9.0))))
    values = [contrast(atom) for atom in dictionary]
    image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    style_axes(ax, grid=False)
    if names is not None:
        shown = range(0, n_features, -(-n_features // _NAMED))
        ax.set_xticks(shown, [str(names[i]) for i in shown], rotation=0 if n_features <= 8 else 90)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _colour_bar(ax, image, "value ÷ largest of the atom")
    return ax


def codes(model: Any, *, n: int = 40, last: int = 200, ax: Axes | None = None) -> Axes:
    """Draw the activity of the `n` most used atoms over time, in the latest `last` codes. The most used is on top.

    `model` is anything with ``codes_``, or an array (time, n_atoms).
    """
    check_count("n", n)
    check_count("last", last)
    activity = numbers(getattr(fitted(model), "codes_", model), "codes")[-last:]
    order = np.argsort(-activity.sum(axis=0), kind="stable")[:n]
    shown = activity[:, order].T
    top = float(np.percentile(shown[shown > 0], 99)) if (shown > 0).any() else 1.0
    extent = (-len(activity) + 0.5, 0.5, len(order) - 0.5, -0.5)
    ax = axes_of(ax, (7.5, 3.8))
    image = ax.imshow(shown, cmap="Greys", vmin=0, vmax=top, aspect="auto", interpolation="nearest", extent=extent)
    style_axes(ax, grid=False)
    _colour_bar(ax, image, "activity")
    share = (activity > 0).mean()
    return label(ax, f"Codes: {share:.1%} of activities are above zero", "frame, latest is 0", "atom, most used on top")


def trajectory(
    model: Any, X: ArrayLike | None = None, *, components: tuple[int, int] = (0, 1), ax: Axes | None = None
) -> Axes:
    """Draw the path of a series through the embedding, dark at its beginning and bright at its end.

    `model` is a model with ``transform``, or an array of points (time, n_components). With a model, `X` (time,
    n_features) are the frames whose points are drawn, by default the frames of the window. `components` are the two
    directions to draw. Direction 0 is the straightest.
    """
    if not hasattr(model, "transform"):
        points = numbers(model, "points")
    elif X is not None:
        points = model.transform(X)
    else:
        points = fitted(model).codes_ @ model.embedding_.T
    first, second = components
    if not max(components) < points.shape[1] or min(components) < 0:
        raise ValueError(f"components={components} are not there; there are 0 to {points.shape[1] - 1}")
    way = points[:, [first, second]]
    ax = axes_of(ax, (6.2, 4.8))
    steps = LineCollection(list(np.stack([way[:-1], way[1:]], axis=1)), cmap="viridis", linewidths=1.2, alpha=0.9)
    steps.set_array(np.arange(len(way) - 1.0))
    ax.add_collection(steps)
    for at, name, colour in ((way[0], "first", QUIET), (way[-1], "last", COLOURS[1])):
        ax.plot(*at, "o", color=colour, markeredgecolor=INK, markersize=7, label=name, zorder=5)
    ax.autoscale_view()
    style_axes(ax)
    _colour_bar(ax, steps, "frame")
    title = f"Trajectory of {len(way):,} frames"
    return label(ax, title, f"component {first}", f"component {second}", legend=ABOVE)


def _colour_bar(ax: Axes, colours: ScalarMappable, name: str) -> None:
    bar = ax.figure.colorbar(colours, ax=ax, pad=0.02)
    bar.set_label(name, fontsize=SMALL, color=INK)
    bar.ax.tick_params(labelsize=SMALL)


def topology(model: Any, *, threshold: float = THRESHOLD, shape: Shape = "auto", ax: Axes | None = None) -> Axes:
    """Draw the graph of a model's atoms, in which atoms that move together are linked.

    `model` is a `PSMT` or an embedding (n_components, n_atoms). Atoms are linked if the cosine of their columns of the
    embedding is above `threshold`. Connected components of more than two atoms are coloured, largest first. Some of
    their atoms are drawn as pictures, or described by their strongest features and the signs of these.
    """
    matrix = numbers(getattr(fitted(model), "embedding_", model), "embedding")
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
    component = connected_components(graph, directed=False)[1]
    sizes = np.bincount(component)
    largest = [int(k) for k in np.argsort(-sizes, kind="stable")[: len(COLOURS)] if sizes[k] > 2]
    colours = np.array([COLOURS[largest.index(k)] if k in largest else RULE for k in component])
    draw_graph(ax, stable_positions([edges], len(linked)), edges, colours)
    ax.set_aspect("equal")
    dictionary = getattr(model, "dictionary_", np.zeros((0, 1)))
    known = shape_of(shape, model.codes_[-200:] @ dictionary) if len(dictionary) else None
    names = getattr(model, "feature_names_in_", [f"feature {i}" for i in range(dictionary.shape[1])])
    for row, k in enumerate(largest if len(dictionary) else ()):
        place = 1.05 - 0.42 * row
        # The most linked atoms represent the component.
        degree = np.bincount(edges.ravel(), minlength=len(linked)) * (component == k)
        nodes = np.argsort(-degree, kind="stable")[: min(_PICTURES, sizes[k])]
        chosen = [contrast(dictionary[linked[node]]) for node in nodes]
        if known is None:
            mean = np.mean(chosen, axis=0)
            strongest = np.argsort(-np.abs(mean), kind="stable")[:_STRONGEST]
            text = ", ".join(f"{'+' if mean[i] > 0 else '−'} {names[i]}" for i in strongest)
            ax.text(1.3, place, text, color=COLOURS[row], fontsize=SMALL, va="center")
            continue
        for column, picture in enumerate(as_picture(atom, known) for atom in chosen):
            look: dict[str, Any] = {"cmap": "gray", "clim": (-1, 1), "interpolation": "nearest"}
            frame = {"edgecolor": COLOURS[row], "linewidth": 1.8, "boxstyle": "square,pad=0.05"}
            image = OffsetImage(picture, zoom=28 / max(picture.shape), **look)
            ax.add_artist(AnnotationBbox(image, (1.5 + 0.42 * column, place), pad=0.0, bboxprops=frame))
    if len(dictionary):
        ax.set_xlim(-1.1, 1.5 + 0.42 * _PICTURES)
    return ax
