"""What comes next in one person: PSMT and what it is compared with, some volumes ahead."""

from __future__ import annotations

import numpy as np

from psmt.experiments.brain.field import DynamicModes
from psmt.experiments.brain.group import LEARNED_FROM
from psmt.experiments.brain.ridge import DirectRidge
from psmt.model import PSMT
from psmt.model.baselines import CopyLast
from psmt.series import Scaling
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

    An error is the mean squared error divided by the variance of the scored part. Both are means over regions, each in
    units of its own deviation in the past, so that no large or drifting region decides alone. Everything is learned
    from the past: its last 12,000 volumes, where it is longer.
    """
    n_scored = int(SCORED * len(series))
    series = series[max(len(series) - n_scored - LEARNED_FROM, 0) :]
    start = len(series) - n_scored
    scaling = Scaling.of(series[:start])
    rows = scaling.standardise(series)
    psmt = PSMT.for_series(random_state=seed).fit(series[:start])
    linear: dict[str, Predictor] = {"ridge": DirectRidge(horizon=horizon), "dmd": DynamicModes(), "copy": CopyLast()}
    for method in linear.values():
        method.fit(rows[:start])
    squared = np.zeros((len(METHODS), horizon))
    counts = np.zeros(horizon)
    for t in range(start, len(rows)):
        truth = rows[t : t + horizon]
        ahead = len(truth)
        predicted = [scaling.standardise(psmt.predict(ahead))]
        predicted += [method.predict(ahead) for method in linear.values()]
        predicted.append(np.zeros_like(truth))  # the mean of the past
        squared[:, :ahead] += [((own - truth) ** 2).mean(axis=1) for own in predicted]
        counts[:ahead] += 1
        psmt.update(series[t])
        for method in linear.values():
            method.update(rows[t])
    variance = float(rows[start:].var(axis=0).mean())
    return {"errors": squared / np.maximum(counts, 1) / variance}
