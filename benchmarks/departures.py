"""How often is each departure from the paper active, and what does it do to the error?

    python -m benchmarks.departures [FILM ..] [--every 400]

At starts every 400 frames, 12 frames are predicted one by one: as we do it, with each departure switched off alone, and
to the letter. n_components and lam are chosen once for a start, from the frames before it, and the same for all of
these: so a departure alone moves what is predicted. The tables go to `docs/explanation/departures.md`.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.page import FILM, machine, table, write_section
from psmt import PSMT, SparseCoder, read_patches
from psmt.evaluation import mean_interval, mse, teacher_forced
from psmt.model.baselines import CopyCode, CopyLast
from psmt.model.paper_options import OURS, Departures
from psmt.types import Array

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "departures.md"
ATOMS, WINDOW, HORIZON, FIRST = 512, 1536, 12, 2000
LETTER = Departures.literal().parameters
SWITCHED: dict[str, dict[str, Any]] = {
    **{f"`{name}={value!r}`": {name: value} for name, value in LETTER.items() if value != getattr(OURS, name)},
    "all of them, `PSMT.literal`": LETTER,
    "no departure: `centred=False`, V about zero": {"centred": False},
}
"""What is compared with ours, by its name in the table: the parameters that differ."""
MOVED = (1e-6, 0.1)
"""Movements of a pixel, in standard deviations of the patch, above which a departure counts as active."""


class Predicted(NamedTuple):
    """What one method predicted after one start."""

    frames: Array
    """(horizon, n_features)"""
    vs_frame: Array
    """MSE (horizon,)."""
    vs_code: Array
    """MSE (horizon,) against the true frame's own code, over the method's own dictionary."""


def predict_at(patches: Array, start: int) -> dict[str, Predicted]:
    """What each method predicts of the frames after a start, by its name in the table."""
    past, delayed = patches[:start], patches[start : start + HORIZON + 1]
    ours = PSMT(n_atoms=ATOMS, window=WINDOW, random_state=0).fit(past)
    coders = {
        "past": ours.coder_,
        "window": SparseCoder(n_atoms=ATOMS, random_state=0).fit(past[-WINDOW:]),
    }
    given: dict[str, Any] = {"window": WINDOW, "n_components": ours.n_components_, "lam": ours.lam_}

    def predict(method: Any, coder: SparseCoder = coders["past"]) -> Predicted:
        estimates = coder.inverse_transform(coder.transform(delayed))
        score = teacher_forced(method, delayed, estimates)
        return Predicted(score.predicted, score.vs_frame, score.vs_code)

    found = {}
    for name, differs in SWITCHED.items():
        coder = coders[differs.get("dictionary_from", OURS.dictionary_from)]
        found[name] = predict(PSMT(**given, **differs, coder=coder).fit(past), coder)
    found["copy the last code"] = predict(CopyCode(**given, coder=ours.coder_).fit(past))
    found["copy the last frame"] = predict(CopyLast().fit(past))
    estimates, mean = ours.coder_.inverse_transform(ours.coder_.transform(delayed[1:])), past.mean(axis=0)
    mean_frames = np.tile(mean, (HORIZON, 1))
    found["the mean of the past"] = Predicted(mean_frames, mse(mean_frames, delayed[1:]), mse(mean_frames, estimates))
    return {"nothing: ours": predict(ours), **found}


def rows(found: list[dict[str, Predicted]]) -> list[list[str]]:
    """Lines of the table, from what was predicted at each start."""
    together = {
        name: Predicted(*(np.concatenate(parts) for parts in zip(*(at[name] for at in found), strict=True)))
        for name in found[0]
    }
    ours, *_ = together.values()
    lines = []
    for name, own in together.items():
        moved = np.abs(own.frames - ours.frames).max(axis=1)
        active = [f"{np.mean(moved > limit):.0%}" if name in SWITCHED else "" for limit in MOVED]
        errors = [
            text
            for error, reference in ((own.vs_frame, ours.vs_frame), (own.vs_code, ours.vs_code))
            for text in (f"{error.mean():.4f}", "" if own is ours else changed(error - reference))
        ]
        lines.append([name, *active, *errors, f"{own.vs_frame.max():.2f}"])
    return lines


def changed(difference: Array) -> str:
    """The mean of what came on top of our error, with its interval; frames after one start are one block."""
    if np.abs(difference).max() < MOVED[0]:
        return "none"
    mean, low, high = mean_interval(difference, block=HORIZON, independent=True)
    verdict = "worse" if low > 0 else "better" if high < 0 else "inconclusive"
    return f"{mean:+.4f} ({low:+.4f} .. {high:+.4f}) {verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    films = [str(FILM)] * FILM.exists() + ["builtin:glide?frames=6000"]
    parser.add_argument("films", nargs="*", metavar="FILM", default=films)
    parser.add_argument("--every", type=int, default=400)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()

    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    header = [
        "switched off",
        *(f"moves a pixel by more than {limit:g}" for limit in MOVED),
        *("MSE vs frame", "change (95%)", "MSE vs code", "change (95%)", "worst vs frame"),
    ]
    parts = []
    for film in options.films:
        patches = read_patches(film).values
        starts = range(FIRST, len(patches) - HORIZON, options.every)
        # Spawned: a forked process has numba's threads already, and cannot compile with another number of them.
        with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
            found = list(pool.map(predict_at, [patches] * len(starts), starts))
        told = f"{len(starts)} starts, {len(starts) * HORIZON} windows, M = {ATOMS}, H = {WINDOW}"
        parts += [f"**{os.path.basename(film)}**: {told}.", table(header, rows(found))]
    text = "\n\n".join([*parts, machine()])
    print(text)
    write_section("departures", text, PAGE)


if __name__ == "__main__":
    main()
