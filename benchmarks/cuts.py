"""Are cuts told from fast pans? `CutsFilm` has both, at known frames.

    python -m benchmarks.cuts [--cuts 100] [--pans 100] [--size 100] [--seed 0]

Two detectors are compared: the events that `psmt predict-video` writes, and `FramePredictor.cut_` alone. A cut is found
if it is reported at its first frame or at the next one. A pan counts as taken for a cut if a cut is reported between
its first frame and the one after its last. Every other reported cut is a false alarm. Nothing is tuned on this film.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from benchmarks.cuts_film import LEAD, CutsFilm
from benchmarks.page import machine, table, write_section
from psmt.experiments.predict_video.run import predict_video
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.pipeline.run import Run
from psmt.video import FrameReader

START = LEAD - 10
"""Frames that are learned from: all before the first event but a few."""


class Count(NamedTuple):
    """How a list of cuts fares against the truth."""

    found: int
    missed: list[int]
    """First frames of the scenes that were not told."""
    pans: list[int]
    """First frames of the pans that were taken for cuts."""
    elsewhere: list[int]
    """Frames that were told without any event."""


def count(told: Sequence[int], film: CutsFilm) -> Count:
    """Hold frames that were called cuts against those that are."""
    left = set(told)
    missed = []
    for cut in film.cuts.tolist():
        here = left & {cut, cut + 1}
        left -= here
        if not here:
            missed.append(cut)
    pans = []
    for first, last in film.pans.tolist():
        here = left & set(range(first, last + 2))
        left -= here
        if here:
            pans.append(first)
    return Count(len(film.cuts) - len(missed), missed, pans, sorted(left))


def run(film: CutsFilm) -> dict[str, Count]:
    """Counts of what the events and the model say of a film."""
    settings = VideoSettings(start=START, horizon="all", rollout=0)
    result = predict_video(film, FrameReader("native"), settings, Run(folder=Path(mkdtemp())))
    return {
        "events of predict-video": count([event.frame for event in result.events if event.kind == "cut"], film),
        "FramePredictor.cut_": count(
            [row.frame for row in result.rows if row.method == "frame_predictor" and row.cut], film
        ),
    }


def counts_table(found: dict[str, Count], film: CutsFilm) -> str:
    """One line for each that was asked."""
    speed = film._plan.motion.speed / film.size

    def named(frames: Sequence[int], pans: bool = False) -> str:
        shown = [f"{frame} ({100 * speed[frame + 3]:.0f}% a frame)" if pans else f"{frame}" for frame in frames[:8]]
        return ", ".join(shown) + (" .." if len(frames) > 8 else "") or "none"

    lines = [
        [
            name,
            f"{one.found} of {len(film.cuts)}",
            named(one.missed),
            f"{len(one.pans)} of {len(film.pans)}",
            named(one.pans, pans=True),
            f"{len(one.elsewhere)}",
            "yes" if not (one.missed or one.pans or one.elsewhere) else "**no**",
        ]
        for name, one in found.items()
    ]
    head = ["asked", "cuts found", "missed at", "pans taken for cuts", "at", "elsewhere", "all right"]
    return table(head, lines)


def main() -> None:
    """Count, print, and write the section of benchmarks/README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("cuts", 100), ("pans", 100), ("size", 100), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    film = CutsFilm(n_cuts=given.cuts, n_pans=given.pans, size=given.size, seed=given.seed)
    lines = counts_table(run(film), film)
    print(lines)
    text = (
        f"`CutsFilm`, {film.n_frames:,} frames of {film.size} x {film.size}, seed {film.seed}. A cut counts as "
        "found "
        "at its first frame or the one after; a pan moves by 4% to 15% of the picture in each of 6 to 16 frames."
    )
    write_section(
        "cuts", "\n\n".join(["## Cuts and fast pans", "    python -m benchmarks.cuts", text, lines, machine()])
    )


if __name__ == "__main__":
    main()
