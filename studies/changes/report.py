"""The parts of the changes, put together."""

from __future__ import annotations

from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import to_csv
from studies.changes.claims import changes_claims
from studies.changes.figure import changes_figure
from studies.changes.result import ChangesResult, Row
from studies.changes.run import changes
from studies.changes.section import changes_page, changes_tables
from studies.changes.settings import ChangesSettings

EXPERIMENT = Experiment[ChangesSettings, ChangesResult](
    run=lambda values, settings, run, _: changes(values, settings, run),
    files={
        "changes.csv": lambda result: to_csv(Row._fields, result.rows()),
        "changes.png": lambda result: png(changes_figure(result)),
    },
    shown=lambda result: [*changes_tables(result), *changes_claims(result)],
    page=lambda result, files: changes_page(result, files["changes.png"]),
    summary=ChangesResult.summary,
)
