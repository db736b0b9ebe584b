"""The map as tables: each method, cell by cell, against copying."""

from __future__ import annotations

from psmt.experiments.expectation import COPIES, METHODS, Against, Ratio
from psmt.report import Cell, Fact, Page, Picture, Section, Table
from psmt.report.numbers import listed, ratio
from studies.regimes.run import RegimesResult


def regimes_page(result: RegimesResult, picture: bytes) -> Page:
    """Page with the map as a PNG file."""
    settings = result.settings
    return Page(
        title="When does PSMT win?",
        lead=(
            "The paper's straight line needs motion that is slow and clean. Every extrapolation and every baseline is "
            "held against copying here, in films of known speed and noise: below 1 is better than copying."
        ),
        claims=(),
        sections=[
            Section(
                title="By speed and noise",
                text=[
                    f"At each speed and noise there are {settings.n_starts} films, and one start in each. All is "
                    f"learned from the {settings.past:,} frames before it, and the {settings.horizon} after it are "
                    "predicted, each one step ahead. A win or a loss is one whose 95% interval over the films lies on "
                    "one side of 1; all else is a tie.",
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
    """Two tables of all methods, vs code and vs frame: a column for each end of the map, and the films won and lost."""
    known = result.map()
    corners = list(
        dict.fromkeys(
            (speed, noise)
            for speed in (known.speeds[0], known.speeds[-1])
            for noise in (known.noises[0], known.noises[-1])
        )
    )
    tables = []
    for against, copying in COPIES.items():
        rows = []
        for method, by_cell in known.ratios[against].items():
            outcomes = [value.verdict for value in by_cell.values()]
            counts = [outcomes.count("holds"), outcomes.count("inconclusive"), outcomes.count("does not hold")]
            cells = [_cell(by_cell[corner]) for corner in corners]
            name = [Cell(METHODS[method])]
            rows.append(
                [*name, *cells, *(Cell(str(n)) for n in counts)] if method != copying else _reference(method, corners)
            )
        tables.append(
            Table(
                f"MSE vs {against}, divided by that of {_said(against)}; geometric means over "
                f"{result.settings.n_starts} films",
                (
                    "method",
                    *(f"{speed:g} px, noise {noise:g}" for speed, noise in corners),
                    "wins",
                    "ties",
                    "loses",
                ),
                rows,
            )
        )
    return tables


def _cell(value: Ratio) -> Cell:
    return Cell(ratio(value.mean), "loses" if value.verdict == "does not hold" else "")


def _reference(method: str, corners: list[tuple[float, float]]) -> list[Cell]:
    return [Cell(METHODS[method]), *(Cell("1") for _ in corners), Cell("–"), Cell("–"), Cell("–")]


def _said(against: Against) -> str:
    return "copying the last code" if against == "code" else "copying the last patch"
