"""The whole report: what `reproduce` found, as a page and as numbers."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

import psmt
from psmt.experiments.regime_figure import place_figure
from psmt.experiments.regime_map import expectation, shipped_map
from psmt.experiments.reproduce.run import Reproduction, chapters
from psmt.experiments.still import Still
from psmt.figures import png
from psmt.regime import Regime
from psmt.report import Claim, Fact, Page, Picture, Section
from psmt.report.numbers import listed, seconds

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "av", "matplotlib")
"""Packages whose versions a result may depend on."""


@dataclass(frozen=True, kw_only=True)
class FilmRecord:
    """What was looked at."""

    name: str
    checksum: str
    """sha256, 64 hex digits."""
    n_frames: int
    patch_size: int | None = None
    """None for a series, which is taken as it is."""
    frame_size: int | None = None
    position: tuple[int, int] | None = None
    regime: Regime | None = None
    """Speed and noise, where they can be measured."""


def all_claims(done: Reproduction) -> list[Claim]:
    """The claims of all chapters, in order."""
    return [
        claim
        for name, chapter in chapters().items()
        for claim in chapter.claims(done.results.get(name), done.notes.get(name, ""))
    ]


def make_sections(done: Reproduction, files: Mapping[str, bytes]) -> list[Section]:
    """Sections of all chapters, with the experiments' files by name; and what cannot be told."""
    parts = chapters()
    sections = [
        section
        for name, chapter in parts.items()
        if name in done.results
        for section in chapter.sections(done.results[name], files)
    ]
    missing = [f"The {name}: {done.notes[name]}." for name in parts if name not in done.results]
    return [*sections, Section(title="What cannot be told on this film", text=missing)] if missing else sections


def make_page(
    done: Reproduction,
    film: FilmRecord,
    sections: Sequence[Section],
    durations: Mapping[str, float],
    still: Still | None = None,
) -> Page:
    """The report, with its sections, how long each stage took, and a still of the film on its first screen."""
    what = "the values as they are" if film.patch_size is None else "standardised patches"
    return Page(
        title=f"PSMT on the film “{film.name}”",
        lead=(
            "The Predictive Sparse Manifold Transform (Xie, Li and Calhoun, 2023) on "
            f"{film.n_frames:,} frames: the paper's claims, what this film says about each, and the figures. "
            f"Errors are mean squared errors of {what}: lower is better. Every prediction "
            "is held against copying and the mean."
        ),
        claims=all_claims(done),
        still=None if still is None else _still(still, film),
        sections=[*_expected(film), *sections],
        facts=_facts(done, film, durations),
    )


def make_summary(done: Reproduction, film: FilmRecord) -> bytes:
    """summary.json: the claims with their figures, and the numbers of all tables. No durations: they would differ."""
    content = {
        "psmt": psmt.__version__,
        "versions": _versions(),
        "film": asdict(film),
        "settings": {name: asdict(settings) for name, settings in done.asked.items()},
        "used": {name: None if settings is None else asdict(settings) for name, settings in done.used.items()},
        "notes": done.notes,
        "claims": {claim.key: claim.summary() for claim in all_claims(done)},
    } | {
        name: chapter.summary(done.results[name]) if name in done.results else None
        for name, chapter in chapters().items()
    }
    return (
        json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False).encode(errors="backslashreplace")
        + b"\n"
    )


def _still(still: Still, film: FilmRecord) -> Picture:
    """The still with its caption: what is marked, and how it moves."""
    side = still.patch_size
    caption = (
        f"Frame {still.index} of {film.name}. All of this is about the patch in the square, {side} × {side} pixels"
    )
    if film.regime is not None:
        caption += f": it moves by {film.regime.speed:.2g} pixels per frame, with noise of {film.regime.noise:.1%}"
    return Picture(still.png(), alt=f"A frame of {film.name} with a square around the patch", caption=caption + ".")


def _expected(film: FilmRecord) -> list[Section]:
    """Where the film lies on the map of regimes; nothing for a series."""
    if film.regime is None:
        return []
    return [
        Section(
            title="What to expect of this film",
            text=[
                expectation(film.regime),
                "Speed and noise were measured on this film's patches. The map was measured on films of known speed "
                "and noise (psmt regimes), with small dictionaries: expect its directions, not its values.",
            ],
            pictures=[
                Picture(
                    png(place_figure(shipped_map(), film.regime)),
                    alt="Maps of speed and noise: where PSMT's straight line beats copying, and this film's place",
                )
            ],
        )
    ]


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


def _departures(done: Reproduction) -> set[str]:
    """By what the experiments depart from the paper, in words: the same for all that make an embedding."""
    return {own.departures.told() for own in done.asked.values() if hasattr(own, "departures")}


def _facts(done: Reproduction, film: FilmRecord, durations: Mapping[str, float]) -> list[Fact]:
    """How it was made: film, settings, versions, durations."""
    facts = [Fact("Film", f"{film.name}, {film.n_frames:,} frames"), Fact("Checksum", f"sha256 {film.checksum}")]
    if film.patch_size is not None:
        where = "the centre" if film.position is None else f"row {film.position[0]}, column {film.position[1]}"
        patch, frame = (f"{side} × {side}" for side in (film.patch_size, film.frame_size))
        facts.append(Fact("Patch", f"{patch} of {frame} pixels, {where}, standardised"))
    for name, chapter in chapters().items():
        if name in done.results:
            facts += chapter.facts(done.results[name])
    facts += [Fact(f"Not as asked: {name}", note) for name, note in done.notes.items()]
    facts += [
        Fact("Departures from the paper", listed(sorted(_departures(done)))),
        Fact("Seed", listed(sorted({settings.seed for settings in done.asked.values()}))),
        Fact("Versions", ", ".join([f"psmt {psmt.__version__}", *(f"{n} {v}" for n, v in _versions().items())])),
    ]
    if durations:
        parts = ", ".join(f"{stage} {seconds(value)}" for stage, value in durations.items())
        facts.append(Fact("Durations", f"{seconds(sum(durations.values()))} in all: {parts}"))
    return facts
