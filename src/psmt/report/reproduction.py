"""The whole report: what `reproduce` found, as a page and as numbers."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

import psmt
from psmt.evaluation import mse
from psmt.experiments.prediction import PhaseResult, summarise
from psmt.experiments.reconstruction import least_error
from psmt.experiments.reproduce import Reproduction
from psmt.report.claims import all_claims
from psmt.report.numbers import listed, seconds
from psmt.report.page import Fact, Page, Section
from psmt.report.prediction import prediction_sections, reconstruction_section
from psmt.report.sweep import sweep_section
from psmt.report.topology import topology_section

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "av", "matplotlib")
"""Packages whose versions a result may depend on."""


@dataclass(frozen=True, kw_only=True)
class Film:
    """What was looked at."""

    name: str
    checksum: str
    """sha256, 64 hex digits."""
    n_frames: int
    patch_size: int
    frame_size: int
    position: tuple[int, int] | None = None


def make_page(
    done: Reproduction,
    film: Film,
    pictures: Mapping[str, bytes],
    durations: Mapping[str, float],
) -> Page:
    """Page with PNG files by name: sweep, topology, atom_map, reconstruction, and prediction-NAME for each phase."""
    sections: list[Section] = []
    if done.sweep is not None:
        sections.append(sweep_section(done.sweep, pictures["sweep"]))
    if done.topology is not None:
        sections.append(topology_section(done.topology, pictures["topology"], pictures["atom_map"]))
    if done.reconstruction is not None and done.plan.reconstruction is not None:
        segment = least_error(done.reconstruction, window=done.settings.prediction.window)
        sections.append(
            reconstruction_section(
                done.reconstruction, done.plan.reconstruction.n_atoms, segment, pictures["reconstruction"]
            )
        )
    if done.phases:
        own = [pictures[f"prediction-{result.phase.name}"] for result in done.phases]
        sections += prediction_sections(done.phases, own)
    missing = [name for name in ("sweep", "topology", "reconstruction", "prediction") if _absent(done, name)]
    if missing:
        sections.append(
            Section(
                title="What cannot be tested on this film",
                text=[f"The {name}: {done.plan.notes[name]}." for name in missing],
            )
        )
    return Page(
        title=f"PSMT on the film “{film.name}”",
        lead=(
            "The Predictive Sparse Manifold Transform (Xie, Li and Calhoun, 2023) on "
            f"{film.n_frames:,} frames: the paper's claims, what this film says about each, and the figures. "
            "Errors are mean squared errors of standardised patches: lower is better. Copying is in every comparison."
        ),
        claims=all_claims(done),
        sections=sections,
        facts=_facts(done, film, durations),
    )


def make_summary(done: Reproduction, film: Film) -> bytes:
    """summary.json: the claims with their figures, and the numbers of all tables. No durations: they would differ."""
    segment = None
    if done.reconstruction is not None:
        segment = least_error(done.reconstruction, window=done.settings.prediction.window)
    content = {
        "psmt": psmt.__version__,
        "versions": _versions(),
        "film": asdict(film),
        "settings": asdict(done.settings),
        "used": {name: None if _absent(done, name) else asdict(getattr(done.plan, name)) for name in _EXPERIMENTS},
        "notes": done.plan.notes,
        "claims": {claim.key: claim.summary() for claim in all_claims(done)},
        "sweep": None if done.sweep is None else [row._asdict() for row in done.sweep.table()],
        "topology": None if done.topology is None else done.topology.summary(),
        "reconstruction": None
        if done.reconstruction is None or segment is None
        else {
            "mean": float(np.mean(done.reconstruction)),
            "median": float(np.median(done.reconstruction)),
            "least_error": segment._asdict(),
        },
        "prediction": [_phase(result) for result in done.phases],
    }
    return json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False).encode() + b"\n"


_EXPERIMENTS = ("sweep", "topology", "reconstruction", "prediction")


def _absent(done: Reproduction, name: str) -> bool:
    return getattr(done.plan, name) is None


def _phase(result: PhaseResult) -> dict[str, Any]:
    return {
        "phase": result.phase.name,
        "start": result.phase.start,
        "n_components": result.n_components,
        "lam": result.lam,
        "coding_mse_vs_frame": float(np.mean(mse(result.estimates, result.frames))),
        "one_step": [summary._asdict() for summary in summarise(result.rows("scores"))],
        "rollout": [summary._asdict() for summary in summarise(result.rows("rollouts"))],
    }


def _plain(value: Any) -> Any:
    """For JSON, which knows neither NaN nor NumPy."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def _facts(done: Reproduction, film: Film, durations: Mapping[str, float]) -> list[Fact]:
    """How it was made: film, settings, versions, durations."""
    plan = done.plan
    where = "the centre" if film.position is None else f"row {film.position[0]}, column {film.position[1]}"
    facts = [
        Fact("Film", f"{film.name}, {film.n_frames:,} frames"),
        Fact("Checksum", f"sha256 {film.checksum}"),
        Fact(
            "Patch",
            f"{film.patch_size} × {film.patch_size} of {film.frame_size} × {film.frame_size} pixels, {where}, "
            "standardised",
        ),
    ]
    if plan.sweep is not None:
        facts.append(
            Fact(
                "Sweep",
                f"M = {listed([f'{size:,}' for size in plan.sweep.n_atoms])}; H = "
                f"{listed([f'{ratio:g}' for ratio in plan.sweep.ratios])} M; f = "
                f"{plan.sweep.n_components or 'M / 4'}, α = {plan.sweep.alpha:g}, λ = {plan.sweep.lam:g}",
            )
        )
    if plan.topology is not None:
        facts.append(
            Fact(
                "Topology",
                f"M = {plan.topology.n_atoms:,}, H = {plan.topology.window:,}, f = {plan.topology.components:,}, "
                f"{plan.topology.step:,} frames from window to window (overlap {plan.topology.overlap:.4g}), "
                f"links above {plan.topology.threshold:g}, {plan.topology.n_permutations:,} permutations per test",
            )
        )
    if plan.reconstruction is not None:
        facts.append(
            Fact(
                "Reconstruction",
                f"M = {plan.reconstruction.n_atoms:,}, f = {plan.reconstruction.components:,}, "
                f"α = {plan.reconstruction.alpha:g}, λ = {plan.reconstruction.lam:g}",
            )
        )
    if plan.prediction is not None:
        chosen = "; ".join(f"{r.phase.name}: f = {r.n_components}, λ = {r.lam:g}" for r in done.phases)
        facts.append(
            Fact(
                "Prediction",
                f"M = {plan.prediction.n_atoms:,}, H = {plan.prediction.window:,}, K = {plan.prediction.horizon}, "
                f"α = {plan.prediction.alpha:g}, f {plan.prediction.n_components}, λ {plan.prediction.lam} ({chosen})",
            )
        )
    facts += [Fact(f"Not as asked: {name}", note) for name, note in plan.notes.items()]
    facts += [
        Fact("Seed", f"{done.settings.prediction.seed}"),
        Fact("Versions", ", ".join([f"psmt {psmt.__version__}", *(f"{n} {v}" for n, v in _versions().items())])),
    ]
    if durations:
        parts = ", ".join(f"{stage} {seconds(value)}" for stage, value in durations.items())
        facts.append(Fact("Durations", f"{seconds(sum(durations.values()))} in all: {parts}"))
    return facts
