"""Results of two phases with made-up predictions: figures need no model."""

import numpy as np
import pytest

from psmt.evaluation import Score, mse
from psmt.experiments.prediction import METHODS, PhaseResult
from psmt.experiments.reconstruction import Phase


@pytest.fixture
def make_result():
    def make(name: str = "calm", *, start: int = 1_000, horizon: int = 30, side: int = 6, seed: int = 0) -> PhaseResult:
        rng = np.random.default_rng(seed)
        frames, estimates = rng.standard_normal((2, horizon, side * side))
        scores = {}
        for i, method in enumerate(METHODS):
            predicted = estimates + 0.1 * (i + 1) * rng.standard_normal(frames.shape)
            vs_code, vs_frame = mse(predicted, estimates), mse(predicted, frames)
            scores[method] = Score(np.arange(1, horizon + 1), predicted, vs_code, vs_frame)
        return PhaseResult(Phase(name, start), 64, 0.3, frames, estimates, scores, scores)

    return make
