"""Declaration and report of the study: a table per kind of change, the figure, and the settings."""

from __future__ import annotations

from collections.abc import Callable

from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import TIE, Column, Fact, Page, Picture, Section, Table, to_csv
from psmt.report.numbers import error, percent
from studies.changes.claims import changes_claims
from studies.changes.figure import changes_figure
from studies.changes.result import METHODS, RECOVERED, STEADY, ChangeRow, ChangesResult, MethodSummary
from studies.changes.run import changes
from studies.changes.settings import CHANGES, KINDS, ChangesSettings


def changes_page(result: ChangesResult, picture: bytes) -> Page:
    """Return the page of the report. `picture` is the figure as a PNG file."""
    settings = result.settings
    best = {kind: METHODS[result.summaries(kind)[0].method] for kind in CHANGES}
    return Page(
        title="Sharp changes",
        lead="Method of least error after the change: "
        + "; ".join(f"{kind}: {method}" for kind, method in best.items())
        + f". Medians over {len(result.places)} places.",
        claims=changes_claims(result),
        sections=[
            Section(
                title="Errors around the change, and time to recover",
                text=[
                    f"A change is put into the film at {len(result.places)} places: a flash (one frame is brighter by "
                    f"{settings.flash:g} standard deviations), a cut (the film continues at a later frame, drawn at "
                    f"random), or a jump ({settings.jump} frames are missing). Every method has learned only from "
                    f"frames that are more than {settings.before} frames before the change.",
                    "The frame of the change itself is not counted, because it cannot be predicted. An error has "
                    f"recovered when its mean over {STEADY} frames is at most {RECOVERED:g} times the mean before the "
                    "change; a method with a large error before the change therefore recovers easily. The places "
                    "differ in what the film shows, so the tables give medians, with intervals from order statistics.",
                ],
                pictures=[Picture(picture, alt="Median error by frames since the change, and recovery times")],
                tables=changes_tables(result),
            )
        ],
        facts=[
            Fact(
                "Model",
                f"M = {settings.n_atoms:,}, H = {settings.window:,}, f = {settings.n_components}, "
                f"α = {settings.alpha:g}, λ = {settings.lam}, seed {settings.seed}",
            ),
            Fact("Departures from the paper", settings.departures.describe()),
            Fact("Places", ", ".join(f"{place:,}" for place in result.places)),
        ],
    )


def changes_tables(result: ChangesResult) -> list[Table]:
    """Return a table for each kind of change and one for the unchanged film. The method of least error comes first."""
    return [
        _table(
            f"{kind.capitalize()}: {text}; {percent(result.detected(kind))} taken for a cut",
            result.summaries(kind),
            result.settings.horizon,
        )
        for kind, text in KINDS.items()
    ]


def _table(caption: str, summaries: list[MethodSummary], horizon: int) -> Table:
    """Return a table with one row per summary. Methods with a larger error than copying are marked as losing."""
    (copying,) = (one.after.median for one in summaries if one.method == "copy")

    def frames(value: float) -> str:
        return f"≥ {horizon}" if value >= horizon else f"{value:g}"

    def interval(what: str, write: Callable[[float], str]) -> Column:
        def text(summary: MethodSummary) -> str:
            _, low, high = getattr(summary, what)
            return "n/a" if low != low else f"{write(low)} to {write(high)}"

        return Column("95% interval", text)

    columns = [
        Column("method", lambda one: METHODS[one.method]),
        Column("MSE before", "level.median", error),
        Column("MSE after", "after.median", error, min, loses=lambda one: one.after.median > (1 + TIE) * copying),
        interval("after", error),
        Column("frames to recover", "recovery.median", frames),
        interval("recovery", frames),
        Column("not recovered", "lost", percent),
    ]
    return Table.of(caption, summaries, columns)


EXPERIMENT = Experiment[ChangesSettings, ChangesResult](
    run=lambda values, settings, run, _: changes(values, settings, run),
    files={
        "changes.csv": lambda result: to_csv(ChangeRow._fields, result.rows()),
        "changes.png": lambda result: png(changes_figure(result)),
    },
    shown=lambda result: [*changes_tables(result), *changes_claims(result)],
    page=lambda result, files: changes_page(result, files["changes.png"]),
    summary=ChangesResult.summary,
)
