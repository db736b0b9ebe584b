"""
How sparse are the codes?
=========================

A code gives the activity of each atom in a frame. Most atoms are inactive, and an atom that becomes active stays
active for some frames. This makes codes predictable.
"""

import numpy as np

from psmt import PSMT, datasets, plot

data = datasets.load_glide(900, speed=0.4, patch_size=12)
model = PSMT(n_atoms=64, window=400, n_components=16, lam=0.1, random_state=0).fit(data.X)

# %%
# The code represents only a part of the frame. With a larger ``alpha`` fewer atoms are active, and more of the frame is
# lost.

rest = np.mean((model.codes_ @ model.dictionary_ - data.X[-400:]) ** 2)
print(f"{(model.codes_ > 0).sum(axis=1).mean():.1f} of 64 atoms are active in a frame; {rest:.0%} of the frame is lost")

# %%
plot.codes(model)
