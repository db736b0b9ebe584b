"""
Straight line, learned gain, or holding?
========================================

Step 6 of the algorithm predicts the next point. The paper uses a straight line. ``'gain'`` learns how far to go, and
``'hold'`` repeats the last point, which copies the code. In a noisy film a large part of the last step is noise, and
the straight line doubles it.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT, datasets
from psmt.evaluation import teacher_forced
from psmt.model.baselines import CopyLast, MeanFrame

noises = (0.0, 0.1, 0.3)
names = ("linear", "gain", "hold", "phase")
size = {"n_atoms": 48, "window": 240, "n_components": 24, "lam": 0.1, "random_state": 0}

# %%
# The model learns from the noisy film and is scored on the noisy film, as in practice.

table = {}
for noise in noises:
    X = datasets.load_glide(531, speed=0.5, noise=noise, patch_size=10).X
    methods = {name: PSMT(extrapolation=name, **size) for name in names}
    methods |= {"copying": CopyLast(), "mean": MeanFrame(window=240)}
    for name, method in methods.items():
        table[name, noise] = teacher_forced(method.fit(X[:500]), X[500:], X[500:]).vs_frame.mean()

# %%
figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
shown = (*names, "copying", "mean")
for i, name in enumerate(shown):
    at = np.arange(len(noises)) + 0.13 * (i - 2.5)
    colour = {"copying": "black", "mean": "0.7"}.get(name)
    ax.bar(at, [table[name, noise] for noise in noises], width=0.12, label=name, color=colour)
ax.set_xticks(range(len(noises)), [f"noise {noise:g}" for noise in noises])
ax.set(ylabel="MSE one step ahead", title="Error of each extrapolation, by the noise of the film")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
