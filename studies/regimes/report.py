"""The parts of the regimes, put together."""

from __future__ import annotations

from psmt.experiments.contract import Experiment
from psmt.experiments.expectation import FILE
from psmt.figures import png
from psmt.report import to_csv
from studies.regimes.map import map_to_json, methods_figure
from studies.regimes.run import RegimesResult, Row, regimes
from studies.regimes.section import regime_tables, regimes_page
from studies.regimes.settings import RegimesSettings

EXPERIMENT = Experiment[RegimesSettings, RegimesResult](
    run=lambda film, settings, run, _: regimes(film, settings, run),
    files={
        "regimes.csv": lambda result: to_csv(Row._fields, result.rows()),
        "regimes.png": lambda result: png(methods_figure(result.map())),
        FILE: lambda result: map_to_json(result.map()),
    },
    shown=regime_tables,
    page=lambda result, files: regimes_page(result, files["regimes.png"]),
    summary=RegimesResult.summary,
)
