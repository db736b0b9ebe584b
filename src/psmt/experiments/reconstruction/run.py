"""Reconstruct all frames of a film, and choose phases (the stretches to predict) by the reconstruction errors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.experiments.film_tasks import code_film, window_task
from psmt.experiments.phases import (
    FilmPhase,
    Stretch,
    error_memory,
    find_phases,
    least_error,
    least_window,
    phase_segment,
)
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.pipeline.run import Run
from psmt.types import Array
from psmt.utils.validation import check_film


@dataclass(frozen=True, kw_only=True)
class ReconstructionResult:
    """The reconstruction error of each frame, and the segment and phases that are chosen by these errors."""

    settings: ReconstructionSettings
    errors: Array
    """MSE (time,) of each frame."""
    windows: Sequence[Stretch] = ()
    """Windows of the sweep with the same numbers of atoms and frames. If there are any, the segment is one of them."""

    @cached_property
    def sweep_segment(self) -> Stretch | None:
        """Of the sweep's windows with room for two phases, the one with the least error. None without such windows."""
        if self.search_window is None:
            return None
        return least_window(self.windows, window=self.search_window, horizon=self.settings.horizon)

    @cached_property
    def segment(self) -> Stretch:
        """The segment in which phases are searched: `sweep_segment`, or else the film's segment of least error."""
        if self.sweep_segment is not None:
            return self.sweep_segment
        if self.search_window is None:
            return least_error(self.errors, window=self.settings.window)
        return phase_segment(self.errors, window=self.search_window, horizon=self.settings.horizon)

    @cached_property
    def search_window(self) -> int | None:
        """Number of frames that must precede a phase, or None if the film is too short for phases."""
        return self.settings.search_window(len(self.errors))

    @cached_property
    def phases(self) -> list[FilmPhase]:
        """The stretches of the film to predict, or [] if the film is too short."""
        if self.search_window is None:
            return []
        own = self.settings
        return find_phases(
            self.errors, window=self.search_window, horizon=own.horizon, search=own.search, segment=self.sweep_segment
        )

    def summary(self) -> dict[str, Any]:
        """Return the numbers for summary.json."""
        return {
            "mean": float(np.mean(self.errors)),
            "median": float(np.median(self.errors)),
            "least_error": self.segment._asdict(),
            "segment_of": "whole-film errors" if self.sweep_segment is None else "windows of the sweep",
            "error_memory": error_memory(self.errors),
            "phases": [{"phase": own.name, "start": own.start} for own in self.phases],
        }


def reconstruct(
    values: ArrayLike, settings: ReconstructionSettings, run: Run, windows: Sequence[Stretch] = ()
) -> ReconstructionResult:
    """Reconstruct patches of a film, or a series (time, n_features), from one embedding of all frames.

    Return the errors. If there are `windows` of a sweep, phases are searched in the window with the least error.
    """
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="reconstruction")
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run)
    whole, name = {"patches": film, "dictionary": dictionary, "codes": codes}, f"reconstruction-M{settings.n_atoms:04d}"
    # In the original transform, V is the second moment about zero.
    task = window_task(name, whole, settings.components, settings, run, centred=False)
    (result,) = run.tasks([task], "all frames")
    return ReconstructionResult(settings=settings, errors=result["mse"], windows=windows)
