"""Models that learn from the same past learn each dictionary once."""

from __future__ import annotations

from typing import Self

from psmt.coding import SparseCoder
from psmt.model import PSMT
from psmt.types import Array, Progress, silent


class SharingPSMT(PSMT):
    """PSMT that learns no dictionary that another one has learned from the same film before it."""

    def share(self, learned: dict[int, SparseCoder]) -> Self:
        """Look for a coder here, and leave it here: by the number of frames, from the first on, that it has learned."""
        self._learned = learned
        return self

    def fit_coder(
        self, samples: Array, learned: SparseCoder | None = None, *, progress: Progress = silent
    ) -> SparseCoder:
        """The coder that another model has fitted to as many frames, or one of its own."""
        if len(samples) not in self._learned:
            self._learned[len(samples)] = super().fit_coder(samples, learned, progress=progress)
        return self._learned[len(samples)]
