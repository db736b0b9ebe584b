"""
Can it continue a rotation that we know?
========================================

A series need not be a film. Thirty-one sensors record mixtures of three oscillations, so the future is known exactly.
``PSMT.for_series`` is the model for series in any units.
"""

import numpy as np

from psmt import PSMT, plot
from psmt.model.baselines import LinearTrend

rng = np.random.default_rng(0)
t = np.arange(640)[:, None]
periods = np.array([23.0, 41.0, 67.0])
sources = np.hstack([np.cos(2 * np.pi * t / periods), np.sin(2 * np.pi * t / periods)])
X = sources @ rng.standard_normal((6, 31)) + 0.05 * rng.standard_normal((640, 31))

# %%
# We predict forty steps without receiving any of them, and compare with copying, the mean, and a straight line through
# the last two frames.

past, future = X[:600], X[600:]
model = PSMT.for_series(random_state=0).fit(past)
guesses = {
    "PSMT": model.predict(len(future)),
    "copying": np.tile(past[-1], (len(future), 1)),
    "mean": np.tile(past.mean(axis=0), (len(future), 1)),
    "straight line": LinearTrend().fit(past).predict(len(future)),
}
for name, guess in guesses.items():
    print(f"{name}: MSE {np.mean((guess - future) ** 2):.3f}")

# %%
# Solid lines are the true series, dashed lines the prediction.

plot.prediction(model, future, shape=None)
