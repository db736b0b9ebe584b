"""The style of all figures: font sizes, colours, and the line style of each method."""

from io import BytesIO
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from psmt.figures.dark import N_COLOURS, picture_places

INK = "#1b1f24"
QUIET = "#6a737d"
RULE = "#d5dae0"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of Okabe and Ito, which colour-blind readers can distinguish, in order of use."""
MARKERS = ("o", "s", "^", "D", "v", "P")

SETTLED = 10_000
"""k-means of colours stops when fewer pixels than this change their cluster. It then took a third of the time."""

TITLE, TEXT, SMALL = 12.0, 9.5, 8.5
"""Font sizes in points."""


def line_style(colour: str, width: float, dash: Any = "solid", layer: int = 3) -> dict[str, Any]:
    """Return keyword arguments of `Axes.plot` for a line. Lines with a larger `layer` are drawn on top."""
    caps = {"solid_capstyle": "round", "dash_capstyle": "butt"}
    return {"color": colour, "linewidth": width, "linestyle": dash, "zorder": layer, **caps}


# Copying, the reference, is black. Curves often coincide. So that no line hides another, thin lines lie on top of wide
# ones, and of two equally thin lines the upper one is dashed. A method on codes without the embedding is dotted, in the
# colour of the same method with the embedding.
METHOD_STYLES = {
    "psmt": line_style("#0072b2", 2.2, layer=5),
    "code_line": line_style("#0072b2", 1.4, (0, (1.0, 1.4)), layer=11),
    "psmt_gain": line_style("#009e73", 3.2, layer=3),
    "code_gain": line_style("#009e73", 1.4, (0, (1.0, 1.4)), layer=11),
    "baseline2": line_style("#e69f00", 1.6, layer=6),
    "baseline1": line_style("#d55e00", 1.6, (0, (5.0, 1.4)), layer=7),
    "copy_code": line_style(INK, 1.7, (0, (3.2, 1.6)), layer=8),
    "copy": line_style(INK, 2.8, layer=4),
    "mean_code": line_style("#c3c9d0", 1.3, (0, (3.2, 1.6)), layer=6),
    "mean": line_style(QUIET, 2.6, layer=3),
    "linear": line_style("#cc79a7", 1.4, layer=9),
    "pixel_gain": line_style("#cc79a7", 1.4, (0, (4.5, 1.2, 1.0, 1.2)), layer=9),
    "ridge": line_style("#56b4e9", 1.4, (0, (1.8, 1.8)), layer=10),
    "pca_var": line_style("#56b4e9", 1.2, (0, (6.0, 1.5)), layer=9),
    "sfa": line_style("#8c6d31", 1.2, (0, (3.2, 1.2, 1.0, 1.2)), layer=9),
    "motion": line_style("#7b4fa3", 1.6, layer=9),
    "whole_frame": line_style("#7b4fa3", 1.6, (0, (2.4, 1.2)), layer=12),
}
"""Style of the line of each method, in the order in which methods are displayed."""


def literal(text: str) -> str:
    r"""Return a text that matplotlib draws literally: dollar signs are escaped, unprintable characters become '?'.

    Names that come from files need this, because matplotlib fails on invalid UTF-8 and on incomplete formulas.

    >>> print(literal("\a costs $1"), literal("$x_$"))
    ? costs \$1 \$x_\$
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text).replace("$", r"\$")


def style_axes(axes: Axes, *, grid: bool = True) -> None:
    """Style axes: no frame at the top and right, grey ticks, and horizontal grid lines behind the data."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(QUIET)
        axes.spines[side].set_linewidth(0.8)
    axes.tick_params(colors=QUIET, labelcolor=INK, labelsize=SMALL, length=3, width=0.8)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis="y", color=RULE, linewidth=0.7)


def png(figure: Figure, *, dpi: int = 150) -> bytes:
    """Return the figure as a PNG file with `N_COLOURS` colours. Equal figures give equal bytes.

    The file has the positions of the pictures in the figure, so that `psmt.figures.dark` can make a dark version.
    """
    # Maximum coverage keeps the rare colours of thin lines, which the usual median cut would turn grey.
    drawn, file = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, facecolor="white")
    Image.open(drawn).convert("RGB").quantize(
        N_COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=SETTLED, dither=Image.Dither.NONE
    ).save(file, format="png", optimize=True, dpi=(dpi, dpi), pnginfo=picture_places(figure, dpi))
    return file.getvalue()
