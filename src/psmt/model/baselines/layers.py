"""Baselines that are variants of PSMT: the paper's two, copied codes, mean codes, and PSMT without its embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from psmt.coding import SparseCoder
from psmt.model.algorithm import PSMT
from psmt.recovery import advanced
from psmt.selection import Choice
from psmt.types import Array, Progress, silent
from psmt.utils.constraints import choice


class CopyCode(PSMT):
    """Predicts that the next code equals the last code, as `CopyLast` does for frames."""

    uses_embedding = extrapolates = False

    def predict_codes(self, horizon: int) -> Array:
        """Return an array (horizon, n_atoms) whose rows are all the last code."""
        return self.moments_.latest(1)[[0] * horizon]


class MeanCode(PSMT):
    """Predicts that the next code is the mean of all codes in the window."""

    uses_embedding = extrapolates = False

    def predict_codes(self, horizon: int) -> Array:
        """Return an array (horizon, n_atoms) whose rows are all the mean code of the window."""
        return (self.moments_.total / len(self.moments_))[None][[0] * horizon]


class Baseline2(PSMT):
    """Baseline 2 of the paper: new codes enter the window, but the embedding stays that of the training window."""

    static_embedding = True


class Baseline1(PSMT):
    """Baseline 1 of the paper: neither codes nor embedding change after training, so all predictions are equal."""

    static_window, extrapolates = True, False

    def predict_codes(self, horizon: int) -> Array:
        """Return an array (horizon, n_atoms) whose rows are all the same predicted code."""
        return super().predict_codes(1)[[0] * horizon]


class CodeExtrapolation(PSMT):
    """PSMT without its embedding: the extrapolation is applied to the codes.

    'linear' predicts ``2 a - b``, where a is the last code and b the code before. 'gain' predicts ``a + gain (a - b)``.
    The gain is the common gain of `psmt.extrapolation.Gain`, learned from the decoded codes of the window and then from
    every new frame. Codes may become negative. Decoding, cuts and bounds are as in PSMT.
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

    def _choose_parameters(self, *_: object) -> tuple[Choice, SparseCoder | None]:
        """Return a `Choice` without candidates, and no coder: without an embedding there is nothing to choose."""
        return Choice(None, 0.0, scores={}), None

    def _points(self, codes: Array) -> Array:
        return codes[:, :0]

    def _rule(self, _horizon: int) -> Callable[[int, Array, Array], Array]:
        return lambda _, *last: advanced(self._extrapolation, self._engine, *last)
