"""Made-up results: a report needs no model."""

from dataclasses import replace

import numpy as np
import pytest

from psmt.evaluation import Score
from psmt.experiments.prediction.phase import PhaseResult
from psmt.experiments.sweep.result import SweepResult
from psmt.experiments.sweep.settings import SweepSettings


@pytest.fixture
def with_errors():
    """The result of a phase with constant errors for some methods, vs code and vs frame."""

    def change(result: PhaseResult, **errors: float) -> PhaseResult:
        scores = dict(result.scores)
        for method, error in errors.items():
            constant = np.full(len(result.frames), error)
            scores[method] = Score(scores[method].frames, scores[method].predicted, constant, constant)
        return replace(result, scores=scores)

    return change


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
        alone = {key[1:]: own for key, own in filled.items()}
        return SweepResult(settings=settings, n_frames=n_frames, errors=filled, coding_errors=alone)

    return make
