"""Tables to pictures: each function returns a matplotlib `Figure`, and never touches pyplot."""

from psmt.figures.atom_map import atom_map_figure
from psmt.figures.frames import places_figure, scores_figure, stills_figure
from psmt.figures.prediction import prediction_figure
from psmt.figures.reconstruction import reconstruction_figure
from psmt.figures.style import png
from psmt.figures.sweep import sweep_figure
from psmt.figures.topology import topology_figure

__all__ = [
    "atom_map_figure",
    "places_figure",
    "png",
    "prediction_figure",
    "reconstruction_figure",
    "scores_figure",
    "stills_figure",
    "sweep_figure",
    "topology_figure",
]
