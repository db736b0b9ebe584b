"""Are cuts told in one patch, on films that no threshold was chosen on?

    python -m benchmarks.patch_cuts [FILM ..] [--cuts 200]

The thresholds of `psmt.surprise.FrameWatch` were chosen on the built-in film with seed 0 and on three real films.
Without films of your own this takes built-in films of other seeds and noises, which nobody looked at. At random frames
the film goes on with a random later frame: found is a cut that is told there. What is told in the film as it is, is a
false alarm.
"""

from __future__ import annotations

import argparse
from copy import deepcopy

import numpy as np

from benchmarks.page import machine, table
from psmt import read_patches
from psmt.surprise import FrameWatch
from psmt.types import Array

UNSEEN = [f"builtin:glide?frames=3000&seed={seed}&noise={noise}" for seed in (101, 102, 103) for noise in (0, 0.1)]
POSITIONS = {"centre": None, "corner": (0, 0)}
PAST, APART, ALIKE = 200, 50, 0.85
"""Frames before the first cut; frames that a cut leaps over at the least; correlation of frames that look alike."""


def score(film: Array, n_cuts: int, rng: np.random.Generator) -> tuple[float, float, int, int]:
    """Share of cuts found in patches (time, n_features), share that look alike, false alarms, and frames."""
    places = set(rng.choice(np.arange(PAST, len(film) - APART), size=n_cuts, replace=False).tolist())
    watch = FrameWatch(film[:PAST], PAST)
    found, alike, alarms = 0, 0, 0
    for t in range(PAST, len(film)):
        if t in places:
            other = deepcopy(watch)
            after = film[rng.integers(t + APART, len(film)) if t + APART < len(film) else len(film) - 1]
            other.observe(after)
            found += other.cut
            alike += not other.cut and np.corrcoef(film[t - 1], after)[0, 1] > ALIKE
        watch.observe(film[t])
        alarms += watch.cut
    return found / n_cuts, alike / n_cuts, alarms, len(film) - PAST


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("films", nargs="*", metavar="FILM", default=UNSEEN)
    parser.add_argument("--cuts", type=int, default=200)
    asked = parser.parse_args()
    rows = []
    for name in asked.films:
        for where, position in POSITIONS.items():
            film = read_patches(name, position=position).values
            found, alike, alarms, n = score(film, asked.cuts, np.random.default_rng(len(rows)))
            rows.append((f"{name}, {where}", f"{found:.0%}", f"{alike:.0%}", f"{alarms} in {n:,}"))
            print(rows[-1], flush=True)
    print(f"\n{table(('patch', 'cuts found', 'look alike', 'false alarms'), rows)}\n\n{machine()}")


if __name__ == "__main__":
    main()
