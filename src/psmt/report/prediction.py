"""Sections on prediction: where the phases come from, a figure and a table for each, and the rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import mse
from psmt.experiments.prediction import METHODS, PhaseResult, Summary, summarise
from psmt.experiments.reconstruction import Stretch
from psmt.report.claims import TIE
from psmt.report.numbers import ratio, signed
from psmt.report.page import Cell, Picture, Section, Table

Array = NDArray[np.float64]

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


def reconstruction_section(errors: Array, n_atoms: int, segment: Stretch, picture: bytes) -> Section:
    """Section on the error (time,) of each frame through the embedding of all, with the figure as a PNG file."""
    return Section(
        title="Reconstruction with all frames",
        text=[
            f"Every frame goes through one embedding of all frames, with {n_atoms:,} atoms, and back (the original "
            f"sparse manifold transform): mean MSE {np.mean(errors):.3g}, median {np.median(errors):.3g}. The segment "
            f"of least mean error is {segment.start:,} to {segment.stop:,} (MSE {segment.mse:.3g}), as 8,448 to 9,984 "
            "is in the paper.",
            "The stretch that comes back best is the calm phase, the one that comes back worst the lively one. This "
            "chooses where to look; no prediction uses it.",
        ],
        pictures=[Picture(picture, alt="Reconstruction MSE of each frame, with the phases marked")],
    )


def methods_table(result: PhaseResult, mode: Literal["scores", "rollouts"], caption: str) -> Table:
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
