"""Plots of models and series. The gallery in the documentation shows an example of each function.

===============  =================================================================  =======================
`atoms`          what layer 1 has learned                                           model, dictionary
`codes`          which atoms are active when                                        model, codes
`trajectory`     the path of the film through the embedding                         model, points
`topology`       which atoms move together                                          model, embedding
`prediction`     predictions beside the true frames                                 model, predictions
`surprise`       how unexpected each frame was, with cuts                           model, surprise
===============  =================================================================  =======================

Each function draws on the given `ax`, or on a new figure, and returns the axes. A model must be fitted. `save` writes
PNG, PDF or SVG, depending on the file name.

Features that are pixels are drawn as pictures, other features as rows of cells, bars or lines. `shape` is the height
and width of the pictures, or None if features are not pixels. A dataset has this value as
`psmt.datasets.Dataset.picture_shape`. With ``shape="auto"``, features count as pixels if they form a square in which
neighbours are similar.
"""

from psmt.plot.curves import prediction, surprise
from psmt.plot.models import atoms, codes, topology, trajectory
from psmt.plot.shared import save

__all__ = ["atoms", "codes", "prediction", "save", "surprise", "topology", "trajectory"]
