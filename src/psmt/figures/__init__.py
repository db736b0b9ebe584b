"""Style and panels that figures are made with. Each figure is a matplotlib `Figure`, never pyplot's."""

from psmt.figures.style import png

__all__ = ["png"]
