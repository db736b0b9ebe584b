"""Style and panels that all figures share. Figures are matplotlib `Figure` objects, made without pyplot."""

from psmt.figures.style import png

__all__ = ["png"]
