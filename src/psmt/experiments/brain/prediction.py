"""What comes next in one person: PSMT and what it is compared with, some volumes ahead."""

from __future__ import annotations

import numpy as np

from psmt.baselines import CopyLast, RidgeAutoregression
from psmt.experiments.brain.field import DynamicModes
from psmt.model import PSMT
from psmt.types import Array, Predictor, Result

METHODS = {
    "psmt": "PSMT",
    "ridge": "ridge autoregression",
    "dmd": "dynamic modes",
    "copy": "last volume copied",
    "mean": "mean of the past",
}
"""In the order of `predict_person`."""

SCORED = 0.25
"""Of each series, its end, that is predicted."""


def predict_person(*, series: Array, horizon: int, seed: int) -> Result:
    """``errors`` (n_methods, horizon) on the last quarter of a series (time, n_regions) as it came. One task.

    An error is the mean squared error divided by the variance of the scored part, both over all regions. Everything is
    learned from the past alone; linear methods see regions as the past's own mean and scale make them.
    """
    start = len(series) - int(SCORED * len(series))
    past, future = series[:start], series[start:]
    mean, scale = past.mean(axis=0), past.std(axis=0)
    scale = np.where(scale > 1e-12 * np.abs(past).max(), scale, 1.0)
    white = (series - mean) / scale
    psmt = PSMT.for_series(random_state=seed).fit(past)
    linear: dict[str, Predictor] = {"ridge": RidgeAutoregression(), "dmd": DynamicModes(), "copy": CopyLast()}
    for method in linear.values():
        method.fit(white[:start])
    squared = np.zeros((len(METHODS), horizon))
    counts = np.zeros(horizon)
    for t, frame in enumerate(future):
        ahead = min(horizon, len(future) - t)
        predicted = [psmt.predict(ahead)]
        predicted += [mean + scale * method.predict(ahead) for method in linear.values()]
        predicted.append(np.broadcast_to(mean, (ahead, len(mean))))
        truth = future[t : t + ahead]
        squared[:, :ahead] += [((own - truth) ** 2).mean(axis=1) for own in predicted]
        counts[:ahead] += 1
        psmt.update(frame)
        for method in linear.values():
            method.update(white[start + t])
    variance = float(future.var(axis=0).mean())
    return {"errors": squared / np.maximum(counts, 1) / variance}
