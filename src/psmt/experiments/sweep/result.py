"""Errors of all windows, and Table 1 and Fig. 2 as tables made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from psmt.evaluation import Interval, trimmed
from psmt.experiments.sweep.settings import SweepSettings
from psmt.experiments.table_1 import compare
from psmt.types import Array


class Row(NamedTuple):
    """One line of sweep.csv."""

    lam: float
    n_atoms: int
    window: int
    segment: int
    start: int
    stop: int
    frame: int
    mse: float


class Segment(NamedTuple):
    """One window of one combination, as Fig. 2 shows it."""

    lam: float
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
    """One (M, H) at one λ, as Table 1 shows it; without figures where the film is too short for it."""

    lam: float
    n_atoms: int
    window: int
    n_segments: int = 0
    trimmed_mean: float = float("nan")
    trimmed_std: float = float("nan")
    mean: float = float("nan")
    std: float = float("nan")
    coding_trimmed_mean: float = float("nan")
    """Of layer 1 alone, over the same frames, trimmed alike."""
    missing: str | None = None
    """Why there are no figures, with the frames that are there and those that are needed; None where there are."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """Errors of all windows, and the tables made from them."""

    settings: SweepSettings
    n_frames: int
    errors: Mapping[tuple[float, int, int], Array]
    """MSE (n_segments, H) by (λ, M, H), of the combinations that the film is long enough for."""
    coding_errors: Mapping[tuple[int, int], Array]
    """The same for layer 1 alone, by (M, H)."""
    null_errors: Mapping[str, Mapping[tuple[float, int, int], Array]] = field(default_factory=dict)
    """The errors on each null of the film, see `psmt.evaluation.null_models`: of fewer windows."""
    empty_error: float = float("inf")
    """Trimmed mean of the MSE of an empty picture, that of a code of zeros: 1 for standardised patches."""

    def rows(self) -> Iterator[Row]:
        """Lines of sweep.csv: one per λ, combination, window and frame."""
        for (lam, n_atoms, window), errors in self.errors.items():
            places = self.settings.segments(window, self.n_frames)
            for segment, ((start, stop), values) in enumerate(zip(places, errors, strict=True)):
                for frame, value in enumerate(values.tolist(), start=start):
                    yield Row(lam, n_atoms, window, segment, start, stop, frame, value)

    def table(self) -> list[Combination]:
        """Mean and standard deviation of the errors by (λ, M, H): Table 1, the missing combinations included."""
        return [
            self._combination(lam, n_atoms, window)
            for lam in self.settings.lam
            for n_atoms in self.settings.n_atoms
            for window in self.settings.windows(n_atoms)
        ]

    def segments(self) -> list[Segment]:
        """Median and quartiles of the errors by window: Fig. 2."""
        return [
            Segment(lam, n_atoms, window, segment, start, stop, *np.quantile(values, (0.25, 0.5, 0.75)).tolist())
            for (lam, n_atoms, window), errors in self.errors.items()
            for segment, ((start, stop), values) in enumerate(
                zip(self.settings.segments(window, self.n_frames), errors, strict=True)
            )
        ]

    def change(self, first: Combination, last: Combination, null: str = "") -> Interval:
        """Logarithm of the ratio of two trimmed means, the last over the first, with its interval; or on a null."""
        errors = self.null_errors[null] if null else self.errors
        segments = self.settings.null_segments if null else self.settings.segments
        return compare(
            errors[first.lam, first.n_atoms, first.window],
            segments(first.window, self.n_frames),
            errors[last.lam, last.n_atoms, last.window],
            segments(last.window, self.n_frames),
            n_frames=self.n_frames,
        )

    def _combination(self, lam: float, n_atoms: int, window: int) -> Combination:
        if (lam, n_atoms, window) not in self.errors:
            reason = f"the film has {self.n_frames} frames, the window needs {window}"
            return Combination(lam=lam, n_atoms=n_atoms, window=window, missing=reason)
        errors = self.errors[lam, n_atoms, window]
        inner = trimmed(errors)
        return Combination(
            lam=lam,
            n_atoms=n_atoms,
            window=window,
            n_segments=len(errors),
            trimmed_mean=float(inner.mean()),
            trimmed_std=float(inner.std()),
            mean=float(errors.mean()),
            std=float(errors.std()),
            coding_trimmed_mean=float(trimmed(self.coding_errors[n_atoms, window]).mean()),
        )
