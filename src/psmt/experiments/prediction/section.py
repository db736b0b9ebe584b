"""Sections on prediction: a figure and a table for each phase, the rollouts, and all starts with their nulls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psmt.evaluation import METHODS, mse
from psmt.evaluation.null_models import NULLS
from psmt.experiments.phases import told_motion
from psmt.experiments.prediction.claims import comparisons, told
from psmt.experiments.prediction.effects import MARGIN, Comparison, mean_log_error
from psmt.experiments.prediction.phase import Mode, PhaseResult, Summary, summarise
from psmt.experiments.prediction.run import PredictionResult
from psmt.report import TIE, Cell, Fact, Picture, Section, Table
from psmt.report.numbers import error, ratio, signed

COLUMNS = ("method", "log MSE vs code", "MSE vs code", "vs code ÷ copying", "MSE vs frame", "vs frame ÷ copying")
"""Heads of the table of methods."""

KEY = (1, 5, 3, 4)
"""Log MSE is the paper's own measure; what is held against copying comes next."""

_FILMS = {"film": "the film", "shuffled": "frames shuffled", "noise": "noise"}
"""Heads of the table of films."""


def prediction_sections(result: PredictionResult, pictures: Sequence[bytes], effects: bytes) -> list[Section]:
    """Sections for the phases, with one PNG file each, for the rollouts, and for all starts, with a PNG file."""
    phases = result.phases
    horizon = result.settings.horizon
    motion = told_motion(result.motion, [found.phase for found in phases], horizon=horizon)
    sections = [
        Section(
            title=f"Prediction, phase “{found.phase.name}”",
            text=[
                f"Predicted are {len(found.frames)} frames after frame {found.phase.start:,}, each one step ahead. "
                f"All that was learned before comes from earlier frames. {motion}",
                f"Layer 1 alone has an MSE of {error(float(np.mean(mse(found.estimates, found.frames))))} vs frame: "
                "what the code of the true frame does not show. Every method that predicts codes carries about that "
                "much.",
            ],
            pictures=[
                Picture(
                    picture,
                    alt=f"Log MSE of all methods over {len(found.frames)} steps, and patches they predicted, "
                    f"in phase {found.phase.name}",
                )
            ],
            tables=[methods_table(found, "scores", "One-step predictions, means over steps")],
        )
        for found, picture in zip(phases, pictures, strict=True)
    ]
    sections.append(
        Section(
            title="Left to itself",
            text=["A rollout receives one frame and predicts all that follow from its own predictions."],
            tables=[methods_table(found, "rollouts", f"Rollouts, phase “{found.phase.name}”") for found in phases],
        )
    )
    return [*sections, starts_section(result, effects)]


def starts_section(result: PredictionResult, picture: bytes) -> Section:
    """Section on all starts and the nulls, with the figure of the effects as a PNG file."""
    n_null = max((len(found) for found in result.nulls.values()), default=0)
    return Section(
        title="Over many starts, and without the order in time",
        text=[
            f"Two stretches decide nothing: the claims are judged over {len(result.starts)} starts, no two with a "
            "predicted frame in common. At each, all is learned anew from earlier frames, and methods are compared on "
            f"the same frames. Differences of log MSE within {MARGIN:g} are ties.",
            f"Order in time is what a prediction lives on. So the same was done at {n_null} starts of two nulls: the "
            "film with its frames shuffled, and noise with its spatial spectrum. Nothing can be foretold there, and "
            "the mean is best; what a method wins there it owes to something else, and that much does not count.",
        ],
        pictures=[
            Picture(picture, alt="Differences of log MSE on the film and on its nulls, with intervals, and each start")
        ],
        tables=[effects_table(result), starts_table(result)],
    )


def effects_table(result: PredictionResult) -> Table:
    """What the claims rest on: a line per comparison."""
    columns = ("difference of log MSE", "on the film", "÷ its error", "starts won", "frames shuffled", "noise", "")

    def row(part: Comparison) -> list[Cell]:
        nulls = part.null_effects
        return [
            Cell(part.name),
            Cell(told(part.effect, unit="")),
            Cell(ratio(float(np.exp(part.effect.mean))), "loses" if part.on_film == "does not hold" else ""),
            Cell(f"{part.wins} of {len(part.differences)}"),
            *(Cell(told(nulls[null], unit="") if null in nulls else "–") for null in NULLS),
            Cell(part.verdict),
        ]

    rows = [row(part) for parts in comparisons(result).values() for part in parts]
    caption = "Paired differences over all starts, 95% intervals in brackets; below 0 the first is better"
    return Table(caption, columns, rows)


def starts_table(result: PredictionResult) -> Table:
    """Mean log MSE vs code of each method over all starts, on the film and on its nulls; the best of each is marked."""
    films = {"film": result.starts, **result.nulls}
    means = {
        film: {method: float(np.mean([mean_log_error(r, method, "code") for r in found])) for method in METHODS}
        for film, found in films.items()
        if found
    }
    ordered = sorted(METHODS, key=means["film"].__getitem__)
    return Table(
        "Mean log MSE vs code over all starts, on the film and on its nulls",
        ("method", *(_FILMS[film] for film in means)),
        [
            [
                Cell(METHODS[method]),
                *(
                    Cell(signed(values[method]), "best" if values[method] == min(values.values()) else "")
                    for values in means.values()
                ),
            ]
            for method in ordered
        ],
    )


def prediction_facts(result: PredictionResult) -> list[Fact]:
    """Sizes and prices, with those that were chosen in each phase."""
    settings = result.settings
    chosen = "; ".join(f"{r.phase.name}: f = {r.n_components}, λ = {r.lam:g}" for r in result.phases)
    return [
        Fact(
            "Prediction",
            f"M = {settings.n_atoms:,}, H = {settings.window:,}, K = {settings.horizon}, "
            f"α = {settings.alpha:g}, f {settings.n_components}, λ {settings.lam} ({chosen}); "
            f"{len(result.starts)} starts, {settings.n_null} on each null",
        )
    ]


def phase_table(result: PhaseResult, motion: float) -> Table:
    """One-step predictions of a phase, under a caption that says where it is and how much moves."""
    start, horizon = result.phase.start, len(result.frames)
    caption = (
        f"{result.phase.name}: frames {start + 1} to {start + horizon}, f = {result.n_components}, "
        f"lam = {result.lam:g}, motion {motion:.3g} of the contrast per frame"
    )
    return methods_table(result, "scores", caption)


def methods_table(result: PhaseResult, mode: Mode, caption: str) -> Table:
    """Table of all methods in one phase."""
    summaries = summarise(result.rows(mode))
    return Table(caption, COLUMNS, [methods_row(summary, summaries) for summary in summaries], key=KEY)


def methods_row(summary: Summary, summaries: Sequence[Summary]) -> list[Cell]:
    """Cells of a method, the best of each column and the lost comparisons with copying marked."""

    def best(name: str, text: str) -> Cell:
        smallest = min(getattr(other, name) for other in summaries)
        return Cell(text, "best" if getattr(summary, name) == smallest else "")

    def against(value: float, reference: str) -> Cell:
        if summary.method == reference:
            return Cell("1")
        return Cell(ratio(value), "loses" if value > 1 + TIE else "")

    return [
        Cell(METHODS[summary.method]),
        best("log_mse_vs_code", signed(summary.log_mse_vs_code)),
        best("mse_vs_code", error(summary.mse_vs_code)),
        against(summary.vs_copy_code, "copy_code"),
        best("mse_vs_frame", error(summary.mse_vs_frame)),
        against(summary.vs_copy, "copy"),
    ]
