"""The parts of the experiment on locality, put together."""

from __future__ import annotations

from functools import lru_cache

from psmt.experiments.contract import Experiment
from psmt.experiments.locality.claims import locality_claims
from psmt.experiments.locality.figure import locality_figure
from psmt.experiments.locality.page import locality_page, locality_tables
from psmt.experiments.locality.result import LocalityResult, Row
from psmt.experiments.locality.run import locality
from psmt.experiments.locality.settings import LocalitySettings
from psmt.figures import png
from psmt.report import render, to_csv


@lru_cache(maxsize=1)
def _picture(result: LocalityResult) -> bytes:
    """The figure, which is a file and a part of the page."""
    return png(locality_figure(result))


EXPERIMENT = Experiment[LocalitySettings, LocalityResult](
    run=lambda values, settings, run, _: locality(values, settings, run),
    check=LocalitySettings.check,
    files={
        "locality.csv": lambda result: to_csv(Row._fields, result.rows()),
        "locality.png": _picture,
        "report.html": lambda result: render(locality_page(result, _picture(result))),
    },
    shown=lambda result: [*locality_tables(result, intervals=False), *locality_claims(result)],
)
