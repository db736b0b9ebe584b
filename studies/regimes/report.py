"""Declaration and report of the study: the map as a figure and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import Column, Fact, Page, Picture, Section, Table, Verdict, to_csv
from psmt.report.numbers import listed, ratio
from studies.regimes.figure import methods_figure
from studies.regimes.map import COPIES, LABELS, Place, Ratio, marks_of
from studies.regimes.run import RegimeRow, RegimesResult, regimes
from studies.regimes.settings import RegimesSettings


def regimes_page(result: RegimesResult, picture: bytes) -> Page:
    """Return the page of the report. `picture` is the map as a PNG file."""
    settings = result.settings
    return Page(
        title="When does PSMT win?",
        lead=(
            "This study compares every extrapolation and every baseline in films of known speed and noise: all methods "
            "with copying, and the rules of PSMT with the best method without an embedding. A ratio below 1 is better."
        ),
        claims=(),
        sections=[
            Section(
                title="By speed and noise",
                text=[
                    f"There are {settings.n_starts} films at each speed and noise, with one start in each. All methods "
                    f"learn from the {settings.past:,} frames before the start and predict the {settings.horizon} "
                    "frames after it, each one step ahead. A method wins or loses if the 95% interval of the ratio of "
                    "mean MSEs lies on one side of 1, by more than 5%; otherwise it is a tie.",
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
            Fact("Departures from the paper", settings.departures.describe()),
        ],
    )


def regime_tables(result: RegimesResult) -> list[Table]:
    """Two tables each, vs code and vs frame: all methods against copying, and PSMT against the best simple method."""
    known, n_films = result.map(), result.settings.n_starts
    tables = []
    for against, copying in COPIES.items():
        what = "code" if against == "code" else "patch"
        caption = "MSE vs {}, divided by that of {}; means over {} films"
        ratios = {name: cells for name, cells in known.ratios[against].items() if name != copying}
        tables += [
            _table(ratios, caption.format(against, f"copying the last {what}", n_films)),
            _table(
                known.to_simple[against],
                caption.format(against, "the best method without an embedding in each cell", n_films),
            ),
        ]
    return tables


def _table(ratios: Mapping[str, Mapping[Place, Ratio]], caption: str) -> Table:
    """A row per method: ratios at the corners of the map, and the number of wins, ties and losses."""
    speeds, noises = ((marks[0], marks[-1]) for marks in marks_of(next(iter(ratios.values()))))

    def corner(cell: Place) -> Column:
        return Column(
            f"{cell[0]:g} px, noise {cell[1]:g}",
            lambda method: ratios[method][cell].mean,
            ratio,
            loses=lambda method: ratios[method][cell].verdict == "no",
        )

    def count(name: str, verdict: Verdict) -> Column:
        return Column(name, lambda method: [own.verdict for own in ratios[method].values()].count(verdict))

    return Table.of(
        caption,
        ratios,
        [
            Column("method", LABELS.__getitem__),
            *(corner(cell) for cell in dict.fromkeys(product(speeds, noises))),
            count("wins", "yes"),
            count("ties", "inconclusive"),
            count("losses", "no"),
        ],
    )


EXPERIMENT = Experiment[RegimesSettings, RegimesResult](
    run=lambda film, settings, run, _: regimes(film, settings, run),
    files={
        "regimes.csv": lambda result: to_csv(RegimeRow._fields, result.rows()),
        "regimes.png": lambda result: png(methods_figure(result.map())),
    },
    shown=regime_tables,
    page=lambda result, files: regimes_page(result, files["regimes.png"]),
    summary=RegimesResult.summary,
)
