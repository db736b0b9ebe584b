"""How a study was made: inputs, settings and versions, and a paragraph for the methods section of a paper."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

import psmt
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.film_report import versions
from psmt.report import Column, Fact, Section, Table

MAX_INPUTS = 20
"""Largest number of input files on the page."""


def provenance(result: BrainResult) -> dict[str, Any]:
    """Return inputs with checksums, preprocessing, settings and versions."""
    optional = {name: version(name) for name in ("nilearn", "nibabel", "hmmlearn") if find_spec(name)}
    return {
        **result.study.origin,
        "tr_seconds": result.study.tr,
        "high_pass_hertz": result.model.high_pass,
        "settings": asdict(result.settings),
        "versions": {"psmt": psmt.__version__, **versions(), **optional},
    }


def methods(result: BrainResult) -> str:
    """Return a paragraph that describes the study, to be pasted into a paper."""
    study, settings, model, origin = result.study, result.settings, result.model, result.study.origin
    lengths = " to ".join(f"{n:,}" for n in sorted({min(study.lengths), max(study.lengths)}))
    slow = f"{model.high_pass or 0:g} Hz" if study.tr else "one cycle in 200 volumes"
    drifts = "The mean of each region was" if model.high_pass is None else f"Drifts below {slow} were"
    learned = (
        f"The model of the group (Predictive Sparse Manifold Transform, Xie, Li and Calhoun, 2023; psmt "
        f"{psmt.__version__}) has {len(model.networks_)} networks with non-negative sparse codes (L1 penalty "
        f"{model.alpha:g}), an embedding of the codes with smooth trajectories, of which {len(model.embedding_)} "
        "principal directions were kept, and "
        f"{model.n_states} states by an autoregressive hidden Markov model."
    )
    if origin.get("model"):
        source = f"{Path(origin['model']['file']).name}, sha256 {origin['model']['sha256'][:12]}"
        learned += f" The model was learned earlier ({source}) and applied without learning from these people."
    if model.scores_:
        learned += (
            f" The number of states was chosen from {min(model.scores_)} to {max(model.scores_)}: the smallest number "
            "with 80% of the largest gain in the log-likelihood of the other half of the people."
        )
    if result.compared:
        learned += (
            " The last quarter of each series was predicted from the volumes before it. States were fitted to "
            f"{result.n_splits} splits of {result.n_compared} people into halves, and compared with "
            f"{settings.n_surrogates} surrogates with random Fourier phases."
        )
    return (
        f"{_extraction(result)} {result.people} had {lengths} volumes each (repetition time: "
        f"{f'{study.tr:g} s' if study.tr else 'unknown'}). {drifts} removed, and each region was scaled to "
        f"variance one. {learned} Occupancy, mean dwell times and transitions of the states were computed for "
        "each person. Components of networks with similar columns of the embedding matrix were followed in windows of "
        f"{settings.window} volumes. Random numbers were drawn with the seed {settings.seed}."
    )


def methods_section(result: BrainResult) -> Section:
    """Return the section of the page with the paragraph and the input files."""
    inputs = result.study.origin.get("inputs", ())
    columns = [Column(name, itemgetter(name)) for name in ("subject", "file", "volumes")]
    columns.append(Column("sha256", lambda one: one.get("sha256", "–")))
    files = Table.of("Input files; summary.json has all of them", inputs[:MAX_INPUTS], columns)
    folded = Section(title="Input files", tables=[files])
    return Section(title="Methods, to be pasted into a paper", text=[methods(result)], folded=[folded])


def provenance_facts(result: BrainResult) -> list[Fact]:
    """Return facts on how scans were turned into series, and versions. Facts that do not apply are left out."""
    origin = provenance(result)
    names = ("atlas", "labels", "mask", "confounds", "low_pass_hertz", "smoothing_millimetres", "model")
    known = {name.replace("_", ", ").capitalize(): origin[name] for name in names if origin.get(name) is not None}
    known["Versions"] = [f"{name} {number}" for name, number in origin["versions"].items()]
    shown = {name: list(own.values()) if isinstance(own, dict) else own for name, own in known.items()}
    return [Fact(name, ", ".join(own) if isinstance(own, list) else str(own)) for name, own in shown.items()]


def _extraction(result: BrainResult) -> str:
    origin, n_regions = result.study.origin, len(result.study.regions)
    if not origin.get("scans"):
        return f"Series of {n_regions} regions were read from tables."
    where = f"regions of the atlas {Path(origin['atlas']['file']).name}" if origin["atlas"] else "voxels of a mask"
    confounds, smoothing, low_pass = (origin[name] for name in ("confounds", "smoothing_millimetres", "low_pass_hertz"))
    parts = [f"nilearn {version('nilearn')}"]
    if confounds:
        strategy = f"by the strategy {confounds} of fMRIPrep" if isinstance(confounds, str) else "from a table"
        parts.append(f"confounds {strategy}")
    parts += [f"smoothing of {smoothing:g} mm"] if smoothing else []
    parts += [f"low-pass filter at {low_pass:g} Hz"] if low_pass else []
    return f"Series of {n_regions} {where} were extracted from scans ({', '.join(parts)})."
