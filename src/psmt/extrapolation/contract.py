"""The contract of extrapolations, and the list of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from psmt.persistence.schema import AttributeState, Field
from psmt.types import Array, Mask

EXTRAPOLATIONS: dict[str, type[Extrapolation]] = {}
"""All extrapolations by name. A subclass of `Extrapolation` with a name adds itself."""


Window: TypeAlias = Callable[[], tuple[Array, Array]]
"""Computes the codes (time, n_atoms) and the embedding of the window."""


class Fold(NamedTuple):
    """A held-out part of the window, [start, stop), and the points (time, n) of an embedding learned before it."""

    start: int
    stop: int
    points: Array


class Extrapolation(AttributeState, ABC):
    """A rule that continues trajectories in the embedding.

    A subclass needs a `name` and `advance`. There are two ways to learn, and a rule may use either:

    - from three successive points at a time (`adaptive`, `observe`), which the embedding had not seen before;
    - from a window of frames and codes (`learn_window`, `receive`). Such a rule may also predict whole frames, and
      choose its own parameters from the past (`n_folds`, `choose`).

    What was learned is saved with the model: name it in `state_arrays`, and declare it in `schema`.
    """

    name: ClassVar[str]
    predicts_change: ClassVar[bool] = False
    """The predicted code is the last code plus the recovered change, so that what the embedding does not show stays."""
    adaptive: ClassVar[bool] = False
    """`observe` is called with what came."""
    keeps_residual: ClassVar[bool] = False
    """The part of the last frame that its code does not explain is added to the predicted frame."""
    n_folds: ClassVar[int] = 0
    """Number of held-out parts of the past that `choose` needs; 0: there is nothing to choose."""
    n_points: int = 0
    """Number of leading directions of the embedding that a rule with folds uses."""
    embedding: Array | None = None
    """The embedding (n_points, n_atoms) that predicted points belong to; None for that of the present window."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            EXTRAPOLATIONS[cls.name] = cls

    @abstractmethod
    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,) after the last two."""

    def observe(self, points: Array, pictures: Array) -> None:
        """Learn from three successive points (3, n_components) and their decoded frames (3, n_features)."""

    def fit(self, trajectory: Array, pictures: Array) -> Self:
        """Learn from an embedded sequence (time, n_components) and its decoded frames (time, n_features)."""
        for t in range(len(trajectory) - 2):
            self.observe(trajectory[t : t + 3], pictures[t : t + 3])
        return self

    def choose(self, frames: Array, begins: Mask, folds: Sequence[Fold], sizes: Sequence[int]) -> None:
        """Set the rule's own parameters to those of least error on folds of the past frames (time, n_features).

        `begins` (time,) marks the first frame of each series; `sizes` are the candidates for `n_points`.
        """

    def learn_window(self, frames: Array, codes: Array, embedding: Array, begins: Mask) -> None:
        """Learn from the window that `fit` ends with: frames (time, n_features) and codes (time, n_atoms)."""

    def continue_series(self, frames: Array, codes: Array, embedding: Array) -> None:
        """Go on with another series of frames (n, n_features); the codes (time, n_atoms) are those of the window."""

    def receive(self, frame: Array, code: Callable[[], Array], window: Window | None, *, begins: bool) -> None:
        """Receive the next frame (n_features,), which may begin a new scene.

        `code` computes its code (n_atoms,). Without a window, what was learned must not change.
        """

    def predict_points(self, horizon: int) -> Array | None:
        """The next points (horizon, n_points) in `embedding`; None where `advance` is called step by step instead."""

    def predict_frames(self, horizon: int) -> Array | None:
        """The next frames (horizon, n_features); None where they are decoded from predicted codes."""

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """Declaration of the state."""
        return {}
