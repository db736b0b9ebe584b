"""The parts of the sweep, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psmt.experiments.contract import Experiment
from psmt.experiments.sweep.figure import sweep_figure
from psmt.experiments.sweep.report import sweep_claims, sweep_section, tables, verdicts_table
from psmt.experiments.sweep.run import SweepResult, SweepRow, sweep
from psmt.experiments.sweep.settings import SweepSettings
from psmt.figures import png
from psmt.report import Section, csv_parts


def _sections(result: SweepResult, _files: Mapping[str, bytes]) -> Sequence[Section]:
    # A picture per λ: one picture of all, as in the file, would be half a metre high.
    return [sweep_section(result, [png(sweep_figure(result, [lam])) for lam in result.settings.lam])]


EXPERIMENT = Experiment[SweepSettings, SweepResult](
    run=lambda values, settings, run, _: sweep(values, settings, run),
    files={"sweep.png": lambda result: png(sweep_figure(result, result.settings.lam))},
    tables={"sweep.csv": lambda result: csv_parts(SweepRow._fields, result.rows())},
    shown=lambda result: [*tables(result), verdicts_table(result)],
    claims=sweep_claims,
    sections=_sections,
    summary=lambda result: [row._asdict() for row in result.table()],
)
