"""The parts of the experiment on locality, put together."""

from __future__ import annotations

from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import to_csv
from studies.locality.claims import locality_claims
from studies.locality.figure import locality_figure
from studies.locality.page import locality_page, locality_tables
from studies.locality.result import LocalityResult, Row
from studies.locality.run import locality
from studies.locality.settings import LocalitySettings

EXPERIMENT = Experiment[LocalitySettings, LocalityResult](
    run=lambda values, settings, run, _: locality(values, settings, run),
    files={
        "locality.csv": lambda result: to_csv(Row._fields, result.rows()),
        "locality.png": lambda result: png(locality_figure(result)),
    },
    shown=lambda result: [*locality_tables(result, intervals=False), *locality_claims(result)],
    page=lambda result, files: locality_page(result, files["locality.png"]),
    summary=lambda result: [row._asdict() for row in result.rows()],
)
