"""
What comes next in a film?
==========================

Fit a model to the past of a film, predict the next frames, and compare them with the true ones. The film comes with
psmt: a camera glides over leaves. The frames here are its patches of 12 x 12 pixels.
"""

import numpy as np

from psmt import PSMT, datasets, plot

data = datasets.load_glide(900, speed=0.8, patch_size=12, seed=5)
past, future = data.X[:800], data.X[800:808]

# %%
# ``fit`` learns a dictionary from the past and codes its last ``window`` frames. It chooses f and lambda by predicting
# the end of the past from the frames before it. ``extrapolation="dynamics"`` extrapolates with a matrix that is learned
# from the window; the default is the straight line of the paper.

model = PSMT(n_atoms=64, window=400, extrapolation="dynamics", random_state=0).fit(past)
print(f"chosen: f = {model.n_components_}, lambda = {model.lam_:g}")

# %%
# Every prediction must beat copying the last frame. The mean of the past, which is zero here, has an MSE of about 1.

predicted = model.predict(len(future))
copied = np.tile(past[-1], (len(future), 1))
for step in (0, 3, 7):
    errors = [np.mean((guess[step] - future[step]) ** 2) for guess in (predicted, copied)]
    print(f"{step + 1} steps ahead: MSE {errors[0]:.3f}, copying {errors[1]:.3f}")

# %%
plot.prediction(model, future, shape=data.picture_shape)
