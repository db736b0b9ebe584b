"""
When does the straight line win?
================================

The paper continues the film by a straight line in the embedding. Its error depends on the speed of the film: in a slow
film there is hardly anything to predict, and in a fast one nothing of the last frames is left. We measure the error
and compare it with copying the last frame and with the mean of the past.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT, datasets
from psmt.evaluation import teacher_forced
from psmt.model.baselines import CopyLast, MeanFrame

speeds = (0.1, 0.3, 0.6, 1.2, 2.4)
methods = {
    "PSMT, straight line": lambda: PSMT(n_atoms=48, window=240, n_components=24, lam=0.1, random_state=0),
    "copying": CopyLast,
    "mean": lambda: MeanFrame(window=240),
}

# %%
# Each method is fitted to the first 500 frames and then predicts 40 more, one step ahead. Nothing is tuned on them.

errors = {name: [] for name in methods}
for speed in speeds:
    X = datasets.load_glide(541, speed=speed, patch_size=10).X
    for name, make in methods.items():
        score = teacher_forced(make().fit(X[:500]), X[500:], X[500:])
        errors[name].append(score.vs_frame.mean())

# %%
# PSMT loses where its curve is above that of copying. The study ``python -m studies.regimes`` measures this for many
# speeds and noises.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in errors.items():
    ax.plot(speeds, values, "o-", label=name, color="0.5" if name == "mean" else None)
ax.set(xscale="log", yscale="log", xlabel="speed (pixels per frame)", ylabel="MSE one step ahead")
ax.set_xticks(speeds, [f"{speed:g}" for speed in speeds])
ax.yaxis.set_major_formatter("{x:g}")
ax.minorticks_off()
ax.set_title("Error by speed, 40 frames each")
ax.legend(frameon=False)
ratios = np.divide(errors["PSMT, straight line"], errors["copying"])
print("straight line / copying:", dict(zip(speeds, ratios.round(2).tolist(), strict=True)))
