"""
Which atoms move together?
==========================

Atoms whose columns of P point the same way follow each other in time: moving from one to the other is going straight
on. The paper links those with a cosine above 0.7.
"""

from psmt import PSMT, datasets, plot

data = datasets.load_glide(1_600, speed=0.5, patch_size=12)
model = PSMT(n_atoms=96, window=800, n_components=12, lam=0.1, random_state=0).fit(data.X)

# %%
# Parts of more than two atoms have a colour, and some of their atoms are shown. ``psmt topology`` follows such a
# graph  over time, and says how much of it is there in frames of random order too.

plot.topology(model, shape=data.picture_shape)
