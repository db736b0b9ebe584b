"""The whole report: what `reproduce` found, as a page and as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import psmt
from psmt.experiments.provenance import (
    FilmRecord,
    expected_section,
    film_facts,
    still_picture,
    to_json,
    versions,
    versions_fact,
)
from psmt.experiments.reproduce.run import Reproduction, chapters
from psmt.experiments.still_image import Still
from psmt.report import Claim, Fact, Page, Section
from psmt.report.numbers import listed, seconds


def all_claims(done: Reproduction) -> list[Claim]:
    """The claims of all chapters, in order."""
    return [
        claim
        for name, chapter in chapters().items()
        for claim in chapter.claims(done.results.get(name), done.notes.get(name, ""))
    ]


def make_sections(done: Reproduction, files: Mapping[str, bytes]) -> list[Section]:
    """Sections of all chapters, with the experiments' files by name; and what inconclusive."""
    parts = chapters()
    sections = [
        section
        for name, chapter in parts.items()
        if name in done.results
        for section in chapter.sections(done.results[name], files)
    ]
    missing = [f"The {name}: {done.notes[name]}." for name in parts if name not in done.results]
    return [*sections, Section(title="What inconclusive on this film", text=missing)] if missing else sections


def make_page(
    done: Reproduction,
    film: FilmRecord,
    sections: Sequence[Section],
    durations: Mapping[str, float],
    still: Still | None = None,
) -> Page:
    """The report, with its sections, how long each stage took, and a still of the film on its first screen."""
    return Page(
        title=f"PSMT on the {film.kind} “{film.name}”",
        lead=(
            "The Predictive Sparse Manifold Transform (Xie, Li and Calhoun, 2023) on "
            f"{done.n_frames:,} frames: the paper's claims, what this {film.kind} says about each, and the figures. "
            f"Errors are mean squared errors of {film.unit}: lower is better. Every prediction "
            "is held against copying and the mean."
        ),
        claims=all_claims(done),
        still=None if still is None else still_picture(still, film),
        sections=[*expected_section(film), *sections],
        facts=_facts(done, film, durations),
    )


def make_summary(done: Reproduction, film: FilmRecord) -> bytes:
    """summary.json: the claims with their figures, and the numbers of all tables. No durations: they would differ."""
    content = {
        "psmt": psmt.__version__,
        "versions": versions(),
        "film": asdict(film),
        "settings": {name: asdict(settings) for name, settings in done.asked.items()},
        "used": {name: None if settings is None else asdict(settings) for name, settings in done.used.items()},
        "notes": done.notes,
        "claims": {claim.key: claim.summary() for claim in all_claims(done)},
    } | {
        name: chapter.summary(done.results[name]) if name in done.results else None
        for name, chapter in chapters().items()
    }
    return to_json(content)


def _departures(done: Reproduction) -> set[str]:
    """By what the experiments depart from the paper, in words: the same for all that make an embedding."""
    return {own.departures.told() for own in done.asked.values() if hasattr(own, "departures")}


def _facts(done: Reproduction, film: FilmRecord, durations: Mapping[str, float]) -> list[Fact]:
    """How it was made: film, settings, versions, durations."""
    facts = film_facts(film)
    for name, chapter in chapters().items():
        if name in done.results:
            facts += chapter.facts(done.results[name])
    facts += [Fact(f"Not as asked: {name}", note) for name, note in done.notes.items()]
    facts += [
        Fact("Departures from the paper", listed(sorted(_departures(done)))),
        Fact("Seed", listed(sorted({settings.seed for settings in done.asked.values()}))),
        versions_fact(),
    ]
    if durations:
        parts = ", ".join(f"{stage} {seconds(value)}" for stage, value in durations.items())
        facts.append(Fact("Durations", f"{seconds(sum(durations.values()))} in all: {parts}"))
    return facts
