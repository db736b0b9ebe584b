"""Tables to pictures: each function returns a matplotlib `Figure`, and never touches pyplot."""

from psmt.figures.prediction import prediction_figure
from psmt.figures.reconstruction import reconstruction_figure
from psmt.figures.style import png

__all__ = ["png", "prediction_figure", "reconstruction_figure"]
