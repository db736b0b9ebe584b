"""What figures share: places in inches, headings, and pictures of values."""

from __future__ import annotations

from math import isqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.figures.style import INK
from psmt.types import Array

WIDTH = 10.0
"""Inches that a figure is wide."""

_BARS, _LEVELS = 64, 16
"""Bars in the picture of a series at the most, and their steps from zero to either end."""


def panel(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at a place given in inches."""
    whole_width, whole_height = figure.get_size_inches()
    return figure.add_axes((left / whole_width, bottom / whole_height, width / whole_width, height / whole_height))


def heading(axes: Axes, letter: str, text: str, *, lift: float = 7) -> None:
    """Letter and title above a panel, `lift` points up."""
    axes.annotate(
        f"{letter}  {text}",
        (0, 1),
        (0, lift),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=10.5,
        fontweight="bold",
        color=INK,
        annotation_clip=False,
    )


def contrast(values: Array) -> Array:
    """The values with the largest of them at 1 or -1."""
    return values / max(float(np.abs(values).max()), 1e-12)


def fills_square(n_features: int) -> bool:
    """Whether so many features are taken for the pixels of a square patch."""
    return isqrt(n_features) ** 2 == n_features


def as_picture(values: Array, limit: float = 1.0, *, series: bool = False) -> Array:
    """Values (n_features,) as a picture (height, width) whose black and white are at -`limit` and `limit`.

    Features that fill a square are its pixels, unless they are known to be those of a series. Others are bars from a
    middle line; neighbours share a bar where there are many.

    >>> as_picture(np.array([1.0, 2.0, -4.0, 0.0]))
    array([[ 1.,  2.],
           [-4.,  0.]])
    >>> as_picture(np.linspace(-1, 1, 31)).shape, as_picture(np.linspace(-1, 1, 16), series=True).shape
    ((32, 31), (32, 16))
    """
    if fills_square(len(values)) and not series:
        return values.reshape(isqrt(len(values)), -1)
    bars = np.array([part.mean() for part in np.array_split(values, min(len(values), _BARS))])
    levels = limit * (np.arange(_LEVELS, -_LEVELS, -1) - 0.5)[:, None] / _LEVELS
    reached = np.where(levels > 0, levels <= bars, levels >= bars)
    return np.where(reached, limit * np.sign(levels), 0.0)
