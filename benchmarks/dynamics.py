"""Where a learned matrix helps: extrapolations of step 6 against copying, the mean and ridge autoregression.

    python -m benchmarks.dynamics ../shared/data/*.mp4 ../shared/data/brain/*.npz

Films: patches of 16 x 16 at three places and two starts each, 40 frames one by one. Series: raw, all defaults, the last
quarter. One, three and five steps ahead; error / variance of the scored part; all is learned from what lies before.
Ridge autoregression has its order and price chosen on the past, and is asked for each horizon by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from psmt import PSMT, read_patches
from psmt.data import open_series
from psmt.experiments.brain.prediction import direct_ridge, linear_errors
from psmt.model.baselines import CopyLast, LinearTrend, MeanFrame

HORIZONS = (1, 3, 5)
STRATEGIES = ("linear", "gain", "phase", "dynamics")


def errors_ahead(method, values, start):
    """Error / variance at each of `HORIZONS`, of a method that is fitted to all before `start` and then goes along."""
    method.fit(values[:start])
    foretold = {h: [] for h in HORIZONS}
    for t in range(start - 1, len(values) - 1):
        if t >= start:
            method.update(values[t])
        rows = method.predict(max(HORIZONS))
        for h in HORIZONS:
            if t + h < len(values):
                foretold[h].append(rows[h - 1])
    return [scored(np.array(foretold[h]), values, start, h) for h in HORIZONS]


def scored(foretold, values, start, horizon):
    """Error / variance, each feature in units of its deviation in the past, so that no large one decides alone."""
    scale = values[:start].std(axis=0)
    scale[scale == 0] = 1.0
    truth = values[len(values) - len(foretold) :] / scale
    return float(np.mean((foretold / scale - truth) ** 2) / truth.var(axis=0).mean())


def ridge_ahead(values, start):
    """Error / variance of the ridge autoregression that `psmt brain` compares with; it takes deviations."""
    scale = values[:start].std(axis=0)
    scale[scale == 0] = 1.0
    rows = (values - values[:start].mean(axis=0)) / scale
    weights, _ = direct_ridge(rows[:start], max(HORIZONS))
    errors = linear_errors(rows, start, weights)
    return [float(errors[h - 1] / rows[start + h - 1 :].var(axis=0).mean()) for h in HORIZONS]


def film_table(path):
    """Errors (n_methods, n_horizons), means over places and starts, of a film's patches."""
    found = {}
    for place in ((40, 40), (92, 92), (140, 120)):
        shown = read_patches(path, position=place, stop=1500 if "highway" in path.name else None).values
        long = len(shown) > 700
        for start in (600, len(shown) - 41) if long else (80,):
            values = shown[max(start - 600, 0) : start + 41]
            past = len(values) - 41 if long else 80
            how = {"n_atoms": 96 if long else 24, "window": 400 if long else 72, "random_state": 0}
            methods = {name: PSMT(**how, extrapolation=name) for name in STRATEGIES}
            methods |= {"copy": CopyLast(), "trend": LinearTrend(), "mean": MeanFrame(window=how["window"])}
            for name, method in methods.items():
                found.setdefault(name, []).append(errors_ahead(method, values, past))
            found.setdefault("ridge", []).append(ridge_ahead(values, past))
    return {name: np.mean(errors, axis=0) for name, errors in found.items()}


def series_table(path):
    """Errors (n_methods, n_horizons) of the last quarter of a series."""
    values = open_series(path).values
    start = len(values) * 3 // 4
    methods = {name: PSMT.for_series(extrapolation=name, random_state=0) for name in ("linear", "gain", "dynamics")}
    methods |= {"copy": CopyLast(), "mean": MeanFrame(window=start)}
    table = {name: np.array(errors_ahead(method, values, start)) for name, method in methods.items()}
    return table | {"ridge": np.array(ridge_ahead(values, start))}


def main(paths):
    """Print a line per method for each film, and means over all series."""
    series = []
    for path in map(Path, paths):
        if path.suffix == ".mp4":
            show(path.name, film_table(path))
        else:
            series.append(series_table(path))
            show(path.name, series[-1])
    if series:
        show(
            f"mean of {len(series)} series",
            {name: np.mean([one[name] for one in series], axis=0) for name in series[0]},
        )


def show(title, table):
    """One line per method, best at one step first."""
    print(f"\n| {title} | {' | '.join(f'{h} ahead' for h in HORIZONS)} |\n| --- |{' --- |' * len(HORIZONS)}")
    for name, errors in sorted(table.items(), key=lambda item: item[1][0]):
        print(f"| {name} | {' | '.join(f'{error:.3f}' for error in errors)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
