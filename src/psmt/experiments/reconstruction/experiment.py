"""The parts of the reconstruction, put together."""

from __future__ import annotations

from psmt.experiments.contract import Experiment
from psmt.experiments.reconstruction.report import (
    reconstruction_figure,
    reconstruction_lines,
    reconstruction_section,
)
from psmt.experiments.reconstruction.run import ReconstructionResult, reconstruct
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.figures import png
from psmt.report import csv_parts


def _picture(result: ReconstructionResult) -> bytes:
    return png(
        reconstruction_figure(
            result.errors,
            result.phases,
            window=result.search_window or 0,
            horizon=min(result.settings.horizon, len(result.errors) - 1),
            segment=result.segment,
        )
    )


EXPERIMENT = Experiment[ReconstructionSettings, ReconstructionResult](
    run=lambda values, settings, run, _: reconstruct(values, settings, run),
    files={"reconstruction.png": _picture},
    tables={"reconstruction.csv": lambda result: csv_parts(("frame", "mse"), enumerate(map(float, result.errors)))},
    shown=reconstruction_lines,
    sections=lambda result, files: [reconstruction_section(result, files["reconstruction.png"])],
    summary=ReconstructionResult.summary,
)
