"""Sharp changes: how badly a prediction failed, against how badly predictions usually fail."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MEMORY = 30.0
"""Frames after which old errors have faded to 1/e."""

_CUT = 6.0
"""A sharp change is a prediction that fails this much worse than usual .."""

_LEAP = 2.0
"""... and a frame that differs this much more than usual from the one before .."""

_UNLIKE = 0.2
"""... and by this much of the variance over the picture: what a jolt, a stutter or one step of a fade leaves of a
picture is more like it than that."""

_CAP = 3.0
"""An error enters the usual ones as at most this multiple of them: one flash must not make all that follows usual."""

_FLOOR = 1e-4
"""Errors below this fraction of the variance over the picture are no scale to measure others by."""

_FORGOTTEN = 0.1
"""Frames that a record counts for after a sharp change: the next errors decide what is usual."""


class Surprise:
    """Running scale of prediction errors.

    `value` is the error of the last prediction in units of the usual one, 1 where there is none to compare with; `cut`
    says whether the scene is taken to have changed sharply.
    """

    def __init__(self) -> None:
        self.value = 1.0
        self.cut = False
        # Usual errors of predicting and of copying, and the frames that they are known from.
        self.usual = np.zeros(2)
        self.frames = 0.0
        self._cuts_in_a_row = 0

    @property
    def state(self) -> dict[str, NDArray[np.float64]]:
        """All that is known, as numbers."""
        return {"figures": np.array([self.value, self.cut, *self.usual, self.frames, self._cuts_in_a_row])}

    @state.setter
    def state(self, state: dict[str, NDArray[np.float64]]) -> None:
        value, cut, *usual, frames, cuts = state["figures"]
        self.value, self.cut, self.usual = float(value), bool(cut), np.array(usual)
        self.frames, self._cuts_in_a_row = float(frames), int(cuts)

    def observe(self, error: float, copy_error: float, contrast: float) -> None:
        """Take in the mean squared errors of a prediction and of copying, and the variance over the picture."""
        errors = np.array([error, copy_error])
        scale, copy_scale = np.maximum(self.usual, _FLOOR * contrast)
        known = self.frames > 0 and scale > 0
        self.value = error / float(scale) if known else 1.0
        self.cut = bool(
            known
            and self.value > _CUT
            and copy_error > max(_LEAP * copy_scale, _UNLIKE * contrast)
            # A flash is two sharp changes; more than that in a row is a film where every frame is new.
            and self._cuts_in_a_row < 2
        )
        if self.cut:
            self._cuts_in_a_row += 1
            self.frames = _FORGOTTEN
            return
        self._cuts_in_a_row = 0
        if known and self.frames >= 1:
            errors = np.minimum(errors, _CAP * np.array([scale, copy_scale]))
        before = np.exp(-1.0 / _MEMORY) * self.frames
        self.frames = before + 1.0
        self.usual = (before * self.usual + errors) / self.frames
