"""The two layers of a model: its atoms, its codes, and the way through its embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from psmt.figures.panels import as_picture, contrast, show_tiles, tiled
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, style_axes
from psmt.plot.drawn import Shape, axes_of, label, numbers, shape_of
from psmt.types import Array
from psmt.utils.validation import check_count

_TIME_COLOURS = "viridis"


def atoms(model: Any, *, n: int = 64, shape: Shape = "auto", ax: Axes | None = None) -> Axes:
    """Axes with the `n` most used atoms of a model, most used first, each on a scale of its own.

    Parameters
    ----------
    model : fitted model, or array (n_atoms, n_features)
        Anything with a ``dictionary_``. Without codes, atoms come in their own order.
    n : int
        Atoms to show at the most.
    shape : (height, width), None or 'auto'
        Of the picture that features are the pixels of; None draws bars. See `psmt.plot`.
    ax : Axes, optional
        Where to draw; a new figure's where none is given.

    Examples
    --------
    >>> import numpy as np
    >>> atoms(np.eye(6), shape=(2, 3)).get_title("left")
    '6 atoms'
    """
    check_count("n", n)
    dictionary, used = _dictionary(model), _used(model)
    order = np.argsort(-used.sum(axis=0), kind="stable") if used is not None else np.arange(len(dictionary))
    order = order[:n]
    # Frames are smoother than atoms: they tell better whether neighbours are alike.
    known = shape_of(shape, dictionary if used is None else used[-200:] @ dictionary)
    columns = int(np.ceil(np.sqrt(len(order) * (1 if known else 2.0))))
    columns = min(columns, len(order))
    places = [divmod(i, columns) for i in range(len(order))]
    pictures = [as_picture(contrast(dictionary[atom]), known) for atom in order]
    ax = axes_of(ax, (6.0, 6.3) if known else (7.0, 4.2))
    show_tiles(ax, tiled(pictures, places, (-(-len(order) // columns), columns)))
    of = "" if len(order) == len(dictionary) else f" of {len(dictionary):,}"
    kind = "" if known else f", {dictionary.shape[1]} features as bars"
    label(ax, f"{len(order):,}{of} atoms{', most used first' if used is not None else ''}{kind}")
    return ax


def codes(model: Any, *, n: int = 40, last: int = 200, ax: Axes | None = None) -> Axes:
    """Axes with the activity of the `n` most used atoms in the `last` codes, most used on top.

    Parameters
    ----------
    model : fitted model, or array (time, n_atoms)
        Anything with ``codes_``.
    n, last : int
        Atoms and frames to show at the most.
    ax : Axes, optional
        Where to draw; a new figure's where none is given.
    """
    check_count("n", n)
    check_count("last", last)
    activity = numbers(_codes(model), "codes")[-last:]
    order = np.argsort(-activity.sum(axis=0), kind="stable")[:n]
    ax = axes_of(ax, (7.5, 3.8))
    shown = activity[:, order].T
    top = float(np.percentile(shown[shown > 0], 99)) if (shown > 0).any() else 1.0
    image = ax.imshow(
        shown,
        cmap="Greys",
        vmin=0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
        extent=(-len(activity) + 0.5, 0.5, len(order) - 0.5, -0.5),
    )
    style_axes(ax, grid=False)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    bar.set_label("activity", fontsize=SMALL, color=INK)
    bar.ax.tick_params(labelsize=SMALL)
    share = (activity > 0).mean()
    label(ax, f"Codes: {share:.1%} of activities are above zero", "frame, from the latest", "atom, most used on top")
    return ax


def trajectory(
    model: Any, X: ArrayLike | None = None, *, components: tuple[int, int] = (0, 1), ax: Axes | None = None
) -> Axes:
    """Axes with the way of a series through the embedding, dark at its beginning and bright at its end.

    Parameters
    ----------
    model : fitted model, or array (time, n_components) of points
        With ``transform``; without `X` the points are those of its window.
    X : array_like (time, n_features), optional
        Frames to follow through the present embedding.
    components : (int, int)
        Which two; 0 is the straightest.
    ax : Axes, optional
        Where to draw; a new figure's where none is given.
    """
    if not hasattr(model, "transform"):
        points = numbers(model, "points")
    elif X is not None:
        points = model.transform(X)
    else:
        check_is_fitted(model)
        points = model.codes_ @ model.embedding_.T
    first, second = components
    if not max(components) < points.shape[1] or min(components) < 0:
        raise ValueError(f"components={components} are not there; there are 0 to {points.shape[1] - 1}")
    way = points[:, [first, second]]
    ax = axes_of(ax, (5.6, 4.8))
    steps = LineCollection(list(np.stack([way[:-1], way[1:]], axis=1)), cmap=_TIME_COLOURS, linewidths=1.2, alpha=0.9)
    steps.set_array(np.arange(len(way) - 1.0))
    ax.add_collection(steps)
    for at, name, colour in ((way[0], "first", QUIET), (way[-1], "last", COLOURS[1])):
        ax.plot(*at, "o", color=colour, markeredgecolor=INK, markersize=7, label=name, zorder=5)
    ax.autoscale_view()
    style_axes(ax)
    ax.legend(frameon=False, fontsize=SMALL)
    bar = ax.figure.colorbar(steps, ax=ax, pad=0.02)
    bar.set_label("frame", fontsize=SMALL, color=INK)
    bar.ax.tick_params(labelsize=SMALL)
    label(ax, f"{len(way):,} frames in the embedding", f"component {first}", f"component {second}")
    return ax


def _dictionary(model: Any) -> Array:
    dictionary = getattr(model, "dictionary_", getattr(model, "dictionary", model))
    if hasattr(dictionary, "get_params"):
        check_is_fitted(model)
    return numbers(dictionary, "dictionary")


def _codes(model: Any) -> Any:
    if hasattr(model, "get_params"):
        check_is_fitted(model)
    return getattr(model, "codes_", model)


def _used(model: Any) -> Array | None:
    """Codes (time, n_atoms) of a model that keeps them."""
    return getattr(model, "codes_", None)
