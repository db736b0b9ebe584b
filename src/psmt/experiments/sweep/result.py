"""Errors of all windows, and Table 1 and Fig. 2 as tables made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psmt.experiments.sweep.settings import SweepSettings
from psmt.types import Array

TRIMMED = 0.25
"""Share of the errors that is left out at each end of Table 1."""


class Row(NamedTuple):
    """One line of sweep.csv."""

    n_atoms: int
    window: int
    segment: int
    start: int
    stop: int
    frame: int
    mse: float


class Segment(NamedTuple):
    """One window of one combination, as Fig. 2 shows it."""

    n_atoms: int
    window: int
    segment: int
    start: int
    stop: int
    lower: float
    """First quartile of the MSE."""
    median: float
    upper: float
    """Third quartile."""


class Combination(NamedTuple):
    """One (M, H), as Table 1 shows it; without figures where the film is too short for it."""

    n_atoms: int
    window: int
    n_segments: int = 0
    trimmed_mean: float = float("nan")
    trimmed_std: float = float("nan")
    mean: float = float("nan")
    std: float = float("nan")
    coding_mean: float = float("nan")
    """Mean MSE of layer 1 alone over the same frames, trimmed alike."""
    missing: str | None = None
    """Why there are no figures, with the frames that are there and those that are needed; None where there are."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """Errors of all windows, and the tables made from them."""

    settings: SweepSettings
    n_frames: int
    errors: Mapping[tuple[int, int], Array]
    """MSE (n_segments, H) by (M, H), of the combinations that the film is long enough for."""
    coding_errors: Mapping[tuple[int, int], Array]
    """The same for layer 1 alone."""

    def rows(self) -> Iterator[Row]:
        """Lines of sweep.csv: one per combination, window and frame."""
        for (n_atoms, window), errors in self.errors.items():
            places = self.settings.segments(window, self.n_frames)
            for segment, ((start, stop), values) in enumerate(zip(places, errors.tolist(), strict=True)):
                for frame, value in enumerate(values, start=start):
                    yield Row(n_atoms, window, segment, start, stop, frame, value)

    def table(self) -> list[Combination]:
        """Mean and standard deviation of the errors by (M, H): Table 1, the missing combinations included."""
        return [
            self._combination(n_atoms, window)
            for n_atoms in self.settings.n_atoms
            for window in self.settings.windows(n_atoms)
        ]

    def segments(self) -> list[Segment]:
        """Median and quartiles of the errors by window: Fig. 2."""
        return [
            Segment(n_atoms, window, segment, start, stop, *np.quantile(values, (0.25, 0.5, 0.75)).tolist())
            for (n_atoms, window), errors in self.errors.items()
            for segment, ((start, stop), values) in enumerate(
                zip(self.settings.segments(window, self.n_frames), errors, strict=True)
            )
        ]

    def _combination(self, n_atoms: int, window: int) -> Combination:
        if (n_atoms, window) not in self.errors:
            reason = f"the film has {self.n_frames} frames, the window needs {window}"
            return Combination(n_atoms=n_atoms, window=window, missing=reason)
        errors = self.errors[n_atoms, window]
        inner = _trimmed(errors)
        return Combination(
            n_atoms=n_atoms,
            window=window,
            n_segments=len(errors),
            trimmed_mean=float(inner.mean()),
            trimmed_std=float(inner.std()),
            mean=float(errors.mean()),
            std=float(errors.std()),
            coding_mean=float(_trimmed(self.coding_errors[n_atoms, window]).mean()),
        )


def _trimmed(errors: Array) -> Array:
    """The errors, in order, without the share `TRIMMED` at each end."""
    ordered = np.sort(errors, axis=None)
    cut = int(TRIMMED * ordered.size)
    return ordered[cut : ordered.size - cut]
