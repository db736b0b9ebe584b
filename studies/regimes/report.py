"""The study as an experiment, and its report: the map as a figure and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from psmt.experiments.contract import Experiment
from psmt.experiments.expectation import COPIES, FILE, METHODS, Against, RegimeMap
from psmt.figures import png
from psmt.report import Cell, Column, Fact, Page, Picture, Section, Table, Verdict, to_csv
from psmt.report.numbers import listed, ratio
from studies.regimes.map import map_to_json, methods_figure
from studies.regimes.run import RegimeRow, RegimesResult, regimes
from studies.regimes.settings import RegimesSettings


def regimes_page(result: RegimesResult, picture: bytes) -> Page:
    """Page with the map as a PNG file."""
    settings = result.settings
    return Page(
        title="When does PSMT win?",
        lead=(
            "The paper's straight line needs motion that is slow and clean. This study compares every extrapolation "
            "and every baseline with copying, in films of known speed and noise. A ratio below 1 is better than "
            "copying."
        ),
        claims=(),
        sections=[
            Section(
                title="By speed and noise",
                text=[
                    f"There are {settings.n_starts} films at each speed and noise, with one start in each. All methods "
                    f"learn from the {settings.past:,} frames before the start and predict the {settings.horizon} "
                    "frames after it, each one step ahead. A method wins or loses if the 95% interval of its ratio "
                    "over the films lies on one side of 1, by more than 5%; otherwise it is a tie.",
                ],
                pictures=[Picture(picture, alt="Maps of speed and noise: each method's error divided by copying's")],
                tables=regime_tables(result),
            )
        ],
        facts=[
            Fact("Speeds", f"{listed([f'{speed:g}' for speed in settings.speeds])} pixels per frame"),
            Fact("Noise", f"{listed([f'{noise:g}' for noise in settings.noises])} of the patch's contrast"),
            Fact("Seeds of the films", listed(result.film_seeds)),
            Fact(
                "Model",
                f"M = {settings.n_atoms:,}, H = {settings.window:,}, f {settings.n_components}, "
                f"α = {settings.alpha:g}, λ {settings.lam}, seed {settings.seed}",
            ),
            Fact("Departures from the paper", settings.departures.told()),
        ],
    )


def regime_tables(result: RegimesResult) -> list[Table]:
    """Two tables of all methods, vs code and vs frame: ratios at the corners of the map, and wins, ties and losses."""
    known = result.map()
    speeds, noises = ((marks[0], marks[-1]) for marks in (known.speeds, known.noises))
    corners = list(dict.fromkeys(product(speeds, noises)))
    return [_table(known, against, corners, result.settings.n_starts) for against in COPIES]


def _table(known: RegimeMap, against: Against, corners: Sequence[tuple[float, float]], n_films: int) -> Table:
    ratios, copying = known.ratios[against], COPIES[against]
    what = "code" if against == "code" else "patch"

    def corner(speed: float, noise: float) -> Column:
        return Column(
            f"{speed:g} px, noise {noise:g}",
            lambda method: Cell("1") if method == copying else ratios[method][speed, noise].mean,
            ratio,
            loses=lambda method: ratios[method][speed, noise].verdict == "does not hold",
        )

    def count(name: str, verdict: Verdict) -> Column:
        def number(method: str) -> int | Cell:
            return Cell("–") if method == copying else [own.verdict for own in ratios[method].values()].count(verdict)

        return Column(name, number)

    return Table.of(
        f"MSE vs {against}, divided by that of copying the last {what}; geometric means over {n_films} films",
        ratios,
        [
            Column("method", METHODS.__getitem__),
            *(corner(speed, noise) for speed, noise in corners),
            count("wins", "holds"),
            count("ties", "inconclusive"),
            count("losses", "does not hold"),
        ],
    )


EXPERIMENT = Experiment[RegimesSettings, RegimesResult](
    run=lambda film, settings, run, _: regimes(film, settings, run),
    files={
        "regimes.csv": lambda result: to_csv(RegimeRow._fields, result.rows()),
        "regimes.png": lambda result: png(methods_figure(result.map())),
        FILE: lambda result: map_to_json(result.map()),
    },
    shown=regime_tables,
    page=lambda result, files: regimes_page(result, files["regimes.png"]),
    summary=RegimesResult.summary,
)
