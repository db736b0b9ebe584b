"""The parts of the readings, put together. No chapter of the paper's report: it takes longer than all others."""

from __future__ import annotations

from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import to_csv
from studies.readings.claims import readings_claims
from studies.readings.figure import readings_figure
from studies.readings.page import readings_page, verdicts_table
from studies.readings.result import ReadingsResult
from studies.readings.run import read_paper
from studies.readings.settings import ReadingsSettings


def _csv(result: ReadingsResult) -> bytes:
    rows = list(result.rows())
    return to_csv(list(rows[0]), [list(row.values()) for row in rows])


EXPERIMENT = Experiment[ReadingsSettings, ReadingsResult](
    run=lambda values, settings, run, _: read_paper(values, settings, run),
    files={
        "readings.csv": _csv,
        "readings.png": lambda result: png(readings_figure(result)),
    },
    shown=lambda result: [verdicts_table(result), *readings_claims(result)],
    page=lambda result, files: readings_page(result, files["readings.png"]),
    summary=lambda result: list(result.rows()),
)
