"""Baselines that share PSMT's layers and take its parameters: those of the paper, and PSMT without its embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from psmt.coding import SparseCoder
from psmt.model.algorithm import PSMT
from psmt.numerics.arrays import array_namespace, drawn_back
from psmt.recovery import activity_limit
from psmt.selection import Choice
from psmt.types import Array, Progress, silent
from psmt.utils.constraints import choice


class CopyCode(PSMT):
    """The next code is the last one: copying in layer 1."""

    uses_embedding = extrapolates = False

    def predict_codes(self, horizon: int) -> Array:
        """The last code, repeated (horizon, n_atoms)."""
        return self.moments_.latest(1)[[0] * horizon]


class MeanCode(PSMT):
    """Predicts that the next code is the mean of all codes in the window."""

    uses_embedding = extrapolates = False

    def predict_codes(self, horizon: int) -> Array:
        """The mean code, repeated (horizon, n_atoms)."""
        return (self.moments_.total / len(self.moments_))[None][[0] * horizon]


class Baseline2(PSMT):
    """Baseline 2 of the paper: the embedding stays that of the training window, codes are updated."""

    static_embedding = True


class Baseline1(PSMT):
    """Baseline 1 of the paper: embedding and codes stay those of the training window: one prediction for all times."""

    static_window, extrapolates = True, False

    def predict_codes(self, horizon: int) -> Array:
        """The one code that it predicts, repeated (horizon, n_atoms): its codes stay."""
        return super().predict_codes(1)[[0] * horizon]


class CodeExtrapolation(PSMT):
    """PSMT without its embedding: the extrapolation continues the codes themselves, which are decoded as PSMT's are.

    'linear' predicts the code ``2 a - a_before``. 'gain' predicts the last code plus one gain times its last step. The
    gain is learned as the common gain of `psmt.extrapolation.Gain`: from the steps of the decoded frames in the window,
    and then from every step that comes. Codes may become negative. Cuts and bounds are treated as in PSMT.
    """

    uses_embedding = False

    def fit(
        self, X: ArrayLike, y: object = None, *, lengths: Sequence[int] | None = None, progress: Progress = silent
    ) -> Self:
        """Learn from the past frames (time, n_features), as PSMT does."""
        choice("linear", "hold", "gain")("extrapolation", self.extrapolation)
        super().fit(X, y, lengths=lengths, progress=progress)
        pictures, begins = self._engine.numpy(self.coder_.decode(self.moments_.codes)), self.moments_.begins
        for t in range(2, len(pictures) if self._extrapolation.adaptive else 0):
            if not begins[t - 1 : t + 1].any():
                self._extrapolation.observe(np.empty((3, 0)), pictures[t - 2 : t + 1])
        return self

    def _look_back(self, *_: object) -> tuple[Choice, SparseCoder | None]:
        """Nothing is chosen: there is no embedding."""
        return Choice(None, 0.0, scores={}), None

    def _points(self, codes: Array) -> Array:
        return codes[:, :0]

    def _own_codes(self, horizon: int) -> Array:
        previous, latest = self.moments_.latest(2)
        reach = activity_limit(self.activity_bound, self._watch.peak_norm)
        current, codes = latest, []
        for _ in range(horizon):
            if self._extrapolation.adaptive:
                pair = map(self._engine.numpy, (previous, current))
                following = self._engine.array(self._extrapolation.advance(*pair))
            else:
                following = self._extrapolation.advance(previous, current)
            length = array_namespace(following).linalg.vector_norm(self.coder_.decode((following - latest)[None]))
            previous, current = current, drawn_back(following, latest, length, reach)
            codes.append(current)
        return self._stacked(codes)
