"""The parts of the regimes, put together."""

from __future__ import annotations

from psmt.experiments.contract import Experiment
from psmt.experiments.regime_figure import methods_figure
from psmt.experiments.regime_map import FILE
from psmt.experiments.regimes.run import RegimesResult, Row, regimes
from psmt.experiments.regimes.section import regime_tables, regimes_page
from psmt.experiments.regimes.settings import RegimesSettings
from psmt.figures import png
from psmt.report import to_csv

EXPERIMENT = Experiment[RegimesSettings, RegimesResult](
    run=lambda film, settings, run, _: regimes(film, settings, run),
    check=lambda _settings, _n_frames: None,
    files={
        "regimes.csv": lambda result: to_csv(Row._fields, result.rows()),
        "regimes.png": lambda result: png(methods_figure(result.map())),
        FILE: lambda result: result.map().to_json(),
    },
    shown=regime_tables,
    page=lambda result, files: regimes_page(result, files["regimes.png"]),
    summary=RegimesResult.summary,
)
