"""`python -m studies.layers FILMS..`: score every rule and rival, and print the tables."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from psmt.types import Levels
from studies.layers.chapters import chapters_table
from studies.layers.gates import GATES, gated
from studies.layers.picture import save_space_time
from studies.layers.rivals import RIVALS
from studies.layers.rules import RULES
from studies.layers.stretches import BUILTIN, Stretch, stretches

METHODS: Mapping[str, Callable[[Stretch], Levels]] = {
    **{name: rule.predict for name, rule in RULES.items()},
    **RIVALS,
    **{f"mixture gated by {name}": gated(gate) for name, gate in GATES.items()},
}


def score(stretch: Stretch, methods: Mapping[str, Callable[[Stretch], Levels]]) -> dict[str, float]:
    """Mean squared error of each method, divided by that of copying the last frame."""
    copying = float(np.mean(stretch.scored.y**2))
    return {name: float(np.mean((run(stretch) - stretch.scored.y) ** 2)) / copying for name, run in methods.items()}


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """The table in Markdown, from the lines of layers.csv: a row per method; mean and worst over films."""
    films = list(dict.fromkeys(row["film"] for row in rows))
    lines = ["| method | " + " | ".join(films) + " | mean | worst |", "| --- |" + " ---: |" * (len(films) + 2)]
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [[float(r["ratio"]) for r in rows if (r["film"], r["method"]) == (film, method)] for film in films]
        means = [float(np.mean(ratios)) for ratios in own]
        cells = [f"{value:.3f}" for value in (*means, np.mean(means), max(means))]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.layers", description=__doc__)
    parser.add_argument("films", nargs="*", help="films that are scored beside the built-in ones")
    parser.add_argument("--explored", action="store_true", help="use the stretches that choices were made on")
    parser.add_argument("--methods", default="", help="only methods whose name contains this text")
    parser.add_argument("--no-builtin", action="store_true", help="only the given films")
    parser.add_argument("--chapters", action="store_true", help="print the table of chapters instead")
    parser.add_argument("--picture", action="store_true", help="draw the atoms of space-time of the first film instead")
    parser.add_argument("--out", type=Path, default=Path("psmt-layers"), help="folder for the files")
    given = parser.parse_args(arguments)
    if given.chapters:
        print(chapters_table(explored=given.explored))
        return
    if given.picture:
        save_space_time((*given.films, *BUILTIN)[0], given.out / "space-time.gif")
        print(given.out / "space-time.gif")
        return
    methods = {name: run for name, run in METHODS.items() if given.methods in name}
    if not methods:
        parser.error(f"no method contains {given.methods!r}; use part of one of: {', '.join(METHODS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, str]] = []
    with (given.out / "layers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ("film", "start", "method", "ratio"))
        writer.writeheader()
        for film in (*given.films, *(() if given.no_builtin else BUILTIN)):
            for stretch in stretches(film, explored=given.explored):
                for method, ratio in score(stretch, methods).items():
                    row = {"film": stretch.film, "start": str(stretch.start), "method": method, "ratio": f"{ratio:.4f}"}
                    rows.append(row)
                    writer.writerow(row)
                file.flush()
                print(f"{stretch.film} {stretch.start}", file=sys.stderr, flush=True)
    print(table(rows))
