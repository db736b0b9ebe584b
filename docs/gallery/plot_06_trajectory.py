"""
What is the trajectory of a film in the embedding?
==================================================

The embedding P maps codes to points so that the trajectory is as straight as possible. Here a square rotates in place
at a known rate. After a quarter turn it looks the same, so the trajectory must be closed. It is, although the
model has seen only pixels.
"""

import numpy as np

from psmt import PSMT, plot
from psmt.data.patches import standardise


def square(angle):
    """Return a picture (256,) of a square that is rotated by this angle, with soft edges."""
    down, right = np.mgrid[:16, :16] - 7.5
    along, across = np.cos(angle) * down + np.sin(angle) * right, np.cos(angle) * right - np.sin(angle) * down
    return np.clip(0.5 - (np.maximum(abs(along), abs(across)) - 4) / 1.5, 0, 1).ravel()


turn = 0.0352
print(f"the square turns by {turn} radians per frame: a quarter turn takes {np.pi / 2 / turn:.1f} frames")
X = standardise([square(turn * t) for t in range(500)]).values
model = PSMT(n_atoms=64, window=300, n_components=8, alpha=0.5, lam=0.1, random_state=0).fit(X)

# %%
# The period of the trajectory is the number of frames after which points are nearest to their old positions. A quarter
# turn is not a whole number of frames; two quarter turns nearly are.

points = model.codes_ @ model.embedding_.T
apart = [np.linalg.norm(points[lag:] - points[:-lag], axis=1).mean() for lag in range(10, 120)]
print(f"the trajectory is closed after {10 + int(np.argmin(apart))} frames")

# %%
# Components are ordered by straightness: the first ones are the slowest.

plot.trajectory(model, components=(0, 1))
