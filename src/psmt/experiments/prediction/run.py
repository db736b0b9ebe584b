"""Predictions of all methods at all starts and on the nulls, a task each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation import METHODS, Score, mse
from psmt.evaluation.null_models import NULLS
from psmt.experiments.phases import Phase, find_phases, frame_motion, phase_motion
from psmt.experiments.prediction.phase import Mode, PhaseResult, predict_phase, summarise
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.experiments.prediction.starts import choose_null_starts, choose_starts
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array, Result
from psmt.utils.validation import check_film


@dataclass(frozen=True, kw_only=True)
class PredictionResult:
    """What all starts gave."""

    settings: PredictionSettings
    phases: Sequence[PhaseResult]
    """The stretches of Fig. 4: those asked for, or a calm and a lively one."""
    starts: Sequence[PhaseResult]
    """All that claims are judged over, the phases among them, in order."""
    nulls: Mapping[str, Sequence[PhaseResult]]
    """Some of the starts on each null, see `psmt.evaluation.null_models`."""
    motion: Array
    """How much of each frame of the film has moved (time,), see `frame_motion`."""

    @cached_property
    def phase_motions(self) -> dict[str, float]:
        """How much the frames that are predicted move, by phase."""
        horizon = self.settings.horizon
        return {result.phase.name: phase_motion(self.motion, result.phase, horizon=horizon) for result in self.phases}

    def summary(self) -> list[dict[str, Any]]:
        """Numbers of each phase, for JSON."""
        return [
            {
                "phase": result.phase.name,
                "start": result.phase.start,
                "motion": self.phase_motions[result.phase.name],
                "median_motion": float(np.median(self.motion[1:])),
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
    return find_phases(errors, window=settings.window, horizon=settings.horizon, search=settings.search)


def predict(
    values: ArrayLike, settings: PredictionSettings, run: Run, *, errors: Array | None = None
) -> PredictionResult:
    """Predictions of all methods in all phases of a film's patches, or of a series, (time, n_features); and at more
    starts, and on the nulls, which decide the claims.

    Without starts in the settings, phases are found by `errors` (time,), the MSE of each reconstructed frame.
    """
    film = check_film(values)
    settings.check(len(film))
    phases = choose_phases(settings, errors)
    starts = choose_starts(
        phases, len(film), window=settings.window, horizon=settings.horizon, n_starts=settings.n_starts
    )
    tested = choose_null_starts(starts, settings.n_null)
    run = replace(run, name="prediction")

    def results(chosen: Sequence[Phase], stage: str, null: str = "") -> list[PhaseResult]:
        tasks = [phase_task(film, start, settings, run.device, null=null) for start in chosen]
        found = zip(chosen, run.tasks(tasks, stage), strict=True)
        return [replace(unpack_phase(*one), picture_shape=run.picture_shape) for one in found]

    own = results(phases, "phases")
    more = results([start for start in starts if start not in phases], "more starts")
    return PredictionResult(
        settings=settings,
        phases=own,
        starts=sorted([*own, *more], key=lambda result: result.phase.start),
        nulls={null: results(tested, f"null ({null})", null) for null in NULLS},
        motion=frame_motion(film),
    )


def phase_task(
    patches: Array, phase: Phase, settings: PredictionSettings, device: str = "cpu", *, null: str = ""
) -> Task:
    """Task that predicts one phase of the patches (time, n_features), or of a null made from the same frames."""
    inputs: dict[str, Any] = {
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
        "extrapolation": settings.extrapolation,
        "series": settings.series,
    }
    if null:
        inputs["null"] = null
    name = f"prediction-{f'{null}-' if null else ''}{phase.name}-M{settings.n_atoms:04d}-H{settings.window:05d}"
    return Task(name, predict_patches, inputs | on_device(device))


def predict_patches(*, patches: Array, start: int, null: str = "", **settings: Any) -> Result:
    """What `predict_phase` gives for the frames after `start`, of the film or of a null, as arrays. One task."""
    if null:
        # Each start draws its own, so that its errors are one more draw from the null.
        patches = NULLS[null](patches, np.random.default_rng([settings["seed"], start]))
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
