"""The report on one film: its page and its summary, for one experiment or all of the paper."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw

import psmt
from psmt.data import FrameSource
from psmt.data.patches import PatchCutter
from psmt.data.speed_and_noise import Regime
from psmt.experiments import command_of, experiment_of
from psmt.experiments.expectation import expectation, place_figure, shipped_map
from psmt.figures import png
from psmt.figures.style import SETTLED
from psmt.report import Claim, Fact, Page, Picture, Section
from psmt.report.numbers import listed, seconds

if TYPE_CHECKING:
    from psmt.experiments.options.declaration import Settings

INDEX = 100
"""Which frame is shown, or the last of a shorter film: the first ones are often black."""

_SIDE = 480
_MARK, _EDGE = (230, 159, 0), (0, 0, 0)

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "av", "matplotlib")
"""Packages whose versions a result may depend on."""


@dataclass(frozen=True, kw_only=True)
class FilmRecord:
    """The film or series that was used."""

    name: str
    checksum: str | None
    """sha256, 64 hex digits; None for a camera or a stream, which cannot be read again."""
    n_frames: int | None
    """None if it is known only at the end."""
    patch_size: int | None = None
    """None for a series and for whole frames."""
    frame_size: int | None = None
    position: tuple[int, int] | None = None
    features: tuple[str, ...] | None = None
    """Names of a series' features, or numbers if it has none; None for a film."""
    regime: Regime | None = None
    """Speed and noise, if they can be measured."""

    @property
    def kind(self) -> str:
        """Film or series."""
        return "film" if self.features is None else "series"

    @property
    def picture_shape(self) -> tuple[int, int] | None:
        """Height and width of the picture whose pixels are the features; None if they are not pixels."""
        return None if self.patch_size is None else (self.patch_size, self.patch_size)

    @property
    def unit(self) -> str:
        """Unit whose mean squared errors are reported."""
        return "standardised patches" if self.features is None else "standardised features"


def marked_frame(source: FrameSource, cutter: PatchCutter, film: FilmRecord) -> Picture:
    """A frame of a film that can be read again, with a square around the patch that this cutter cuts."""
    *_, (index, frame) = enumerate(source.head(INDEX + 1))
    reduced, side = cutter.reduce(frame), cutter.patch_size
    caption = f"Frame {index} of {film.name}. The report is about the patch in the square, {side} × {side} pixels"
    if film.regime is not None:
        caption += f": it moves by {film.regime.speed:.2g} pixels per frame, with noise of {film.regime.noise:.1%}"
    levels = np.asarray(np.clip(255 * reduced, 0, 255).round(), dtype=np.uint8)
    factor = max(1, round(_SIDE / len(levels)))
    size = (factor * len(levels), factor * len(levels))
    picture = Image.fromarray(levels).resize(size, Image.Resampling.BICUBIC).convert("RGB")
    draw = ImageDraw.Draw(picture)
    top, left = (factor * start for start in cutter.corner(len(reduced)))
    bottom, right = top + factor * side - 1, left + factor * side - 1
    # A dark line around the bright one is visible on any background.
    for colour, grow, width in ((_EDGE, 5, 5), (_MARK, 4, 3)):
        draw.rectangle((left - grow, top - grow, right + grow, bottom + grow), outline=colour, width=width)
    file = BytesIO()
    # Maximum coverage keeps the colour of the square, which is rare.
    reduced_colours = picture.quantize(96, Image.Quantize.MAXCOVERAGE, kmeans=SETTLED, dither=Image.Dither.NONE)
    reduced_colours.save(file, format="png", optimize=True)
    return Picture(file.getvalue(), alt=f"A frame of {film.name} with a square around the patch", caption=caption + ".")


@dataclass(frozen=True, kw_only=True)
class FilmResults:
    """What a command found on one film."""

    command: str
    film: FilmRecord
    asked: Mapping[str, Settings]
    """By experiment."""
    used: Mapping[str, Settings | None]
    """As they fit into the film, with those of experiments whose results are needed; None if no size fits."""
    notes: Mapping[str, str]
    """Why settings are not as asked, by experiment; nothing for one that is."""
    results: Mapping[str, Any]
    """By experiment, of those that fit."""
    paper: bool = False
    """Whether these are all experiments of the paper."""

    @property
    def experiment(self) -> str:
        """The experiment that was asked for; of several, the last."""
        return list(self.asked)[-1]

    def claims(self) -> list[Claim]:
        """The claims of all experiments, in order."""
        return [
            claim
            for name in self.used
            for claim in experiment_of(name).claims(self.results.get(name), self.notes.get(name, ""))
        ]


def make_page(done: FilmResults, files: Mapping[str, Any], still: Picture | None = None) -> Page:
    """The report: the page of the experiment, or one made of its claims and sections, with a frame of the film."""
    film, own_report = done.film, experiment_of(done.experiment)
    custom = None if done.paper else own_report.page
    page = _common_page(done, files) if custom is None else custom(done.results[done.experiment], files)
    if own_report.complete:
        return page
    return replace(
        page,
        still=still or page.still,
        sections=[*expected_section(film), *page.sections],
        facts=[*film_facts(film), *page.facts, *_notes_and_versions(done)],
    )


