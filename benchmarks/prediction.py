"""Does the paper's claim hold on a real film, does anything blow up, and does `gain` earn its keep against copying?

    python -m benchmarks.prediction [FILM] [--every 500]

At starts every 500 frames, 30 frames are predicted one by one. Dictionary, n_components, lam and gains come from the
frames before the start alone: all of them, or the last window of them. The tables go to `benchmarks/README.md`.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ClassVar, Self

import numpy as np

from benchmarks.page import default_film, machine, table, write_section
from psmt import PSMT, SparseCoder, read_patches
from psmt.embedding import solve_closed_form
from psmt.embedding.moments import WindowMoments
from psmt.evaluation import log_mse, mse, teacher_forced
from psmt.extrapolation import make_extrapolation
from psmt.model.baselines import Baseline1, Baseline2, CopyCode, CopyLast
from psmt.recovery import ACTIVITY_FACTOR, Recovery, recover_next

ATOMS, WINDOW, HORIZON = 512, 1536, 30
COMPONENTS, LAMBDAS = (16, 32, 64, 128, 256), (0.03, 0.1, 0.3, 1.0)
RULES = ("linear", "hold", "gain", "phase")
PASTS = {"all": "all frames before", "window": "the last H frames"}


class LearnedOnce(SparseCoder):
    """A coder whose dictionaries are shared by the methods of one start, which learn from the same frames."""

    learned: ClassVar[dict[int, SparseCoder]] = {}

    def fit(self, X: np.ndarray, y: object = None) -> Self:
        if len(X) not in self.learned:
            self.learned[len(X)] = super().fit(X)
        vars(self).update(vars(self.learned[len(X)]))
        return self


def predict_at(patches: np.ndarray, start: int, past: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Errors (horizon, 2) against code and frame by method, and the largest error (components, lambdas, rules)."""
    before = patches[:start] if past == "all" else patches[start - WINDOW : start]
    delayed = patches[start : start + HORIZON + 1]
    LearnedOnce.learned.clear()
    coder = LearnedOnce(n_atoms=ATOMS, random_state=0).fit(before)
    codes = coder.transform(np.vstack([before[-WINDOW:], delayed]))
    estimates = coder.inverse_transform(codes[WINDOW:])

    unfitted = LearnedOnce(n_atoms=ATOMS, random_state=0)
    psmt = PSMT(window=WINDOW, coder=unfitted).fit(before)
    chosen = {"window": WINDOW, "n_components": psmt.n_components_, "lam": psmt.lam_, "coder": coder}
    methods = {
        "psmt": psmt,
        "psmt_gain": PSMT(window=WINDOW, extrapolation="gain", coder=unfitted),
        "psmt_phase": PSMT(window=WINDOW, extrapolation="phase", coder=unfitted),
        "baseline1": Baseline1(**chosen),
        "baseline2": Baseline2(**chosen),
        "copy_code": CopyCode(**chosen),
        "copy": CopyLast(),
    }
    errors = {}
    for name, method in methods.items():
        score = teacher_forced(method if method is psmt else method.fit(before), delayed, estimates)
        errors[name] = np.column_stack([score.vs_code, score.vs_frame])

    worst = np.zeros((len(COMPONENTS), len(LAMBDAS), len(RULES)))
    rules = [make_extrapolation(name) for name in RULES]
    moments = WindowMoments.of(codes[:WINDOW])
    for step in range(HORIZON):
        moments.slide(codes[WINDOW + step])
        embedding = solve_closed_form(
            moments.covariance(), moments.second_differences(), max(COMPONENTS), n_codes=WINDOW
        ).matrix
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
        for rule in rules:
            rule.observe(latest @ embedding.T, latest @ coder.dictionary_)
    return errors, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("film", nargs="?", default=default_film())
    parser.add_argument("--every", type=int, default=500)
    options = parser.parse_args()

    patches = read_patches(options.film).values
    starts = range(2000, len(patches) - HORIZON, options.every)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    rows, remarks, largest = [], [], []
    for past, words in PASTS.items():
        # Spawned: a forked process has numba's threads already, and cannot compile with another number of them.
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
            found = list(pool.map(predict_at, [patches] * len(starts), starts, [past] * len(starts)))
        for name in found[0][0]:
            code, frame = np.moveaxis([errors[name] for errors, _ in found], 2, 0)
            log = log_mse(code).mean()
            rows.append([words, name, f"{log:.2f}", f"{code.mean():.5f}", f"{frame.mean():.5f}", f"{frame.max():.2f}"])
        gain = [errors["psmt_gain"][:, 0].mean() / errors["copy_code"][:, 0].mean() for errors, _ in found]
        remarks.append(f"`psmt_gain` / `copy_code` at a single start, {words}: {min(gain):.3f} to {max(gain):.3f}.")
        largest.append(np.max([worst for _, worst in found], axis=(0, 1, 2)))
    header = ["dictionary learned from", "method", "log MSE vs code", "MSE vs code", "MSE vs frame", "worst vs frame"]
    blown = table(
        ["largest MSE vs frame, n_components 16 .. 256, lam 0.03 .. 1", *RULES],
        [[words, *(f"{value:.2f}" for value in values)] for words, values in zip(PASTS.values(), largest, strict=True)],
    )
    film = f"{os.path.basename(options.film)}, {len(starts)} starts, {len(starts) * HORIZON} predictions."
    text = "\n\n".join([film, table(header, rows), " ".join(remarks), blown, machine()])
    print(text)
    write_section("prediction", text)
    sys.exit(bool(np.max(largest) > 10))


if __name__ == "__main__":
    main()
