"""The parts of the prediction, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psmt.experiments.contract import Experiment
from psmt.experiments.prediction.figure import effects_figure, prediction_figure
from psmt.experiments.prediction.phase import Mode, PredictionRow, mean_log_error
from psmt.experiments.prediction.report import phase_table, prediction_claims, prediction_facts, prediction_sections
from psmt.experiments.prediction.run import PredictionResult, predict
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import Section, Table, to_csv
from psmt.types import Array


def _run(values: Array, settings: PredictionSettings, run: Run, earlier: Mapping[str, Any]) -> PredictionResult:
    found = earlier.get("reconstruction")
    return predict(values, settings, run, errors=None if found is None else found.errors)


def _table(result: PredictionResult, mode: Mode) -> bytes:
    """One line per predicted patch."""
    return to_csv(PredictionRow._fields, (row for phase in result.phases for row in phase.rows(mode)))


def _starts(result: PredictionResult) -> bytes:
    """starts.csv: one line per start and method, on the film and on its null models."""
    films = {"film": result.starts, **result.nulls}
    lines = (
        (
            film,
            found.phase.start,
            method,
            mean_log_error(found, method, "code"),
            float(score.vs_code.mean()),
            mean_log_error(found, method, "frame"),
            float(score.vs_frame.mean()),
        )
        for film, results in films.items()
        for found in results
        for method, score in found.scores.items()
    )
    columns = ("film", "start", "method", "log_mse_vs_code", "mse_vs_code", "log_mse_vs_frame", "mse_vs_frame")
    return to_csv(columns, lines)


def _sections(result: PredictionResult, files: Mapping[str, bytes]) -> Sequence[Section]:
    # A picture per phase: two side by side, as in the file, are too small to read on a page.
    pictures = [png(prediction_figure([phase])) for phase in result.phases]
    return prediction_sections(result, pictures, files["starts.png"])


def _tables(result: PredictionResult) -> list[Table]:
    return [phase_table(phase, result.phase_motions[phase.phase.name]) for phase in result.phases]


EXPERIMENT = Experiment[PredictionSettings, PredictionResult](
    run=_run,
    needs=lambda settings: () if settings.starts else ("reconstruction",),
    files={
        "prediction.csv": lambda result: _table(result, "scores"),
        "rollout.csv": lambda result: _table(result, "rollouts"),
        "prediction.png": lambda result: png(prediction_figure(result.phases), dpi=110),
        "starts.csv": _starts,
        "starts.png": lambda result: png(effects_figure(result)),
    },
    shown=lambda result: [*_tables(result), *prediction_claims(result)],
    claims=prediction_claims,
    sections=_sections,
    facts=prediction_facts,
    summary=PredictionResult.summary,
    overview=_tables,
)
