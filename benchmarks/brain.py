"""Claims of `psmt brain` on simulated scans, and on scans of a folder: ``python -m benchmarks.brain PART [SEEDS..]``.

Parts: ``worlds`` (agreement of states with the truth), ``none`` (are states found where there are none?), ``groups``
(a planted difference and false alarms), ``halves FOLDER`` (states of real scans between halves of the people).
The defaults of the method were chosen on the seeds 3, 4, 100 to 102 and 110. Use other seeds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from psmt.brain import fit_group, state_dynamics
from psmt.brain.layers import clean, join
from psmt.data import BoldSimulation, open_series
from psmt.evaluation.null_models import NullTest
from psmt.experiments.brain import reproducibility as again
from psmt.experiments.brain.groups import compare_groups, person_measures
from psmt.utils.threads import one_thread

DRAWS = 19


def rival_settings(people, n_states, window, seed=0):
    """Return the keyword arguments of `rival_states`."""
    joined = join(people)
    number = int(again.window_number(**joined, window=window, seed=seed)["number"])
    return {"n_states": n_states, "n_window_states": number, "n_components": 6, "window": window, "seed": seed}


def worlds(seeds):
    """Print the adjusted Rand index of each method in the two worlds with states; numbers of states are not given."""
    for world, dwell in (("amplitude", 24.0), ("covariance", 120.0)):
        for seed in seeds:
            scans = BoldSimulation(world=world, dwell=dwell, seed=seed)
            people = [clean(scans.subject(k).values, scans.tr, 0.0025) for k in range(8)]
            model = fit_group(people, tr=scans.tr, preprocess=False)
            blurred, chain = (np.concatenate([scans.states(k, hidden=own) for k in range(8)]) for own in (False, True))
            shown = np.concatenate([course.states for course in model.courses_])
            hidden = np.concatenate([course.probabilities.argmax(axis=1) for course in model.courses_])
            found = {"psmt": {"states": shown, "hidden": hidden}}
            how = rival_settings(people, model.n_states, 30)
            for name in ("pca", "swc", "hmm"):
                found[name] = again.rival_states(**join(people), method=name, **how)
            scores = [
                f"{name} {adjusted_rand_score(blurred, own['states']):.3f} "
                f"({adjusted_rand_score(chain, own['hidden']):.3f})"
                for name, own in found.items()
            ]
            numbers = f"{model.n_states} states, sliding windows {how['n_window_states']}"
            print(world, seed, numbers, *scores, sep=" | ", flush=True)


def switching(people, tr, seed, n_splits):
    """Return the number of states, and the test for states of `psmt brain` by random phases."""
    model = fit_group(people, tr=tr, preprocess=False)
    layers = {"n_atoms": 32, "alpha": 0.05, "n_components": 6}
    states = {"n_states": model.n_states, "n_window_states": 2, "n_components": 6, "window": 30, "seed": seed}
    splits = again.halvings(len(people), 6, seed)[:n_splits]

    def gain(draw):
        own = {"draw": draw, "methods": [], "layers": layers, "states": states}
        return float(
            np.mean([again.compare_halves(**join(people), first=list(f), **own)["likelihood_gain"] for f in splits])
        )

    return model.n_states, NullTest(gain(None), np.array([gain(draw) for draw in range(DRAWS)]))


def none(seeds, world="none"):
    """Print the p-value of the test for states in simulated scans without states."""
    for seed in seeds:
        dwell = 120.0 if world == "covariance" else 24.0
        scans = BoldSimulation(n_subjects=6, n_frames=200, n_regions=20, world=world, dwell=dwell, seed=seed)
        people = [clean(scans.subject(k).values, scans.tr, 0.0025) for k in range(6)]
        number, test = switching(people, scans.tr, 0, 2)
        verdict = "states found" if test.p_value <= 0.05 else "no states found"
        gains = f"gain {test.value:.3f}, random phases {test.null_mean:.3f}, p = {test.p_value:.2f}"
        print(world, seed, number, gains, verdict, round(time.process_time()), sep=" | ", flush=True)


def groups(seeds):
    """Print the smallest corrected p-value with a planted difference (effect 4), and in two halves without one."""
    n = 40
    halves = {"every second": np.arange(n) % 2, "first half": np.arange(n) < n // 2}
    for effect, labels in ((4.0, ["every second"]), (1.0, list(halves))):
        for seed in seeds:
            given = {"n_subjects": n, "n_frames": 300, "n_regions": 20, "n_networks": 4, "n_states": 3}
            scans = BoldSimulation(**given, effect=effect, seed=seed)
            model = fit_group([scans.subject(k).values for k in range(n)], tr=scans.tr, n_states=3)
            dynamics = [state_dynamics([course.states], 3) for course in model.courses_]
            measured = person_measures(dynamics, np.zeros(0), scans.tr)
            for label in labels:
                own = {"effect": halves[label][:, None].astype(float), "covariates": np.zeros((n, 0)), "seed": 0}
                tests = compare_groups(values=measured.values, **own)
                best = int(np.nanargmin(tests["p_corrected"]))
                smallest = f"{tests['p_corrected'][best]:.4f}"
                print(f"effect {effect:g}", seed, label, smallest, measured.labels[best], sep=" | ", flush=True)


def halves(folder):
    """Print states found again between halves of the people of a folder, and the test for states."""
    files = sorted(Path(folder).glob("*.npz"))
    tr = float(np.load(files[0])["tr"])
    people = [clean(open_series(path).values, tr, 0.0025) for path in files]
    model = fit_group(people, tr=tr, preprocess=False)
    print(model.n_states, "states", round(time.process_time()), "s", flush=True)
    methods = ["psmt", "pca", "swc"]
    given = {"layers": {"n_atoms": 32, "alpha": 0.05, "n_components": 6}, "methods": methods, "draw": None}
    given["states"] = rival_settings(people, model.n_states, round(60 / tr))
    splits = again.halvings(len(people), 6, 0)
    found = [again.compare_halves(**join(people), first=list(first), **given) for first in splits]
    for k, name in enumerate(methods):
        values = np.mean([one["states"][k] for one in found], axis=0).round(3)
        print("between", name, dict(zip(again.MEASURES, values.tolist(), strict=True)), flush=True)
    time_halves = [{"series": own, "lengths": [len(own) // 2, -(-len(own) // 2)], "first": [0]} for own in people]
    found = [again.compare_halves(**own, **given) for own in time_halves]
    for k, name in enumerate(methods):
        values = np.mean([one["states"][k] for one in found], axis=0).round(3)
        print("within", name, dict(zip(again.MEASURES, values.tolist(), strict=True)), flush=True)
    print(switching(people, tr, 0, 1), round(time.process_time()), "s", flush=True)


if __name__ == "__main__":
    part, *arguments = sys.argv[1:]
    with one_thread():
        if part == "halves":
            halves(arguments[0])
        elif part in ("amplitude", "covariance"):
            none([int(own) for own in arguments], part)
        else:
            {"worlds": worlds, "none": none, "groups": groups}[part]([int(own) for own in arguments])
