"""Predictions of all methods in all phases, a task per phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation import Score, mse
from psmt.experiments.phases import Phase, distinct_phases
from psmt.experiments.prediction.phase import METHODS, Mode, PhaseResult, predict_phase, summarise
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.experiments.running.context import Run
from psmt.experiments.running.tasks import Task, on_device
from psmt.types import Array, Result
from psmt.validation import check_series


@dataclass(frozen=True, kw_only=True)
class PredictionResult:
    """What all phases gave."""

    settings: PredictionSettings
    phases: Sequence[PhaseResult]

    def summary(self) -> list[dict[str, Any]]:
        """Numbers of each phase, for JSON."""
        return [
            {
                "phase": result.phase.name,
                "start": result.phase.start,
                "n_components": result.n_components,
                "lam": result.lam,
                "coding_mse_vs_frame": float(np.mean(mse(result.estimates, result.frames))),
                "one_step": [summary._asdict() for summary in summarise(result.rows("scores"))],
                "rollout": [summary._asdict() for summary in summarise(result.rows("rollouts"))],
            }
            for result in self.phases
        ]


def choose_phases(settings: PredictionSettings, errors: Array | None) -> list[Phase]:
    """The phases that begin at the given starts, or those that the reconstruction errors (time,) single out."""
    if settings.starts:
        return [Phase(f"start-{start}", start) for start in dict.fromkeys(settings.starts)]
    if errors is None:
        raise ValueError("without starts, phases are found by reconstruction errors; give either")
    return distinct_phases(errors, window=settings.window, horizon=settings.horizon)


def predict(
    values: ArrayLike, settings: PredictionSettings, run: Run, *, errors: Array | None = None
) -> PredictionResult:
    """Predictions of all methods in all phases of a film's patches, or of a series, (time, n_features).

    Without starts in the settings, phases are found by `errors` (time,), the MSE of each reconstructed frame.
    """
    film = np.ascontiguousarray(check_series(values, name="patches"))
    settings.check(len(film))
    phases = choose_phases(settings, errors)
    run = replace(run, name="prediction")
    results = run.tasks([phase_task(film, phase, settings, run.device) for phase in phases], "phases")
    unpacked = [unpack_phase(phase, result) for phase, result in zip(phases, results, strict=True)]
    return PredictionResult(settings=settings, phases=unpacked)


def phase_task(patches: Array, phase: Phase, settings: PredictionSettings, device: str = "cpu") -> Task:
    """Task that predicts one phase of the patches (time, n_features)."""
    inputs = {
        "patches": patches[: phase.start + settings.horizon + 1],
        "start": phase.start,
        "horizon": settings.horizon,
        "n_atoms": settings.n_atoms,
        "window": settings.window,
        "n_components": settings.n_components,
        "alpha": settings.alpha,
        "lam": settings.lam,
        "seed": settings.seed,
        "departures": settings.departures.parameters,
        "solver": settings.solver,
    }
    name = f"prediction-{phase.name}-M{settings.n_atoms:04d}-H{settings.window:05d}"
    return Task(name, predict_patches, inputs | on_device(device))


def predict_patches(*, patches: Array, start: int, **settings: Any) -> Result:
    """What `predict_phase` gives for the frames after `start`, as arrays. One task."""
    result = predict_phase(patches, Phase("phase", start), **settings)
    arrays: Result = {
        "n_components": np.array(result.n_components),
        "lam": np.array(result.lam),
        "frames": result.frames,
        "estimates": result.estimates,
    }
    for mode in get_args(Mode):
        for method, score in getattr(result, mode).items():
            arrays |= {f"{mode}-{method}-{name}": values for name, values in vars(score).items()}
    return arrays


def unpack_phase(phase: Phase, arrays: Result) -> PhaseResult:
    """The result that `predict_patches` made arrays of."""

    def scores(mode: Mode) -> dict[str, Score]:
        return {
            method: Score(**{name: arrays[f"{mode}-{method}-{name}"] for name in Score.__dataclass_fields__})
            for method in METHODS
            if f"{mode}-{method}-predicted" in arrays
        }

    return PhaseResult(
        phase=phase,
        n_components=int(arrays["n_components"]),
        lam=float(arrays["lam"]),
        frames=arrays["frames"],
        estimates=arrays["estimates"],
        scores=scores("scores"),
        rollouts=scores("rollouts"),
    )
