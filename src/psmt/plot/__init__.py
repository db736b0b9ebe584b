"""Pictures of models, series and tables, one function each; the gallery (docs/gallery) shows them at work.

===============  =================================================================  =======================
`atoms`          what layer 1 has learned                                           model, dictionary
`codes`          which atoms are active when                                        model, codes
`trajectory`     the way of the film through the embedding                          model, points
`topology`       which atoms move together, now or over time                        model, topology.csv
`prediction`     what is predicted beside what came; or errors of all methods       model, prediction.csv
`surprise`       how unexpected each frame was, with cuts                           model, scores.csv
`sweep`          errors by size and price                                           model, sweep.csv
===============  =================================================================  =======================

Each draws on the `ax` that it is given, or on one of a new figure, and returns it. A table is the path of a CSV file
that a command of psmt has written, a data frame, a mapping of columns, or the result itself. `save` writes PNG, PDF or
SVG, by the name of the file.

Where features are the pixels of a picture they are drawn as one, else as bars or lines. A dataset knows which it is
(`psmt.datasets.Dataset.picture_shape`), and ``shape`` tells it. ``shape="auto"`` looks: the features must fill a square
in which neighbours are alike.
"""

from psmt.plot.curves import prediction, surprise, sweep
from psmt.plot.drawn import save
from psmt.plot.layers import atoms, codes, trajectory
from psmt.plot.linked import topology

__all__ = ["atoms", "codes", "prediction", "save", "surprise", "sweep", "topology", "trajectory"]
