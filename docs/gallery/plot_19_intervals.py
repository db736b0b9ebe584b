"""
How certain is a forecast?
==========================

``predict(steps, interval=0.9)`` returns the forecast and two bounds, between which 90% of the true values should lie.
The bounds come from the errors of earlier predictions and adapt while the series changes.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT

rng, t = np.random.default_rng(0), np.arange(760)
rhythms = np.column_stack([np.sin(t / 9), np.cos(t / 9), np.sin(t / 23), np.cos(t / 23)])
X = 3 * rhythms @ rng.standard_normal((4, 12)) + rng.standard_normal((760, 12))
X[680:] += rng.standard_normal((80, 12))  # from row 680 on, the noise has twice the variance
past, future = X[:600], X[600:]

# %%
# Each row is predicted before it is received. The bounds of a row never use that row, so the share of values between
# them is a fair test. When the noise grows, the bounds are too narrow at first, and then widen.

model = PSMT.for_series(random_state=0).fit(past)
lower, upper = [], []
for x in future:
    forecast = model.predict(1, interval=0.9)
    lower.append(forecast.lower[0])
    upper.append(forecast.upper[0])
    model.update(x)
lower, upper = np.array(lower), np.array(upper)
inside = (lower <= future) & (future <= upper)
for name, rows in {"before": slice(0, 80), "after": slice(80, 160)}.items():
    width = (upper - lower)[rows].mean()
    print(f"{name} the noise grows: {inside[rows].mean():.0%} between the bounds, mean width {width:.1f}")

# %%
figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
row = np.arange(600, 760)
ax.fill_between(row, lower[:, 2], upper[:, 2], color="#56b4e9", alpha=0.5, linewidth=0, label="90% interval")
ax.plot(row, future[:, 2], color="black", linewidth=1, label="series")
ax.axvline(680, color="0.5", linestyle="--", linewidth=1)
ax.set(xlabel="row", ylabel="value of feature 2", title="Intervals one row ahead; more noise from row 680")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
