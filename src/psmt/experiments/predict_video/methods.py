"""The methods that predict-video compares, by their names in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from psmt.types import Predictor, Result
from psmt.video import FRAME_BASELINES

FRAME_METHODS = {"psmt": "PSMT", **{name: entry.label for name, entry in FRAME_BASELINES.items()}}
"""Methods by their name in files, with the name for people."""

SLOW_BASELINES = tuple(name for name, entry in FRAME_BASELINES.items() if entry.slow)
"""Baselines that cost about as much as the model, and are left out unless asked for."""


class FrameMethod(Predictor, Protocol):
    """A predictor that continues, bit for bit, from the state of another one with the same parameters."""

    def get_state(self) -> Result:
        """Everything that is carried from frame to frame, as arrays."""

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Continue from this state."""
