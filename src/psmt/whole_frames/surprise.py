"""Sharp changes: how badly a prediction failed, against how badly predictions usually fail."""

from __future__ import annotations

import numpy as np

_MEMORY = 30.0
"""Frames after which old errors have faded to 1/e."""

_CUT = 6.0
"""A sharp change is a prediction that fails this much worse than usual .."""

_UNLIKE = 0.2
"""... where the frame differs from the one before by this much of the variance over the picture: what is left of a
picture after a jolt, a stutter or one step of a fade is more like it than that."""

_CAP = 3.0
"""An error enters the usual ones as at most this multiple of them: one flash must not make all that follows usual."""

_FLOOR = 1e-4
"""Errors below this fraction of the variance over the picture are no scale to measure others by."""

_FORGOTTEN = 0.1
"""Frames that the record counts for after a sharp change: the next errors decide what is usual."""


class Surprise:
    """Running scale of prediction errors.

    `value` is the error of the last prediction in units of the usual one, 1 where there is none to compare with; `cut`
    says whether the scene is taken to have changed sharply.
    """

    def __init__(self) -> None:
        self.value = 1.0
        self.cut = False
        self._errors = self._frames = 0.0
        self._cuts_in_a_row = 0

    def observe(self, error: float, copy_error: float, contrast: float) -> None:
        """Take in the mean squared errors of a prediction and of copying, and the variance over the picture."""
        usual = max(self._errors / self._frames, _FLOOR * contrast) if self._frames else 0.0
        self.value = error / usual if usual > 0 else 1.0
        self.cut = bool(
            self.value > _CUT
            and copy_error > max(_CUT * usual, _UNLIKE * contrast)
            # A flash is two sharp changes; more than that in a row is a film where every frame is new.
            and self._cuts_in_a_row < 2
        )
        if self.cut:
            self._cuts_in_a_row += 1
            self._errors, self._frames = _FORGOTTEN * usual, _FORGOTTEN
            return
        self._cuts_in_a_row = 0
        kept = np.exp(-1.0 / _MEMORY)
        settled = self._frames >= 1 and usual > 0
        self._errors = kept * self._errors + (min(error, _CAP * usual) if settled else error)
        self._frames = kept * self._frames + 1.0
