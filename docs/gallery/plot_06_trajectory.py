"""
Which way does a film take through the embedding?
=================================================

The embedding P maps codes to points so that the way from frame to frame is as straight as can be. Here a square turns
in its place at a known rate. After a quarter of a turn it looks as before, so that the way must close: it does, and
the model knew of nothing but pixels.
"""

import numpy as np

from psmt import PSMT, datasets, plot

data = datasets.load_shapes(500, n_shapes=2, speed=0.0, size=16, seed=1)
turn = np.diff(data.truth.angle[:2, 1]).item()
print(f"the square turns by {turn:.4f} radians per frame: a quarter takes {np.pi / 2 / abs(turn):.1f} frames")
model = PSMT(n_atoms=64, window=300, n_components=8, alpha=0.5, lam=0.1, random_state=0).fit(data.X)

# %%
# How long the way takes to come back is the frame after which points are nearest to where they were. A quarter is no
# whole number of frames; two of them nearly are.

points = model.codes_ @ model.embedding_.T
apart = [np.linalg.norm(points[lag:] - points[:-lag], axis=1).mean() for lag in range(10, 120)]
print(f"the way through the embedding is closed after {10 + int(np.argmin(apart))} frames")

# %%
# Components are in the order of their straightness: the first ones are the slowest.

plot.trajectory(model, components=(0, 1))
