"""What the figures of the topology share: places in inches, headings, colours and numbers."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from psmt.figures.style import INK, PHASES

Array = NDArray[np.float64]

WIDTH = 10.0
"""Inches that a figure is wide."""

_COLOURS = (*PHASES, "#e69f00", "#56b4e9")


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


def contrast(picture: Array) -> Array:
    """The picture with its largest value at 1 or -1."""
    return picture / max(float(np.abs(picture).max()), 1e-12)


def atom_colour(i: int) -> str:
    """Colour of the i-th chosen atom, the same in all panels."""
    return _COLOURS[i % len(_COLOURS)]


def number(value: float) -> str:
    """Two decimals, or "none" for NaN."""
    return f"{value:.2f}" if np.isfinite(value) else "none"


def percent(value: float) -> str:
    """A share in percent, or "none" for NaN."""
    return f"{100 * value:.2g}%" if np.isfinite(value) else "none"
