"""Plots of models, series and tables, one function each; the gallery (docs/gallery) shows examples.

===============  =================================================================  =======================
`atoms`          what layer 1 has learned                                           model, dictionary
`codes`          which atoms are active when                                        model, codes
`trajectory`     the path of the film through the embedding                         model, points
`topology`       which atoms move together, now or over time                        model, topology.csv
`prediction`     predictions beside the true frames; or errors of all methods       model, prediction.csv
`surprise`       how unexpected each frame was, with cuts                           model, scores.csv
`sweep`          errors by size and sparsity penalty                                model, sweep.csv
===============  =================================================================  =======================

Each function draws on the given `ax`, or on a new figure, and returns the axes. A model must be fitted. A table is the
path of a CSV file that a command of psmt has written, a data frame, a mapping of columns, or the result itself. `save`
writes PNG, PDF or SVG, by the name of the file.

Features that are the pixels of a picture are drawn as one, others as bars or lines: `shape` is the height and width of
pictures, or None for other features. A dataset knows it (`psmt.datasets.Dataset.picture_shape`). With ``shape="auto"``,
features are taken for pixels if they fill a square in which neighbours are similar.
"""

from psmt.plot.curves import prediction, surprise, sweep
from psmt.plot.models import atoms, codes, topology, trajectory
from psmt.plot.shared import save

__all__ = ["atoms", "codes", "prediction", "save", "surprise", "sweep", "topology", "trajectory"]
