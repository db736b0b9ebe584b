"""Sharp changes: how badly a prediction failed, against how badly predictions usually fail."""

from __future__ import annotations

import numpy as np

_MEMORY = 30.0
"""Frames after which old errors have faded to 1/e."""

_CUT = 8.0
"""A prediction that fails this much worse than usual, where copying fails as badly, has met a sharp change."""

_CAP = 3.0
"""An error enters the usual ones as at most this multiple of them: one flash must not make all that follows usual."""


class Surprise:
    """Running scale of prediction errors.

    `value` is the error of the last prediction in units of the usual one, 1 where there is none to compare with; `cut`
    says whether the scene is taken to have changed sharply.
    """

    def __init__(self) -> None:
        self.value = 1.0
        self.cut = False
        self._errors = self._frames = 0.0

    def observe(self, error: float, copy_error: float) -> None:
        """Take in the mean squared errors of a prediction and of copying."""
        usual = self._errors / self._frames if self._frames else 0.0
        self.value = error / usual if usual > 0 else 1.0
        # A prediction alone may fail, and is then to be learned from; when copying fails too, the scene is another.
        self.cut = self._frames > 2 and self.value > _CUT and copy_error > _CUT * usual
        kept = np.exp(-1.0 / _MEMORY)
        self._errors = kept * self._errors + (min(error, _CAP * usual) if usual > 0 else error)
        self._frames = kept * self._frames + 1.0
