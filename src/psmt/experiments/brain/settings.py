"""What is asked of some people's series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from psmt.errors import NotEnoughFramesError
from psmt.utils.validation import Constraint, allowing, check_parameters, count, real

STATE_CANDIDATES = (2, 3, 4, 5, 6, 7, 8)
"""Numbers of states that 'auto' chooses from: beyond, they are seldom found again in other people."""

PATHS = 8
"""Windows that a window slides on by before none of its volumes is left."""


@dataclass(frozen=True, kw_only=True)
class BrainSettings:
    """What is asked of some people's series.

    Parameters
    ----------
    n_atoms : int
        M: patterns of co-activation in the group's dictionary.
    alpha : float
        Price of activity in layer 1. Regions have variance one, so that it needs no unit.
    n_components : int
        Directions of the trajectory that states are found in, most of the brain's variance first.
    n_states : int or 'auto'
        'auto' takes the fewest that gain most of what any number gains in foretelling other people.
    window : int
        Volumes that a graph of atoms is made from.
    high_pass : float or None
        Hz below which drifts are removed before dictionary and states; None removes the mean alone. Predictions are
        made from the series as it came.
    horizon : int
        Volumes ahead that are predicted.
    swc_seconds : float
        Of the sliding window that correlations are taken in, the field's usual minute.
    n_surrogates : int
        Draws of each surrogate, >= 19.
    n_compared : int
        People that methods and surrogates are compared on, at the most: the first so many.
    n_splits : int
        Ways in which the people are halved, at the most.
    seed : int
    """

    n_atoms: int = 32
    alpha: float = 0.15
    n_components: int = 6
    n_states: int | Literal["auto"] = "auto"
    window: int = 96
    high_pass: float | None = 0.0025
    horizon: int = 5
    swc_seconds: float = 60.0
    n_surrogates: int = 19
    n_compared: int = 16
    n_splits: int = 6
    seed: int = 0

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": count(2),
        "alpha": real(open_bound=True),
        "n_components": count(),
        "n_states": allowing("auto", count(2)),
        "window": count(16),
        "high_pass": allowing(None, real()),
        "horizon": count(),
        "swc_seconds": real(open_bound=True),
        "n_surrogates": count(19),
        "n_compared": count(),
        "n_splits": count(),
        "seed": count(0),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)

    @property
    def largest(self) -> int:
        """M."""
        return self.n_atoms

    @property
    def step(self) -> int:
        """Volumes from one window to the next."""
        return max(1, self.window // PATHS)

    def check_lengths(self, names: Sequence[str], lengths: Sequence[int]) -> None:
        """Raise unless each person's series has two windows, and each half of it a volume per state."""
        for name, length in zip(names, lengths, strict=True):
            if self.n_states != "auto" and self.n_states > length // 2:
                raise NotEnoughFramesError(
                    f"{name} has {length} volumes, and half of them are fewer than --states {self.n_states}; "
                    f"use --states {length // 2} or less"
                )
            if length < self.window + self.step:
                raise NotEnoughFramesError(
                    f"{name} has {length} volumes, but two windows of window={self.window} need "
                    f"{self.window + self.step}; use --window {max(16, length * PATHS // (PATHS + 1) - 1)} or less, "
                    "or leave this person out"
                )
