"""Line style of each method, the same in all figures."""

from __future__ import annotations

from psmt.evaluation import METHODS
from psmt.figures.style import INK, QUIET, LineStyle

# Colours of Okabe and Ito, which colour-blind readers can distinguish. Copying, the reference, is black. Curves often
# coincide, so thin lines lie on top of wide ones, and of two equally thin lines the upper one is dashed: no line hides
# another.
_STYLES = {
    "psmt": LineStyle("#0072b2", 2.2, layer=5),
    "psmt_gain": LineStyle("#009e73", 3.2, layer=3),
    "baseline2": LineStyle("#e69f00", 1.6, layer=6),
    "baseline1": LineStyle("#d55e00", 1.6, (0, (5.0, 1.4)), layer=7),
    "copy_code": LineStyle(INK, 1.7, (0, (3.2, 1.6)), layer=8),
    "copy": LineStyle(INK, 2.8, layer=4),
    "mean_code": LineStyle("#c3c9d0", 1.3, (0, (3.2, 1.6)), layer=6),
    "mean": LineStyle(QUIET, 2.6, layer=3),
    "linear": LineStyle("#cc79a7", 1.4, layer=9),
    "ridge": LineStyle("#56b4e9", 1.4, (0, (1.8, 1.8)), layer=10),
}

METHOD_STYLES = {name: _STYLES.get(name, LineStyle(QUIET, 1.3)) for name in dict.fromkeys([*_STYLES, *METHODS])}
"""Styles by method, in the order of display."""
