"""Sections on prediction: a figure and a table for each phase, and the rollouts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psmt.evaluation import mse
from psmt.experiments.prediction.phase import METHODS, Mode, PhaseResult, Summary, summarise
from psmt.experiments.prediction.run import PredictionResult
from psmt.report import TIE, Cell, Fact, Picture, Section, Table
from psmt.report.numbers import ratio, signed

COLUMNS = ("method", "log MSE vs code", "MSE vs code", "÷ copying", "MSE vs frame", "÷ copying")
"""Heads of the table of methods."""


def prediction_sections(results: Sequence[PhaseResult], pictures: Sequence[bytes]) -> list[Section]:
    """Sections for the phases, with one PNG file each, and one for the rollouts."""
    sections = [
        Section(
            title=f"Prediction, phase “{result.phase.name}”",
            text=[
                f"Predicted are {len(result.frames)} frames after frame {result.phase.start:,}, each one step ahead. "
                "All that was learned before comes from earlier frames.",
                f"Layer 1 alone has an MSE of {np.mean(mse(result.estimates, result.frames)):.3g} vs frame: what "
                "the code of the true frame does not show. Every method that predicts codes carries about that much.",
            ],
            pictures=[
                Picture(
                    picture,
                    alt=f"Log MSE of all methods over {len(result.frames)} steps, and patches they predicted, "
                    f"in phase {result.phase.name}",
                )
            ],
            tables=[methods_table(result, "scores", "One-step predictions, means over steps")],
        )
        for result, picture in zip(results, pictures, strict=True)
    ]
    sections.append(
        Section(
            title="Left to itself",
            text=["A rollout receives one frame and predicts all that follow from its own predictions."],
            tables=[methods_table(result, "rollouts", f"Rollouts, phase “{result.phase.name}”") for result in results],
        )
    )
    return sections


def prediction_facts(result: PredictionResult) -> list[Fact]:
    """Sizes and prices, with those that were chosen in each phase."""
    settings = result.settings
    chosen = "; ".join(f"{r.phase.name}: f = {r.n_components}, λ = {r.lam:g}" for r in result.phases)
    return [
        Fact(
            "Prediction",
            f"M = {settings.n_atoms:,}, H = {settings.window:,}, K = {settings.horizon}, "
            f"α = {settings.alpha:g}, f {settings.n_components}, λ {settings.lam} ({chosen})",
        )
    ]


def phase_table(result: PhaseResult) -> Table:
    """One-step predictions of a phase, under a caption that says where it is."""
    start, horizon = result.phase.start, len(result.frames)
    caption = (
        f"{result.phase.name}: frames {start + 1} to {start + horizon}, f = {result.n_components}, lam = {result.lam:g}"
    )
    return methods_table(result, "scores", caption)


def methods_table(result: PhaseResult, mode: Mode, caption: str) -> Table:
    """Table of all methods in one phase."""
    summaries = summarise(result.rows(mode))
    return Table(caption, COLUMNS, [methods_row(summary, summaries) for summary in summaries])


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
        best("mse_vs_code", f"{summary.mse_vs_code:.3g}"),
        against(summary.vs_copy_code, "copy_code"),
        best("mse_vs_frame", f"{summary.mse_vs_frame:.3g}"),
        against(summary.vs_copy, "copy"),
    ]
