"""What all plots share: axes, the shape of pictures, and files."""

from __future__ import annotations

from io import BytesIO
from math import isqrt
from pathlib import Path
from typing import Any, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.data.speed_and_noise import looks_like_pictures
from psmt.errors import PSMTError
from psmt.figures.style import INK, TEXT, TITLE, png
from psmt.types import Array
from psmt.utils.files import writing

Shape: TypeAlias = tuple[int, int] | Literal["auto"] | None
"""Height and width of pictures, None for features without places, or 'auto' to look."""

_KINDS = (".pdf", ".png", ".svg")


def axes_of(ax: Axes | None, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """The axes that were given, or those of a new figure of `size` inches, which notebooks show by themselves."""
    if ax is not None:
        return ax
    # pyplot looks for a screen, which only who asks for a figure needs.
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def label(ax: Axes, title: str, x: str = "", y: str = "") -> None:
    """Write title and labels in the style of the house."""
    ax.set_title(title, fontsize=TITLE, fontweight="bold", color=INK, loc="left")
    ax.set_xlabel(x, fontsize=TEXT, color=INK)
    ax.set_ylabel(y, fontsize=TEXT, color=INK)


def shape_of(shape: Shape, values: Array) -> tuple[int, int] | None:
    """Height and width of the picture that the features of values (n, n_features) are the pixels of, or None."""
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
        raise ValueError(
            f"shape={shape} has {height * width} pixels but there are {n_features} features; use None for bars"
        )
    return int(height), int(width)


def save(drawn: Axes | Figure, path: str | Path, *, dpi: int = 150) -> Path:
    """Path of the file that a figure was written to, whole or not at all: PNG, PDF or SVG, by its name.

    The same figure gives the same bytes: no date is written.

    Parameters
    ----------
    drawn : Axes or Figure
        What a function of `psmt.plot` returned, or its figure.
    path : path
        Ends in ``.png``, ``.pdf`` or ``.svg``.
    dpi : int
        Dots per inch of a PNG; the others are drawn in lines.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _KINDS:
        raise PSMTError(f"{target} has no ending that says what to write; use {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure any more; draw them again")
    if kind == ".png":
        content = png(figure, dpi=dpi)
    else:
        file = BytesIO()
        dates: dict[str, Any] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
        with mpl.rc_context({"svg.hashsalt": "psmt", "svg.fonttype": "none"}):
            figure.savefig(file, format=kind[1:], metadata=dates[kind], facecolor="white")
        content = file.getvalue()
    with writing(target) as whole:
        whole.write(content)
    return target


def numbers(values: Any, name: str, *, axes: int = 2) -> Array:
    """The values as an array of so many axes."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or array.size == 0:
        form = "(time, n)" if axes == 2 else "(time,)"
        raise ValueError(f"{name} has shape {array.shape}; give a model, or an array {form} that is not empty")
    return array
