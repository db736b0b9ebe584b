"""
What comes next in a film?
==========================

Fit a model to the past of a film, let it predict the frames that follow, and look at them beside what came. The film
is the one that comes with psmt, a camera gliding over leaves; its patches of 12 x 12 pixels are the frames here.
"""

import numpy as np

from psmt import PSMT, datasets, plot

data = datasets.load_glide(900, speed=0.8, patch_size=12, seed=5)
past, future = data.X[:800], data.X[800:808]

# %%
# ``fit`` learns a dictionary from the past, codes its last ``window`` frames, and chooses the rest by predicting the
# end of the past from what lies before it. ``extrapolation="dynamics"`` goes on by a matrix that is learned from the
# window; the default is the straight line of the paper.

model = PSMT(n_atoms=64, window=400, extrapolation="dynamics", random_state=0).fit(past)
print(f"chosen: f = {model.n_components_}, lambda = {model.lam_:g}")

# %%
# Copying the last frame is what every prediction must beat; the mean of the past, zero here, has an MSE of about 1.

predicted = model.predict(len(future))
copied = np.tile(past[-1], (len(future), 1))
for step in (0, 3, 7):
    errors = [np.mean((guess[step] - future[step]) ** 2) for guess in (predicted, copied)]
    print(f"{step + 1} steps ahead: MSE {errors[0]:.3f}, copying {errors[1]:.3f}")

# %%
plot.prediction(model, future, shape=data.picture_shape)
