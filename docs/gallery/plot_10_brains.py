"""
Does it predict brains better than ridge regression?
====================================================

The data are simulated scans of resting brains: a hidden Markov chain switches networks on and off, the slow blood
response blurs the activity, and noise and drifts are added. Each volume is predicted from those before it.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT, datasets
from psmt.evaluation import teacher_forced
from psmt.model.baselines import CopyLast, MeanFrame, RidgeAutoregression

methods = {
    "PSMT, dynamics": lambda: PSMT.for_series(random_state=0),
    "ridge": RidgeAutoregression,
    "copying": CopyLast,
    "mean": lambda: MeanFrame(window=300),
}

# %%
# For each of six people, 300 volumes are the past and 60 are predicted one step ahead. Regions have different units, so
# each region is divided by its standard deviation in the past. All methods get the same standardised numbers.

errors = {name: [] for name in methods}
for person in range(6):
    X = datasets.load_bold(360, subject=person, n_regions=40, noise=0.5).X
    X = (X - X[:300].mean(axis=0)) / X[:300].std(axis=0)
    for name, make in methods.items():
        errors[name].append(teacher_forced(make().fit(X[:300]), X[300:], X[300:]).vs_frame.mean())

# %%
# Each line is a person; lower is better. Volumes change so slowly that copying is nearly as good as any method that
# learns from 300 of them. ``psmt brain`` makes this comparison with intervals, for many people.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
values = np.array(list(errors.values()))
ax.plot(values, color="0.8", linewidth=1)
ax.plot(values, "o", color="0.5", markersize=4)
ax.plot(values.mean(axis=1), "D", color="#0072b2", markersize=8, label="mean of six")
ax.set_xticks(range(len(errors)), list(errors))
ax.set(ylabel="MSE ÷ variance of the past", title="One volume ahead, simulated brains", yscale="log")
ax.set_yticks([0.2, 0.3, 0.5, 1.0, 2.0], ["0.2", "0.3", "0.5", "1", "2"])
ax.minorticks_off()
ax.legend(frameon=False)
wins = (values[0] < values[1]).sum()
print(f"PSMT is better than ridge in {wins} of 6 people; means {values.mean(axis=1).round(3).tolist()}")
