"""
When does something unexpected happen?
======================================

We cut from one film to another and back, and insert one frame of noise. The surprise of each frame shows when this
happens. It is relative to the usual surprise, so you need not choose a threshold for each film.
"""

import numpy as np

from psmt import PSMT, datasets, plot

first = datasets.load_glide(760, speed=0.4, patch_size=12).X
second = datasets.load_glide(760, speed=0.4, patch_size=12, seed=7).X

# %%
# After 600 frames of the past there is a cut at frame 40, a cut back at 80, and one frame of noise at 120, whose
# beginning and end are two changes.

future = np.concatenate([first[600:640], second[640:680], first[680:760]])
future[120] = np.random.default_rng(0).standard_normal(future.shape[1])
model = PSMT(n_atoms=48, window=300, n_components=16, lam=0.1, random_state=0).fit(first[:600])

# %%
# A copy of the model receives the frames one after the other; ``surprise_`` and ``cut_`` are plotted for each.

plot.surprise(model, future)
