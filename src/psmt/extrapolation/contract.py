"""The base class of extrapolations, and the register of all extrapolations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from psmt.persistence.schema import AttributeState, Field
from psmt.types import Array, Mask

EXTRAPOLATIONS: dict[str, type[Extrapolation]] = {}
"""All extrapolations by name. A subclass of `Extrapolation` that has a name is added automatically."""


Window: TypeAlias = Callable[[], tuple[Array, Array]]
"""Function that returns the codes (time, n_atoms) of the window and its embedding (n_components, n_atoms)."""


class Fold(NamedTuple):
    """A held-out part of the window, from frame `start` to frame `stop - 1`, for choosing parameters.

    `points` (time, n) is the whole window, in an embedding that was learned only from the frames before `start`.
    """

    start: int
    stop: int
    points: Array


class Extrapolation(AttributeState, ABC):
    """A rule that predicts the next point of a trajectory in the embedding.

    A subclass needs a `name` and `advance`. A rule can learn in two ways:

    - From three successive points at a time (`adaptive`, `observe`). The embedding was not fitted to these points.
    - From a window of frames and codes (`learn_window`, `receive`). Such a rule may also predict whole frames, and
      choose its parameters on held-out parts of the past (`n_folds`, `choose`).

    Learned values are saved with the model if `state_arrays` names them and `schema` declares them.
    """

    name: ClassVar[str]
    predicts_change: ClassVar[bool] = False
    """If True, step 7 recovers the change of the code. So the part of the code that the embedding omits is kept."""
    adaptive: ClassVar[bool] = False
    """If True, `observe` is called after each received frame."""
    keeps_residual: ClassVar[bool] = False
    """If True, the part of the last frame that its code does not explain is added to the predicted frame."""
    n_folds: ClassVar[int] = 0
    """Number of held-out parts of the past that `choose` needs. It is 0 if there is nothing to choose."""
    n_points: int = 0
    """Number of leading directions of the embedding that a rule with folds uses."""
    embedding: Array | None = None
    """The embedding (n_points, n_atoms) of predicted points. None means the embedding of the present window."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            EXTRAPOLATIONS[cls.name] = cls

    @abstractmethod
    def advance(self, previous: Array, current: Array, /) -> Array:
        """Return the point (n_components,) predicted to follow the last two points."""

    def observe(self, points: Array, pictures: Array) -> None:
        """Learn from three successive points (3, n_components) and their decoded frames (3, n_features)."""

    def fit(self, trajectory: Array, pictures: Array) -> Self:
        """Learn from a sequence of points (time, n_components) and their decoded frames (time, n_features)."""
        for t in range(len(trajectory) - 2):
            self.observe(trajectory[t : t + 3], pictures[t : t + 3])
        return self

    def choose(self, frames: Array, begins: Mask, folds: Sequence[Fold], sizes: Sequence[int]) -> None:
        """Set the parameters of the rule to those with the least error on held-out parts of the past (`folds`).

        `frames` are (time, n_features). `begins` (time,) marks the first frame of each series. `sizes` are the values
        of `n_points` to choose from.
        """

    def learn_window(self, frames: Array, codes: Array, embedding: Array, begins: Mask) -> None:
        """Learn from the frames (time, n_features) and codes (time, n_atoms) of the window, at the end of `PSMT.fit`.

        `begins` (time,) marks the first frame of each series, and each cut if the model has ``on_cut="hold"``.
        """

    def continue_series(self, frames: Array, codes: Array, embedding: Array) -> None:
        """Continue with another series of frames (n, n_features). `codes` (time, n_atoms) is the whole window."""

    def rewind(self, n: int, codes: Array, embedding: Array) -> None:
        """Forget the last `n` frames. `codes` (time, n_atoms) and `embedding` describe the window without them."""

    def receive(self, frame: Array, code: Callable[[], Array], window: Window | None, *, begins: bool) -> None:
        """Receive the next frame (n_features,). If `begins` is True, it is the first frame of a new scene.

        Calling `code` gives the code (n_atoms,) of the frame. Calling `window` gives the codes and the embedding of the
        window. If `window` is None, learned values must not change.
        """

    def predict_points(self, horizon: int) -> Array | None:
        """Return the next points (horizon, n_points) of `embedding`, or None to use `advance` instead."""

    def predict_frames(self, horizon: int) -> Array | None:
        """Return the next frames (horizon, n_features), or None to decode predicted codes instead."""

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """Return the shapes and bounds that the saved arrays must have, by name."""
        return {}
