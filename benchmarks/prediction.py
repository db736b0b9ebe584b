"""Does the paper's claim hold on a real film, does anything blow up, and does `gain` earn its keep against copying?

    python -m benchmarks.prediction [FILM] [--every 500] [--past all|window]

At starts every 500 frames, 30 frames are predicted one by one. Dictionary, n_components, lam and gains come from the
frames before the start alone: all of them, or the last window of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from psmt import PSMT, SparseCoder, read_patches
from psmt.baselines import Baseline1, Baseline2, CopyCode, CopyFrame
from psmt.embedding import straightest
from psmt.evaluation import log_mse, mse, teacher_forced
from psmt.extrapolation import make_extrapolation
from psmt.moments import WindowMoments
from psmt.recovery import ACTIVITY_FACTOR, Recovery, recover_next

ATOMS, WINDOW, HORIZON = 512, 1536, 30
COMPONENTS, LAMBDAS = (16, 32, 64, 128, 256), (0.03, 0.1, 0.3, 1.0)
FILM = Path(__file__).parents[2] / "shared" / "data" / "highway.mp4"


def predict_at(patches: np.ndarray, start: int, past: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Errors (horizon, 2) against code and frame by method, and the largest error (components, lambdas, rules)."""
    before = patches[:start] if past == "all" else patches[start - WINDOW : start]
    delayed = patches[start : start + HORIZON + 1]
    coder = SparseCoder(n_atoms=ATOMS, random_state=0).fit(before)
    codes = coder.transform(np.vstack([before[-WINDOW:], delayed]))
    estimates = coder.inverse_transform(codes[WINDOW:])

    psmt = PSMT(window=WINDOW, random_state=0).fit(before)
    chosen = {"window": WINDOW, "n_components": psmt.n_components_, "lam": psmt.lam_, "coder": coder}
    methods = {
        "psmt": psmt,
        "psmt_gain": PSMT(window=WINDOW, extrapolation="gain", random_state=0),
        "baseline1": Baseline1(**chosen),
        "baseline2": Baseline2(**chosen),
        "copy_code": CopyCode(**chosen),
        "copy": CopyFrame(),
    }
    errors = {}
    for name, method in methods.items():
        score = teacher_forced(method if method is psmt else method.fit(before), delayed, estimates)
        errors[name] = np.column_stack([score.vs_code, score.vs_frame])

    worst = np.zeros((len(COMPONENTS), len(LAMBDAS), 3))
    rules = [make_extrapolation(name) for name in ("linear", "hold", "gain")]
    moments = WindowMoments.of(codes[:WINDOW])
    for step in range(HORIZON):
        moments.update(codes[WINDOW + step])
        moments.revert()
        embedding = straightest(moments.covariance(), moments.second_differences(), max(COMPONENTS)).matrix
        previous, current = moments.latest(2)
        activity = ACTIVITY_FACTOR * moments.peak_activity
        for i, n_components in enumerate(COMPONENTS):
            for j, lam in enumerate(LAMBDAS):
                recover = Recovery(embedding[:n_components], lam, activity=activity)
                for k, rule in enumerate(rules):
                    code = recover_next(recover, rule, previous, current)
                    error = mse(code @ coder.dictionary_, delayed[step + 1])
                    worst[i, j, k] = max(worst[i, j, k], error)
        latest = np.vstack([previous, current, codes[WINDOW + step + 1]])
        rules[2].observe(latest @ embedding.T, latest @ coder.dictionary_)
    return errors, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("film", nargs="?", default=str(FILM) if FILM.exists() else "builtin:glide")
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--past", choices=["all", "window"], default="all")
    options = parser.parse_args()

    patches = read_patches(options.film).values
    starts = range(2000, len(patches) - HORIZON, options.every)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(predict_at, [patches] * len(starts), starts, [options.past] * len(starts)))

    print(f"{options.film}: {len(starts)} starts every {options.every}, dictionary from {options.past} before each")
    print(f"{'method':<12}{'log MSE':>9}{'vs_code':>10}{'vs_frame':>10}{'worst':>8}")
    for name in found[0][0]:
        errors = np.array([result[name] for result, _ in found])
        print(
            f"{name:<12}{log_mse(errors[..., 0]).mean():>9.2f}{errors[..., 0].mean():>10.5f}"
            f"{errors[..., 1].mean():>10.5f}{errors[..., 1].max():>8.2f}"
        )
    gain = np.array([result["psmt_gain"][:, 0].mean() / result["copy_code"][:, 0].mean() for result, _ in found])
    print(f"gain / copy_code by start: {np.round(gain, 3)}")
    worst = np.max([table for _, table in found], axis=0)
    print("worst MSE against the frame, any step of any start: n_components x lam", LAMBDAS)
    for rule, table in zip(("linear", "hold", "gain"), np.moveaxis(worst, 2, 0), strict=True):
        for n_components, row in zip(COMPONENTS, table, strict=True):
            print(f"  {rule:<8}{n_components:>4}", *(f"{value:7.2f}" for value in row))
    sys.exit(bool(worst.max() > 10))


if __name__ == "__main__":
    main()
