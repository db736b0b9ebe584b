"""Does the paper's claim hold on a real film, does anything blow up, and which method predicts best?

    python -m benchmarks.prediction [FILM] [--every 500] [--methods]

At starts every 500 frames, 30 frames are predicted one by one. Dictionary, n_components, lam and gains come from the
frames before the start alone: all of them, or the last window of them. The tables go to `benchmarks/README.md`.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from benchmarks.page import default_film, machine, table, write_section
from psmt import SparseCoder, open_frames, read_patches
from psmt.data.patches import PatchCutter, read_surroundings
from psmt.embedding import solve_closed_form
from psmt.embedding.moments import WindowMoments
from psmt.evaluation import log_mse, mse, teacher_forced
from psmt.experiments.prediction.phase import BEFORE, SharingPSMT, methods_of
from psmt.extrapolation import make_extrapolation
from psmt.recovery import ACTIVITY_FACTOR, Recovery, recover_next
from psmt.video import PatchInFrame

ATOMS, WINDOW, HORIZON, PATCH = 512, 1536, 30, 16
COMPONENTS, LAMBDAS = (16, 32, 64, 128, 256), (0.03, 0.1, 0.3, 1.0)
RULES = ("linear", "hold", "gain", "phase")
PASTS = {"all": "all frames before", "window": "the last H frames"}


def predict_at(
    patches: np.ndarray, start: int, past: str, surroundings: np.ndarray, corner: list[int], largest: bool
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Errors (horizon, 2) against code and frame by method, and the largest error (components, lambdas, rules).

    The surroundings of the patch are those of the frames before the start and of the delayed frames.
    """
    before = patches[:start] if past == "all" else patches[start - WINDOW : start]
    delayed = patches[start : start + HORIZON + 1]
    learned: dict[int, SparseCoder] = {}
    psmt, gain, phase = (
        SharingPSMT(n_atoms=ATOMS, window=WINDOW, extrapolation=rule, random_state=0).share(learned)
        for rule in ("linear", "gain", "phase")
    )
    coder = psmt.fit(before).coder_
    codes = coder.transform(np.vstack([before[-WINDOW:], delayed]))
    estimates = coder.inverse_transform(codes[WINDOW:])
    methods = methods_of(psmt, gain, (PATCH, PATCH)) | {"psmt_phase": phase}
    errors = {}
    for name, method in methods.items():
        score = teacher_forced(method if method is psmt else method.fit(before), delayed, estimates)
        errors[name] = np.column_stack([score.vs_code, score.vs_frame])
    known, received = np.split(surroundings, [-len(delayed)])
    whole = PatchInFrame(corner=tuple(corner), patch_size=PATCH).fit(known)
    score = teacher_forced(whole, delayed, estimates, received=received)
    errors["whole_frame"] = np.column_stack([score.vs_code, score.vs_frame])

    worst = np.zeros((len(COMPONENTS), len(LAMBDAS), len(RULES)))
    rules = [make_extrapolation(name) for name in RULES]
    moments = WindowMoments.of(codes[:WINDOW])
    for step in range(HORIZON if largest else 0):
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
    parser.add_argument("--methods", action="store_true", help="leave out the search for the largest error of PSMT")
    options = parser.parse_args()

    patches = read_patches(options.film, patch_size=PATCH).values
    starts = range(2000, len(patches) - HORIZON, options.every)
    stretches = [slice(start - BEFORE, start + HORIZON + 1) for start in starts]
    around = read_surroundings(open_frames(options.film), PatchCutter(patch_size=PATCH), stretches)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    rows, remarks, largest = [], [], []
    for past, words in PASTS.items():
        # Spawned: a forked process has numba's threads already, and cannot compile with another number of them.
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
            n = len(starts)
            given = [patches] * n, starts, [past] * n, *zip(*around, strict=True), [not options.methods] * n
            found = list(pool.map(predict_at, *given))
        order = sorted(found[0][0], key=lambda name: np.mean([errors[name][:, 1] for errors, _ in found]))
        for name in order:
            code, frame = np.moveaxis([errors[name] for errors, _ in found], 2, 0)
            log = log_mse(code).mean()
            copied = np.mean([errors["copy"][:, 1] for errors, _ in found])
            ratio = f"{frame.mean() / copied:.3f}"
            row = [words, name, f"{log:.2f}", f"{code.mean():.5f}", f"{frame.mean():.5f}", ratio, f"{frame.max():.2f}"]
            rows.append(row)
        for one, other in (("psmt_gain", "copy_code"), ("psmt_gain", "code_gain"), ("psmt", "code_line")):
            ratios = [errors[one][:, 0].mean() / errors[other][:, 0].mean() for errors, _ in found]
            remarks.append(f"`{one}` / `{other}` at a single start, {words}: {min(ratios):.3f} to {max(ratios):.3f}.")
        largest.append(np.max([worst for _, worst in found], axis=(0, 1, 2)))
    measures = ["log MSE vs code", "MSE vs code", "MSE vs frame", "vs frame / copying", "worst vs frame"]
    header = ["learned from", "method", *measures]
    blown = table(
        ["largest MSE vs frame, n_components 16 .. 256, lam 0.03 .. 1", *RULES],
        [[words, *(f"{value:.2f}" for value in values)] for words, values in zip(PASTS.values(), largest, strict=True)],
    )
    film = f"{os.path.basename(options.film)}, {len(starts)} starts, {len(starts) * HORIZON} predictions."
    for name, parts in {"prediction": [table(header, rows), " ".join(remarks)], "prediction largest": [blown]}.items():
        text = "\n\n".join([film, *parts, machine()])
        if name == "prediction" or not options.methods:
            print(text)
            write_section(name, text)
    sys.exit(bool(np.max(largest) > 10))


if __name__ == "__main__":
    main()
