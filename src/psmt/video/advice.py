"""Prediction with expert advice: which of several predictions of the whole frame to follow, by how they have fared."""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.persistence.schema import Field, faded
from psmt.types import Array


class Advice:
    """Exponentially weighted average of experts (Vovk; Littlestone and Warmuth), with losses that fade.

    The squared error of a mean of predictions is at most the mean of their errors: so the average is never much worse
    than the best expert of the last few frames, whatever the film does, and never waits for a verdict.

    Parameters
    ----------
    shape : tuple of int
        (.., n_experts): how many records are kept, each by itself, and of how many experts.
    memory : float, default 4
        Frames after which old losses have faded to 1/e.
    rate : float, default 12
        How sharply the weight falls with the loss, which is in units of the energy of the change.
    """

    _CAP = 6.0
    """Largest loss of one frame: it is enough to change the order of the experts, and fades within a few frames."""

    def __init__(self, shape: tuple[int, ...], *, memory: float = 4.0, rate: float = 12.0) -> None:
        self.losses: Array = np.zeros(shape)
        self._memory, self._rate = memory, rate

    def weights(self) -> Array:
        """Weights (.., n_experts) of the experts, which sum to 1."""
        weights = np.exp(-self._rate * (self.losses - self.losses.min(axis=-1, keepdims=True)))
        normalised: Array = weights / weights.sum(axis=-1, keepdims=True)
        return normalised

    def learn(self, losses: Array, record: int | EllipsisType = ...) -> None:
        """Take in the squared errors (n_experts,) of one frame, relative to the energy of its change."""
        fading = float(np.exp(-1.0 / self._memory))
        self.losses[record] = fading * self.losses[record] + np.minimum(losses, self._CAP)

    def clear(self) -> None:
        """Start a new record."""
        self.losses = np.zeros_like(self.losses)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the record."""
        return {"losses": self.losses.copy()}

    def schema(self) -> dict[str, Field]:
        """What `get_state` gives."""
        return {"losses": Field(self.losses.shape, low=0.0, high=faded(self._memory, self._CAP))}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from the record that `get_state` gave."""
        self.losses = state["losses"].copy()
