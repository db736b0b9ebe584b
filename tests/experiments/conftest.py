"""Made-up results: a report needs no model."""

from dataclasses import replace

import numpy as np
import pytest

from psmt.evaluation import METHODS, Score
from psmt.experiments.prediction.phase import PhaseResult
from psmt.experiments.prediction.run import PredictionResult
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.experiments.sweep.run import SweepResult
from psmt.experiments.sweep.settings import SweepSettings


@pytest.fixture
def with_errors():
    """The result of a phase with constant errors for some methods, vs code and vs frame."""

    def change(result: PhaseResult, **errors: float) -> PhaseResult:
        scores = dict(result.scores)
        for method, error in errors.items():
            constant = np.full(len(result.frames), error)
            scores[method] = Score(scores[method].predicted, constant, constant)
        return replace(result, scores=scores)

    return change


@pytest.fixture
def make_prediction(make_result, with_errors):
    """A prediction whose methods have the given errors, one for all starts or one per start, on the film and nulls.

    What is not given has the error 1; nulls have it everywhere, unless `nulls` gives them others.
    """

    def make(nulls: dict | None = None, *, n_starts: int = 8, n_null: int = 6, **errors) -> PredictionResult:
        def results(count: int, given: dict) -> list[PhaseResult]:
            full = {method: np.broadcast_to(given.get(method, 1.0), count) for method in METHODS}
            names = ["calm", "lively", *(f"start-{k}" for k in range(2, count))]
            made = [make_result(names[k], start=1000 + 100 * k, horizon=4, side=2) for k in range(count)]
            return [with_errors(one, **{m: float(v[k]) for m, v in full.items()}) for k, one in enumerate(made)]

        starts = results(n_starts, errors)
        return PredictionResult(
            settings=PredictionSettings(),
            phases=starts[:2],
            starts=starts,
            nulls={name: results(n_null, nulls or {}) for name in ("shuffled", "noise")},
        )

    return make


@pytest.fixture
def make_sweep():
    """A sweep in which each (M, H) has one error for all frames, or those given, at λ = 0.1; and others at other λ."""

    def make(
        errors: dict, *, n_atoms: tuple[int, ...], n_frames: int = 10_000, others: dict[float, dict] | None = None
    ) -> SweepResult:
        prices = {0.1: errors} | (others or {})
        settings = SweepSettings(n_atoms=n_atoms, lam=tuple(prices))
        filled = {
            (lam, size, window): np.broadcast_to(value, (len(settings.segments(window, n_frames)), window)).astype(
                float
            )
            for lam, own in prices.items()
            for (size, window), value in own.items()
        }
        return SweepResult(settings=settings, n_frames=n_frames, errors=filled)

    return make
