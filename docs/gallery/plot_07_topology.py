"""
Which atoms move together?
==========================

Atoms whose columns of P point in the same direction follow each other in time: the trajectory continues straight from
one to the other. The paper links two atoms if the cosine of their columns is above 0.7.
"""

from psmt import PSMT, datasets, plot

data = datasets.load_glide(1_600, speed=0.5, patch_size=12)
model = PSMT(n_atoms=96, window=800, n_components=12, lam=0.1, random_state=0).fit(data.X)

# %%
# Connected components of more than two atoms have a colour, and some of their atoms are shown. ``psmt topology``
# follows such a graph over time, and measures how much of it also appears with frames in random order.

plot.topology(model, shape=data.picture_shape)
