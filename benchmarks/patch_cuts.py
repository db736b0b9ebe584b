"""Are cuts detected in one patch, and how often is a frame without a cut reported as one?

    python -m benchmarks.patch_cuts [FILM ..] [--cuts 200]

The thresholds of `psmt.changes.FrameWatch` were chosen on the shared films and on built-in films of the seeds 0 and
201 to 203. Without films of your own this takes built-in films of other seeds: a camera that glides, with and without
noise, and a static camera in front of which seven objects walk. At random frames the film goes on with a random frame
of another stretch of the same film, at least 50 frames away, or with a random frame of another film. Cuts to a frame
that correlates with the last one by more than 0.85 look alike, and are counted apart. A cut that is reported in the
unchanged film is a false alarm.
"""

from __future__ import annotations

import argparse
from copy import copy

import numpy as np
from studies.prior_films import walkers

from benchmarks.page import machine, table
from psmt import read_patches
from psmt.changes import FrameWatch
from psmt.data.patches import standardise
from psmt.types import Array

SEEDS = (301, 302, 303)
POSITIONS: dict[str, tuple[int, int] | None] = {
    "centre": None,
    "corner": (0, 0),
    "below": (138, 92),
    "right": (92, 150),
}
WALKED = {"centre": (42, 42), "left": (70, 20), "right": (20, 70)}  # in films of 100 x 100
PAST, APART, ALIKE = 100, 50, 0.85
"""Frames before the first cut; frames that a cut leaps over at the least; correlation of frames that look alike."""


def built_in() -> dict[str, Array]:
    """Patches (time, n_features) of built-in films, by name."""
    films = {}
    for seed in SEEDS:
        for noise in (0, 0.1):
            name = f"builtin:glide?frames=3000&seed={seed}&noise={noise}"
            for where in ("centre", "corner"):
                films[f"{name}, {where}"] = read_patches(name, position=POSITIONS[where]).values
        film = walkers(seed, 0.03, n_frames=1500)
        for where, (row, column) in WALKED.items():
            patches = film[:, row : row + 16, column : column + 16].reshape(len(film), -1)
            films[f"walkers, seed {seed}, {where}"] = standardise(patches).values
    return films


def correlation(first: Array, second: Array) -> float:
    """Correlation of two patches; 0 if one of them is flat."""
    first, second = first - first.mean(), second - second.mean()
    size = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / size) if size > 0 else 0.0


def score(film: Array, others: Array, n_cuts: int, rng: np.random.Generator) -> tuple[list[int], int, int]:
    """Cuts found, missed and alike in each of two kinds (6,), false alarms, and frames.

    The first three are cuts to another stretch of the film (time, n_features), the next to frames of `others`.
    """
    watch, counts, alarms = FrameWatch(film[:PAST], PAST + 100), [0] * 6, 0
    places = set(rng.choice(np.arange(PAST, len(film)), size=min(n_cuts, len(film) - PAST), replace=False).tolist())
    for t in range(PAST, len(film)):
        if t in places and watch.scene_length > 2:
            far = np.flatnonzero(np.abs(np.arange(len(film)) - t) >= APART)
            for kind, after in enumerate((film[rng.choice(far)], others[rng.integers(len(others))])):
                other = copy(watch)
                other.observe(after)
                alike = correlation(film[t - 1], after) > ALIKE
                counts[3 * kind + (2 if alike else 0 if other.cut else 1)] += 1
        watch.observe(film[t])
        alarms += watch.cut
    return counts, alarms, len(film) - PAST


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("films", nargs="*", metavar="FILM")
    parser.add_argument("--cuts", type=int, default=200)
    asked = parser.parse_args()
    films = {
        f"{name}, {where}": read_patches(name, position=position).values
        for name in asked.films
        for where, position in POSITIONS.items()
    } or built_in()
    rows, totals = [], np.zeros(8, dtype=int)
    for i, (name, film) in enumerate(films.items()):
        # Another film, not another patch of the same one.
        others = [other for label, other in films.items() if label.split(",")[:-1] != name.split(",")[:-1]]
        apart = np.concatenate(others) if others else film
        counts, alarms, n = score(film, apart, asked.cuts, np.random.default_rng(i))
        totals += [*counts, alarms, n]
        rows.append(line(name, *counts, alarms, n))
        print(rows[-1], flush=True)
    rows.append(line("all", *totals.tolist()))
    print(f"\n{table(('patch', 'another stretch', 'alike', 'another film', 'false alarms'), rows)}\n\n{machine()}")


def line(
    name: str, found: int, missed: int, alike: int, seen: int, unseen: int, _: int, alarms: int, n: int
) -> tuple[str, ...]:
    """One row of the table."""
    shares = [
        f"{hits / (hits + misses):.0%}" if hits + misses else "-" for hits, misses in ((found, missed), (seen, unseen))
    ]
    return name, shares[0], f"{alike}", shares[1], f"{alarms} in {n:,} ({1000 * alarms / n:.1f} per 1,000)"


if __name__ == "__main__":
    main()
