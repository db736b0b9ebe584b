"""What a strategy of step 6 is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from psmt.persistence.schema import Field
from psmt.types import Array


class Extrapolation(ABC):
    """A rule that continues trajectories.

    The model calls `advance` to predict and `observe` with what came, seen through an embedding that did not know it.
    Strategies that learn keep what they learned in `state`, a dict of arrays that is saved with the model.
    """

    name: ClassVar[str]
    predicts_change: ClassVar[bool] = False
    """The prediction is the last code plus the recovered change, so that what the embedding does not show stays."""
    adaptive: ClassVar[bool] = False
    """It wants to `observe` what came."""
    keeps_residual: ClassVar[bool] = False
    """What layer 1 does not hold of the last frame is carried along: the prediction is that frame plus a change."""
    continues_frames: ClassVar[bool] = False
    """It continues frames and points together, as learned from the whole window: `Dynamics`."""

    @abstractmethod
    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,) after the last two."""

    def observe(self, points: Array, pictures: Array) -> None:
        """Learn from three successive points (3, n_components) and the pictures (3, n_features) they stand for."""

    def fit(self, trajectory: Array, pictures: Array) -> Self:
        """Learn from an embedded sequence (time, n_components) and its pictures (time, n_features)."""
        for t in range(len(trajectory) - 2):
            self.observe(trajectory[t : t + 3], pictures[t : t + 3])
        return self

    @property
    def state(self) -> dict[str, Array]:
        """What was learned."""
        return {}

    @state.setter
    def state(self, state: dict[str, Array]) -> None:
        pass

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """What `state` holds."""
        return {}
