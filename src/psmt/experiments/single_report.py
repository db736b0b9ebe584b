"""One experiment by itself: its report and its summary, made in one way for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import psmt
from psmt.experiments import command_of, experiment_of
from psmt.experiments.provenance import (
    FilmRecord,
    expected_section,
    film_facts,
    still_picture,
    to_json,
    versions,
    versions_fact,
)
from psmt.experiments.still_image import Still
from psmt.report import Fact, Page

_TOLD = {"Film", "Checksum", "Version"}
"""Facts of an experiment's own page that are told of every film here, in more detail."""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """What one command gave."""

    name: str
    """Of the experiment."""
    film: FilmRecord
    settings: Mapping[str, Any]
    """Of it and of all that it needs, by experiment."""
    results: Mapping[str, Any]
    """The same, with its own last."""
    notes: Sequence[str] = ()
    """Why settings are not as asked."""


def make_page(done: Alone, files: Mapping[str, bytes], still: Still | None) -> Page:
    """The report: the experiment's own page or that of its chapter, with the film on the first screen."""
    experiment = experiment_of(done.name)
    page = _of_chapters(done, files) if experiment.page is None else experiment.page(done.results[done.name], files)
    own = [fact for fact in page.facts if fact.name not in _TOLD]
    return replace(
        page,
        still=page.still if still is None else still_picture(still, done.film),
        sections=[*expected_section(done.film), *page.sections],
        facts=[*film_facts(done.film), *own, *(Fact("Not as asked", note) for note in done.notes), versions_fact()],
    )


def make_summary(done: Alone, page: Page) -> bytes:
    """summary.json: the claims with their figures, and the numbers of the experiment and of those it needs."""
    return to_json(
        {
            "psmt": psmt.__version__,
            "versions": versions(),
            "command": command_of(done.name).name,
            "film": asdict(done.film),
            "settings": {name: asdict(own) for name, own in done.settings.items()},
            "notes": list(done.notes),
            "claims": {claim.key: claim.summary() for claim in page.claims},
        }
        | {name: experiment_of(name).numbers(result) for name, result in done.results.items()}
    )


def _of_chapters(done: Alone, files: Mapping[str, bytes]) -> Page:
    """The chapters of an experiment and of what it needs, as a page."""
    command = command_of(done.name)
    parts = [
        (chapter, result)
        for name, result in done.results.items()
        if (chapter := experiment_of(name).chapter) is not None
    ]
    departures = {own.departures.told() for own in done.settings.values() if hasattr(own, "departures")}
    length = "" if done.film.n_frames is None else f", {done.film.n_frames:,} frames"
    return Page(
        title=f"psmt {command.name} on “{done.film.name}”",
        lead=(
            f"{command.help.partition(chr(10))[0]} This {done.film.kind}{length}; errors are mean squared errors of "
            f"{done.film.unit}: lower is better."
        ),
        claims=[claim for chapter, result in parts for claim in chapter.claims(result, "; ".join(done.notes))],
        sections=[section for chapter, result in parts for section in chapter.sections(result, files)],
        facts=[
            *(fact for chapter, result in parts for fact in chapter.facts(result)),
            *(Fact("Departures from the paper", told) for told in sorted(departures)),
        ],
    )
