"""The page of `psmt changes`: a table per kind of change, the figure, and how it was made."""

from __future__ import annotations

from collections.abc import Callable

from psmt.report import TIE, Cell, Fact, Page, Picture, Section, Table
from psmt.report.numbers import error, percent
from studies.changes.claims import changes_claims
from studies.changes.result import BACK, METHODS, STEADY, ChangesResult, Median, Summary
from studies.changes.settings import KINDS

COLUMNS = ("method", "MSE before", "MSE after", "95% interval", "frames to recover", "95% interval", "not back")


def changes_page(result: ChangesResult, picture: bytes) -> Page:
    """Page with the figure as a PNG file."""
    settings = result.settings
    best = {kind: METHODS[result.summaries(kind)[0].method] for kind in KINDS if kind != "none"}
    return Page(
        title="Sharp changes",
        lead="Least error after the change: "
        + "; ".join(f"{kind}: {method}" for kind, method in best.items())
        + f". Medians over {len(result.places)} places.",
        claims=changes_claims(result),
        sections=[
            Section(
                title="Errors around the change, and time to recover",
                text=[
                    f"At each of {len(result.places)} places a change is put into the film: a flash (one frame is "
                    f"brighter by {settings.flash:g} standard deviations), a cut (the film goes on at a later frame, "
                    f"drawn at random), or a jump ({settings.jump} frames are missing). Every method has learned from "
                    f"what lies more than {settings.before} frames before it.",
                    "The frame that the change comes with is not counted: nobody can foresee it. An error is back when "
                    f"its mean over {STEADY} frames is at most {BACK:g} times the mean before the change; a method "
                    "whose error was large before is back easily. Places differ by what the film shows there, so "
                    "medians are given, with intervals by order statistics.",
                ],
                pictures=[Picture(picture, alt="Median error by frames since the change, and recovery times")],
                tables=changes_tables(result),
            )
        ],
        facts=changes_facts(result),
    )


def changes_tables(result: ChangesResult) -> list[Table]:
    """A table per kind of change, least error first, and one of the film as it is."""
    return [
        Table(
            f"{kind.capitalize()}: {text}; {percent(result.found(kind))} told as a cut",
            COLUMNS,
            _rows(result.summaries(kind), result.settings.horizon),
        )
        for kind, text in KINDS.items()
    ]


def changes_facts(result: ChangesResult) -> list[Fact]:
    """Sizes, prices and places."""
    settings = result.settings
    return [
        Fact(
            "Model",
            f"M = {settings.n_atoms:,}, H = {settings.window:,}, f = {settings.n_components}, "
            f"α = {settings.alpha:g}, λ = {settings.lam}, seed {settings.seed}",
        ),
        Fact("Departures from the paper", settings.departures.told()),
        Fact("Places", ", ".join(f"{place:,}" for place in result.places)),
    ]


def _rows(summaries: list[Summary], horizon: int) -> list[list[Cell]]:
    """A row for each method, least error first; what is worse than copying loses."""
    (copied,) = (one.after.median for one in summaries if one.method == "copy")
    return [_row(one, copied, summaries[0].after.median, horizon) for one in summaries]


def _row(summary: Summary, copied: float, least: float, horizon: int) -> list[Cell]:
    after = Cell(error(summary.after.median), "loses" if summary.after.median > (1 + TIE) * copied else "")
    return [
        Cell(METHODS[summary.method]),
        Cell(error(summary.level.median)),
        after._replace(mark="best") if summary.after.median == least else after,
        Cell(_ends(summary.after, error)),
        Cell(_frames(summary.recovery.median, horizon)),
        Cell(_ends(summary.recovery, lambda value: _frames(value, horizon))),
        Cell(percent(summary.lost)),
    ]


def _ends(median: Median, written: Callable[[float], str]) -> str:
    return "n/a" if median.low != median.low else f"{written(median.low)} to {written(median.high)}"


def _frames(value: float, horizon: int) -> str:
    return f"≥ {horizon}" if value >= horizon else f"{value:g}"
