"""
Which way does a film take through the embedding?
=================================================

The embedding P maps codes to points so that the way from frame to frame is as straight as can be. Here a disc crosses the
picture again and again, and the way closes: the embedding has found that what happens is a loop, from pixels alone.
"""

from psmt import PSMT, datasets, plot

data = datasets.load_shapes(500, n_shapes=1, speed=0.16, size=16, seed=3)
model = PSMT(n_atoms=64, window=300, n_components=8, alpha=0.5, lam=0.1, random_state=0).fit(data.X)

# %%
# Components are in the order of their straightness: the first ones are the slowest.

plot.trajectory(model, components=(0, 1))
