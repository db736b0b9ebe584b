"""
What do the atoms look like?
============================

Layer 1 represents each frame as a sum of few atoms, which it learns from the film. For films the atoms are edges and
blobs at many positions, similar to receptive fields in the first stage of the visual cortex.
"""

from psmt import PSMT, datasets, plot

data = datasets.load_glide(1_500, patch_size=12)
model = PSMT(n_atoms=100, window=600, n_components=32, lam=0.1, random_state=0).fit(data.X)

# %%
# The atoms with the largest activity in the window come first. Each has its own grey scale, with zero in the middle.

plot.atoms(model, n=64, shape=data.picture_shape)
