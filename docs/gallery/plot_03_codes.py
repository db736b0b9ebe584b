"""
How sparse are the codes?
=========================

A code says how active each atom is in a frame. Most are silent, and an atom that begins to be active stays so for a
while: this is what makes codes something to predict.
"""

import numpy as np

from psmt import PSMT, datasets, plot

data = datasets.load_glide(900, speed=0.4, patch_size=12)
model = PSMT(n_atoms=64, window=400, n_components=16, lam=0.1, random_state=0).fit(data.X)

# %%
# How much of a frame the code does not hold is the other side: a larger ``alpha`` leaves fewer atoms active, and more
# out.

rest = np.mean((model.codes_ @ model.dictionary_ - data.X[-400:]) ** 2)
print(f"{(model.codes_ > 0).sum(axis=1).mean():.1f} of 64 atoms are active in a frame; {rest:.0%} of it is left out")

# %%
plot.codes(model)
