"""Helpers of all plots: axes and labels, conversion of models to arrays, shapes of pictures, and files."""

from collections.abc import Mapping
from math import isqrt
from pathlib import Path
from typing import Any, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.utils.validation import check_is_fitted

from psmt.errors import PSMTError
from psmt.figures.panels import label_axes
from psmt.figures.style import INK, SMALL, TITLE, png
from psmt.types import Array
from psmt.utils.files import writing

Shape: TypeAlias = tuple[int, int] | Literal["auto"] | None
"""Height and width of pictures, None if features are not pixels, or 'auto' to detect it."""

ALIKE = 0.2
"""Correlation of neighbouring pixels above which an array is treated as a picture."""

_KINDS = (".pdf", ".png", ".svg")

BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
"""Place of a legend to the right of the axes."""

ABOVE: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 4, "borderaxespad": 0.2}
"""Place of a legend above the axes, to the right of the title."""


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes `ax`. If None, return axes of a new figure of `size` inches, which notebooks display."""
    if ax is not None:
        return ax
    # Imported late, because pyplot looks for a screen, which is needed only for a new figure.
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def label(ax: Axes, title: str, x: str = "", y: str = "", *, legend: Mapping[str, Any] | None = None) -> Axes:
    """Set the title and the axis labels, and a legend if its options are given. Return the axes."""
    ax.set_title(title, fontsize=TITLE, fontweight="bold", color=INK, loc="left")
    label_axes(ax, x, y)
    if legend is not None:
        ax.legend(frameon=False, fontsize=SMALL, **legend)
    return ax


def save(drawn: Axes | Figure, path: str | Path, *, dpi: int = 150) -> Path:
    """Write a figure to a PNG, PDF or SVG file, completely or not at all, and return its path.

    `drawn` is a figure, or axes that a function of `psmt.plot` returned. The path ends in ``.png``, ``.pdf`` or
    ``.svg``. `dpi` is the resolution of a PNG. Equal figures give equal bytes, because no date is written.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _KINDS:
        raise PSMTError(f"{target} does not end in a known format; use {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes do not belong to a figure any more; draw them again")
    date: dict[str, Any] = {"CreationDate" if kind == ".pdf" else "Date": None}
    with writing(target) as file, mpl.rc_context({"svg.hashsalt": "psmt", "svg.fonttype": "none"}):
        if kind == ".png":
            file.write(png(figure, dpi=dpi))
        else:
            figure.savefig(file, format=kind[1:], metadata=date, facecolor="white")
    return target


def fitted(given: Any) -> Any:
    """Return the given object. Raise an error if it is a model that is not fitted."""
    if hasattr(given, "get_params"):
        check_is_fitted(given)
    return given


def numbers(values: Any, name: str, *, axes: int = 2) -> Array:
    """Return the values as an array. Raise an error if it is empty or does not have `axes` axes."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or array.size == 0:
        form = "(time, n)" if axes == 2 else "(time,)"
        raise ValueError(f"{name} has shape {array.shape}; give a model, or an array {form} that is not empty")
    return array


def shape_of(shape: Shape, values: Array) -> tuple[int, int] | None:
    """Return (height, width) of the pictures in the rows of `values` (n, n_features), or None for other features."""
    n_features = values.shape[1]
    if shape is None:
        return None
    if shape == "auto":
        side = isqrt(n_features)
        if side**2 != n_features or side < 3:
            return None
        return (side, side) if looks_like_pictures(values.reshape(-1, side, side)) else None
    height, width = shape
    if height * width != n_features:
        raise ValueError(f"shape={shape} has {height * width} pixels, not {n_features} features; use None for bars")
    return int(height), int(width)


def looks_like_pictures(patches: Array) -> bool:
    """Return whether neighbouring pixels of patches (n, side, side) correlate, along rows as well as along columns."""
    along = [np.mean(patches[:, 1:] * patches[:, :-1]), np.mean(patches[:, :, 1:] * patches[:, :, :-1])]
    return bool(min(along) > ALIKE * np.mean(patches**2))
