"""Make report.html and summary.json for one film, from one experiment or from all experiments of the paper."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.metadata import version
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

import psmt
from psmt.experiments import command_of, experiment_of
from psmt.report import Answer, Claim, Fact, Page, Section
from psmt.report.numbers import listed
from psmt.report.wording import in_rows

if TYPE_CHECKING:
    from psmt.experiments.options.declaration import Settings

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "av", "matplotlib")
"""Packages whose versions a result may depend on."""


@dataclass(frozen=True, kw_only=True)
class FilmRecord:
    """What a report says about the film or series that was used."""

    name: str
    checksum: str | None
    """The sha256 checksum as 64 hex digits. It is None for a camera or a stream, which cannot be read again."""
    n_frames: int | None
    """Number of frames, or None if it is known only at the end."""
    patch_size: int | None = None
    """Side of the patch in pixels, or None for a series and for whole frames."""
    frame_size: int | None = None
    position: tuple[int, int] | None = None
    features: tuple[str, ...] | None = None
    """Names of a series' features, or numbers if they have no names. It is None for a film."""

    @property
    def kind(self) -> str:
        """Whether this is a 'film' or a 'series'."""
        return "film" if self.features is None else "series"

    @property
    def picture_shape(self) -> tuple[int, int] | None:
        """Height and width of the patch whose pixels are the features, or None if the features are not pixels."""
        return None if self.patch_size is None else (self.patch_size, self.patch_size)


@dataclass(frozen=True, kw_only=True)
class FilmResults:
    """Settings and results of all experiments that a command ran on one film."""

    command: str
    film: FilmRecord
    asked: "Mapping[str, Settings]"
    """The settings that the user asked for, by experiment."""
    used: "Mapping[str, Settings | None]"
    """Settings that fit the film, by experiment, or None if no size fits. Needed experiments are included."""
    notes: Mapping[str, str]
    """Why the settings differ from those asked for, by experiment. Experiments with unchanged settings are left out."""
    results: Mapping[str, Any]
    """The result of each experiment that fits the film, by name."""
    source: str = "FILM"
    """The film as it was named on the command line."""
    paper: bool = False
    """Whether the command ran all experiments of the paper."""

    @property
    def experiment(self) -> str:
        """Name of the requested experiment, or of the last one if there are several."""
        return list(self.asked)[-1]

    def answer(self, claims: Sequence[Claim], files: Mapping[str, Any]) -> Answer:
        """Return the first answer that an experiment gives. It also says how many claims of the paper are confirmed."""
        found = [experiment_of(name).answer(result, files) for name, result in self.results.items()]
        own = next((one for one in found if one is not None), Answer())
        paper = [claim for claim in claims if claim.paper]
        plain = sum(claim.as_measured.verdict == "yes" for claim in paper)
        beyond = sum(claim.beyond_controls.verdict == "yes" for claim in paper)
        counts = ""
        if len(paper) == 1:
            both = paper[0].as_measured.verdict, paper[0].beyond_controls.verdict
            counts = "Does the paper's claim come out? As measured: {}; beyond controls: {}.".format(*both)
        elif paper:
            come = "comes" if plain == 1 else "come"
            counts = f"Of the paper's {len(paper)} claims, {plain} {come} out as measured and {beyond} beyond controls."
        command = f"psmt {own.command.format(source=quote(self.source))}" if own.command else ""
        return own._replace(text=" ".join(filter(None, [own.text, counts])), command=command)


def make_page(done: FilmResults, files: Mapping[str, Any]) -> Page:
    """Return the page of the report. `files` maps the names of files to their contents.

    The page has the claims and sections of all experiments. A single experiment may define its own page instead (see
    `Experiment.page`). Facts about the film are added, unless `Experiment.complete` is True.
    """
    film, own_report = done.film, experiment_of(done.experiment)
    custom = None if done.paper else own_report.page
    page = _common_page(done, files) if custom is None else custom(done.results[done.experiment], files)
    if own_report.complete:
        return page
    changed = [Fact(f"Not as asked: {name}", note) for name, note in done.notes.items()]
    used = ", ".join([f"psmt {psmt.__version__}", *(f"{name} {number}" for name, number in versions().items())])
    page = replace(page, facts=[*film_facts(film), *page.facts, *changed, Fact("Versions", used)])
    return in_rows(page) if film.kind == "series" else page


