"""The parts of the study of brains. It is not a chapter of the paper, which only plans it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from matplotlib.figure import Figure

from psmt.experiments.brain.figures import atoms_figure, components_figure, states_figure, trust_figure
from psmt.experiments.brain.report import brain_claims, brain_page, brain_tables
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.run import study_brains
from psmt.experiments.brain.settings import BrainSettings
from psmt.experiments.contract import Experiment
from psmt.experiments.film_report import to_json
from psmt.figures import png
from psmt.report import csv_parts, render


def _drawn(draw: Callable[[BrainResult], Figure]) -> Callable[[BrainResult], bytes]:
    # Drawn once: it is a file, and a part of the page.
    return lru_cache(maxsize=1)(lambda result: png(draw(result)))


FIGURES = {
    "networks.png": _drawn(atoms_figure),
    "components.png": _drawn(components_figure),
    "states.png": _drawn(states_figure),
    "trust.png": _drawn(trust_figure),
}


def _page(result: BrainResult) -> bytes:
    return render(brain_page(result, {name: draw(result) for name, draw in FIGURES.items()}))


def _summary(result: BrainResult) -> bytes:
    claims = {claim.key: claim.summary() for claim in brain_claims(result)}
    return to_json(result.summary() | {"claims": claims})


EXPERIMENT = Experiment[BrainSettings, BrainResult](
    run=lambda study, settings, run, _: study_brains(study, settings, run),
    files={**FIGURES, "summary.json": _summary, "report.html": _page},
    tables={
        "prediction.csv": lambda r: csv_parts(("subject", "method", "horizon", "error"), r.prediction_rows()),
        "states.csv": lambda r: csv_parts(("subject", "volume", "time", "state", "probability"), r.state_rows()),
        "topology.csv": lambda r: csv_parts(
            ("subject", "volume", "time", "component", "atoms", "event", "ends"), r.topology_rows()
        ),
    },
    shown=lambda result: [*brain_tables(result), *brain_claims(result)],
)
