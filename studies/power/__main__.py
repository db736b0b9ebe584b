"""`python -m studies.power`: how often an effect is found in films that have it, and in films that do not."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from psmt.experiments.film_tasks import pack_codes
from psmt.experiments.prediction.report import prediction_claims
from psmt.experiments.prediction.run import predict
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.experiments.topology.report import clusters_change
from psmt.experiments.topology.run import topology, topology_of_codes
from psmt.experiments.topology.settings import TopologySettings
from psmt.pipeline.run import Run
from psmt.report import Claim
from psmt.types import Array
from studies.power.films import CLUSTERS, CODES, N_ATOMS, N_FEATURES, ROTATIONS, Maker

PLANTED, WITHOUT = 8, 20
"""Films of each kind with the effect; films without, over all kinds."""

KINDS = {"as_measured": "as measured", "beyond_controls": "beyond controls"}
"""The two verdicts of a claim."""

Judge = Callable[[Array, Path], Claim]


def change_of_codes(codes: Array, folder: Path) -> Claim:
    """The claim that clusters change, from codes over a known dictionary."""
    settings = TopologySettings(n_atoms=N_ATOMS, window=384, overlap=0.5, n_permutations=19)
    return clusters_change(
        topology_of_codes(np.eye(N_ATOMS, N_FEATURES), pack_codes(codes), settings, Run(folder=folder))
    )


def change_of_film(film: Array, folder: Path) -> Claim:
    """The claim that clusters change, from a film, with a learned dictionary of the size that --quick has."""
    settings = TopologySettings(n_atoms=128, window=384, overlap=0.5, alpha=0.5, n_permutations=19)
    return clusters_change(topology(film, settings, Run(folder=folder)))


def dynamic_beats_static(series: Array, folder: Path) -> Claim:
    """The claim that a dynamic embedding predicts better than static ones, with a small model and 16 starts."""
    settings = PredictionSettings(n_atoms=16, window=32, horizon=30, alpha=0.1, starts=(100,), n_starts=16, n_null=8)
    result = predict(series, settings, Run(folder=folder))
    return next(claim for claim in prediction_claims(result) if claim.key == "dynamic_beats_static")


STUDIES: dict[str, tuple[Mapping[str, Maker], Judge]] = {
    "clusters change, codes": (CODES, change_of_codes),
    "clusters change, films": (CLUSTERS, change_of_film),
    "dynamic beats static, series": (ROTATIONS, dynamic_beats_static),
}


def count_verdicts(make: Maker, judge: Judge, seeds: list[list[int]]) -> dict[str, Counter[str]]:
    """How often each verdict is given on one film per seed, as measured and beyond controls."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for seed in seeds:
        with TemporaryDirectory() as folder:
            claim = judge(make(np.random.default_rng(seed)), Path(folder))
        for kind, count in found.items():
            count[getattr(claim, kind).verdict] += 1
    return found


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m studies.power", description=__doc__)
    parser.add_argument("--seed", type=int, default=2026, help="first number of the seed of each film")
    parser.add_argument("--only", choices=STUDIES, help="one of the studies")
    given = parser.parse_args()
    heads = " | ".join(f"{text}: yes | no | inconclusive" for text in KINDS.values())
    print(f"| claim | films | effect | films in all | {heads} |")
    print(f"| --- | --- | --- |{' ---: |' * 7}")
    for name, (films, judge) in STUDIES.items():
        if given.only not in (None, name):
            continue
        planted, *without = films
        seeds = {planted: range(PLANTED)}
        seeds |= {kind: range(k, WITHOUT, len(without)) for k, kind in enumerate(without)}
        for kind, own in seeds.items():
            found = count_verdicts(films[kind], judge, [[given.seed, k] for k in own])
            verdicts = " | ".join(
                str(one[verdict]) for one in found.values() for verdict in ("yes", "no", "inconclusive")
            )
            effect = "planted" if kind == planted else "none"
            print(f"| {name} | {kind} | {effect} | {len(own)} | {verdicts} |", flush=True)


if __name__ == "__main__":
    main()
