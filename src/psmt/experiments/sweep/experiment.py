"""The parts of the sweep, put together."""

from __future__ import annotations

from psmt.experiments.contract import Chapter, Experiment
from psmt.experiments.sweep.claims import sweep_claims
from psmt.experiments.sweep.figure import sweep_figure
from psmt.experiments.sweep.result import Row, SweepResult
from psmt.experiments.sweep.run import sweep
from psmt.experiments.sweep.section import sweep_facts, sweep_section, table_1
from psmt.experiments.sweep.settings import SweepSettings
from psmt.figures import png
from psmt.report import to_csv

EXPERIMENT = Experiment[SweepSettings, SweepResult](
    run=lambda values, settings, run, _: sweep(values, settings, run),
    check=SweepSettings.check,
    files={
        "sweep.csv": lambda result: to_csv(Row._fields, result.rows()),
        "sweep.png": lambda result: png(sweep_figure(result)),
    },
    shown=lambda result: [table_1(result)],
    chapter=Chapter(
        claims=sweep_claims,
        sections=lambda result, files: [sweep_section(result, files["sweep.png"])],
        facts=sweep_facts,
        summary=lambda result: [row._asdict() for row in result.table()],
    ),
)
