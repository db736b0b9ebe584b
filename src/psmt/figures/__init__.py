"""Style and panels that all figures share. Each figure is a matplotlib `Figure` that does not use pyplot."""

from psmt.figures.style import png

__all__ = ["png"]