def _common_page(done: FilmResults, files: Mapping[str, Any]) -> Page:
    film = done.film
    length = "" if film.n_frames is None else f"{film.n_frames:,} frames"
    errors = f"mean squared errors of standardised {'patches' if film.kind == 'film' else 'features'}: lower is better."
    if done.paper:
        title = f"PSMT on the {film.kind} “{film.name}”"
        lead = (
            f"The Predictive Sparse Manifold Transform (Xie, Li and Calhoun, 2023) on {length}. Errors are {errors} "
            "“As measured” is the paper's own comparison; “beyond controls” also asks for more than on shuffled "
            "frames and on noise of the same spectrum."
        )
    else:
        title = f"psmt {done.command} on “{film.name}”"
        sentence = command_of(done.experiment).help.partition("\n")[0]
        lead = f"{sentence} This {film.kind}{length and ', '}{length}; errors are {errors}"
    facts: list[Fact] = []
    for name, result in done.results.items():
        make = experiment_of(name).facts
        facts += [Fact(_short(name).capitalize(), done.used[name].text())] if make is None else make(result)  # type: ignore[union-attr]
    departures = {own.departures.describe() for own in done.asked.values() if hasattr(own, "departures")}
    facts += [Fact("Departures from the paper", listed(sorted(departures)))] if departures else []
    sections = [part for name, one in done.results.items() for part in experiment_of(name).sections(one, files)]
    missing = [f"The {name}: {done.notes[name]}." for name in done.used if name not in done.results]
    sections += [Section(title="Inconclusive on this film", text=missing)] if missing else []
    claims = [
        one for own in done.used for one in experiment_of(own).claims(done.results.get(own), done.notes.get(own, ""))
    ]
    answer = done.answer(claims, files)
    return Page(title=title, answer=answer, lead=lead, claims=claims, sections=sections, facts=facts)


def make_summary(done: FilmResults, page: Page) -> bytes:
    """Return the content of summary.json: the answer, the claims, the settings and all numbers."""
    stated: dict[str, Any] = {"answer": page.answer.text, "next": page.answer.command or None}
    stated |= {"claims": {claim.key: claim.summary() for claim in page.claims}}
    if experiment_of(done.experiment).complete:
        return to_json(experiment_of(done.experiment).summary(done.results[done.experiment]) | stated)
    used = {_short(name): own for name, own in done.used.items()}
    settings: dict[str, Any] = {"settings": used, "notes": list(done.notes.values())}
    if done.paper:
        asked = {_short(name): own for name, own in done.asked.items()}
        settings = {"settings": asked, "used": used, "notes": done.notes}
    found = done.results
    numbers = {_short(own): experiment_of(own).summary(found[own]) if own in found else None for own in done.used}
    about = {"psmt": psmt.__version__, "versions": versions(), "command": done.command, "film": done.film}
    return to_json(about | settings | stated | numbers)


def _short(name: str) -> str:
    """Return the last part of a dotted name: an experiment without its package."""
    return name.rpartition(".")[2]


def film_facts(film: FilmRecord) -> list[Fact]:
    """Return facts about the film for the report: name, checksum, and the patch or the features."""
    length = "" if film.n_frames is None else f", {film.n_frames:,} frames"
    facts = [Fact(film.kind.capitalize(), f"{film.name}{length}")]
    facts += [] if film.checksum is None else [Fact("Checksum", f"sha256 {film.checksum}")]
    if film.patch_size is not None:
        where = "the centre" if film.position is None else f"row {film.position[0]}, column {film.position[1]}"
        patch, frame = (f"{side} × {side}" for side in (film.patch_size, film.frame_size))
        facts.append(Fact("Patch", f"{patch} of {frame} pixels, {where}, standardised"))
    if film.features is not None:
        shown = ", ".join(film.features[:12]) + (", .." if len(film.features) > 12 else "")
        how = "each standardised: by its past if something is predicted, else by the whole series"
        facts.append(Fact("Features", f"{len(film.features):,} ({shown}), {how}"))
    return facts


def versions() -> dict[str, str]:
    """Return the versions of Python and of `PACKAGES`, by name."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def to_json(content: Any) -> bytes:
    """Return `content` as a JSON file in UTF-8, converted by `_plain`."""
    text = json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    return text.encode(errors="backslashreplace") + b"\n"


def _plain(value: Any) -> Any:
    """Return a value as JSON types: dataclasses as dictionaries, NaN as None, and ``value.summary()`` if it exists."""
    if hasattr(value, "summary"):
        return _plain(value.summary())
    if is_dataclass(value) or hasattr(value, "_asdict"):
        names = getattr(value, "_fields", None) or [own.name for own in fields(value)]
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value