def _common_page(done: FilmResults, files: Mapping[str, Any]) -> Page:
    film = done.film
    length = "" if film.n_frames is None else f"{film.n_frames:,} frames"
    errors = f"mean squared errors of {film.unit}: lower is better."
    if done.paper:
        title = f"PSMT on the {film.kind} “{film.name}”"
        lead = (
            f"The Predictive Sparse Manifold Transform (Xie, Li and Calhoun, 2023) on {length}: the paper's claims, "
            f"what this {film.kind} says about each, and the figures. Errors are {errors} Every prediction is compared "
            "with copying and the mean."
        )
    else:
        title = f"psmt {done.command} on “{film.name}”"
        sentence = command_of(done.experiment).help.partition("\n")[0]
        lead = f"{sentence} This {film.kind}{length and ', '}{length}; errors are {errors}"
    facts: list[Fact] = []
    for name, result in done.results.items():
        make = experiment_of(name).facts
        facts += [Fact(_short(name).capitalize(), done.used[name].text())] if make is None else make(result)  # type: ignore[union-attr]
    departures = {own.departures.told() for own in done.asked.values() if hasattr(own, "departures")}
    seeds = {own.seed for own in done.asked.values() if hasattr(own, "seed")}
    facts += [Fact("Departures from the paper", listed(sorted(departures)))] if departures else []
    facts += [Fact("Seed", listed(sorted(seeds)))] if seeds else []
    sections = [part for name, one in done.results.items() for part in experiment_of(name).sections(one, files)]
    missing = [f"The {name}: {done.notes[name]}." for name in done.used if name not in done.results]
    sections += [Section(title="Inconclusive on this film", text=missing)] if missing else []
    return Page(title=title, lead=lead, claims=done.claims(), sections=sections, facts=facts)


def _notes_and_versions(done: FilmResults) -> list[Fact]:
    facts = [Fact(f"Not as asked: {name}", note) for name, note in done.notes.items()]
    told = ", ".join([f"psmt {psmt.__version__}", *(f"{name} {number}" for name, number in versions().items())])
    return [*facts, Fact("Versions", told)]


def durations_fact(durations: Mapping[str, float]) -> Fact:
    """Seconds that each stage took."""
    parts = ", ".join(f"{stage} {seconds(value)}" for stage, value in durations.items())
    return Fact("Durations", f"{seconds(sum(durations.values()))} in all: {parts}")


def make_summary(done: FilmResults, claims: Sequence[Claim]) -> bytes:
    """summary.json: the claims with their figures, and all numbers. No durations: they differ from run to run."""
    stated = {"claims": {claim.key: claim.summary() for claim in claims}}
    if experiment_of(done.experiment).complete:
        return to_json(experiment_of(done.experiment).summary(done.results[done.experiment]) | stated)
    used = {_short(name): None if own is None else asdict(own) for name, own in done.used.items()}
    settings: dict[str, Any] = {"settings": used, "notes": list(done.notes.values())}
    if done.paper:
        asked = {_short(name): asdict(own) for name, own in done.asked.items()}
        settings = {"settings": asked, "used": used, "notes": done.notes}
    numbers = {
        _short(name): experiment_of(name).summary(done.results[name]) if name in done.results else None
        for name in done.used
    }
    return to_json(
        {"psmt": psmt.__version__, "versions": versions(), "command": done.command, "film": asdict(done.film)}
        | settings
        | stated
        | numbers
    )


def _short(name: str) -> str:
    """Name of an experiment without its package."""
    return name.rpartition(".")[2]


def film_facts(film: FilmRecord) -> list[Fact]:
    """The film, its checksum, and the part that was used."""
    length = "" if film.n_frames is None else f", {film.n_frames:,} frames"
    facts = [Fact(film.kind.capitalize(), f"{film.name}{length}")]
    if film.checksum is not None:
        facts.append(Fact("Checksum", f"sha256 {film.checksum}"))
    if film.patch_size is not None:
        where = "the centre" if film.position is None else f"row {film.position[0]}, column {film.position[1]}"
        patch, frame = (f"{side} × {side}" for side in (film.patch_size, film.frame_size))
        facts.append(Fact("Patch", f"{patch} of {frame} pixels, {where}, standardised"))
    if film.features is not None:
        shown = ", ".join(film.features[:12]) + (", .." if len(film.features) > 12 else "")
        facts.append(
            Fact(
                "Features",
                f"{len(film.features):,} ({shown}), each standardised: by its past if something is predicted, else "
                "by the whole series",
            )
        )
    return facts


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result may depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def expected_section(film: FilmRecord) -> Sequence[Section]:
    """Where the film lies on the map of regimes; empty if speed and noise were not measured."""
    if film.regime is None:
        return []
    return [
        Section(
            title="What to expect of this film",
            text=[
                expectation(film.regime),
                "Speed and noise were measured on this film's patches. The map comes from films of known speed and "
                "noise (python -m studies.regimes), with small dictionaries: expect its directions, not its values.",
            ],
            pictures=[
                Picture(
                    png(place_figure(shipped_map(), film.regime)),
                    alt="Maps of speed and noise: where PSMT's straight line beats copying, and this film's place",
                )
            ],
        )
    ]


def to_json(content: Any) -> bytes:
    """Plain values and NumPy arrays as a JSON file in UTF-8."""
    text = json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    return text.encode(errors="backslashreplace") + b"\n"


def _plain(value: Any) -> Any:
    """The value for JSON, which has neither NaN nor NumPy."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value
