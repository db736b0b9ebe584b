"""Reconstruction of all frames, in one task, and the stretches to predict that it finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.experiments.coding_tasks import code_film
from psmt.experiments.embedding_tasks import window_task
from psmt.experiments.phases import (
    FilmPhase,
    Stretch,
    find_phases,
    frame_motion,
    least_error,
    phase_motion,
    phase_segment,
)
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.pipeline.run import Run
from psmt.types import Array
from psmt.utils.validation import check_film


@dataclass(frozen=True, kw_only=True)
class ReconstructionResult:
    """The error of each frame, and the stretches found by it."""

    settings: ReconstructionSettings
    errors: Array
    """MSE (time,)."""
    motion: Array
    """Motion of each frame (time,), see `frame_motion`."""

    @cached_property
    def segment(self) -> Stretch:
        """The segment of least error, as long as a window. It has room for phases if the film has."""
        if self.search_window is None:
            return least_error(self.errors, window=self.settings.window)
        return phase_segment(self.errors, window=self.search_window, horizon=self.settings.horizon)

    @cached_property
    def search_window(self) -> int | None:
        """Frames before the phases; None if the film has no room for phases."""
        return self.settings.search_window(len(self.errors))

    @cached_property
    def phases(self) -> list[FilmPhase]:
        """Stretches to predict; none if the film has no room for them."""
        if self.search_window is None:
            return []
        horizon, search = self.settings.horizon, self.settings.search
        return find_phases(self.errors, window=self.search_window, horizon=horizon, search=search)

    def summary(self) -> dict[str, Any]:
        """Numbers, for JSON."""
        horizon = self.settings.horizon
        return {
            "mean": float(np.mean(self.errors)),
            "median": float(np.median(self.errors)),
            "least_error": self.segment._asdict(),
            "median_motion": float(np.median(self.motion[1:])),
            "phases": [
                {"phase": own.name, "start": own.start, "motion": phase_motion(self.motion, own, horizon=horizon)}
                for own in self.phases
            ],
        }


def reconstruct(values: ArrayLike, settings: ReconstructionSettings, run: Run) -> ReconstructionResult:
    """Reconstruct patches of a film or a series (time, n_features) with one embedding of all frames."""
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="reconstruction")
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run)
    task = window_task(
        f"reconstruction-M{settings.n_atoms:04d}",
        film,
        dictionary,
        codes,
        n_components=settings.components,
        lam=settings.lam,
        # In the original transform, V is the second moment about zero.
        departures=replace(settings.departures, centred=False),
        solver=settings.solver,
        device=run.device,
    )
    (result,) = run.tasks([task], "all frames")
    return ReconstructionResult(settings=settings, errors=result["mse"], motion=frame_motion(film))
