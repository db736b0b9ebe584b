"""The paper's four experiments on one film, cut into tasks (see `psmt.experiments.running.tasks`).

sweep -> topology -> reconstruction -> phases -> prediction, one task per phase
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.evaluation import Score
from psmt.experiments.codes import code_film
from psmt.experiments.plan import Plan, PredictionSettings, ReconstructionSettings, ReproduceSettings, make_plan
from psmt.experiments.prediction import METHODS, PhaseResult, predict_phase
from psmt.experiments.reconstruction import Phase, find_phases
from psmt.experiments.running.executors import cpu_count
from psmt.experiments.running.tasks import Result, Task, on_device, run_tasks, stages
from psmt.experiments.sweep import SweepResult, reconstruct_window, sweep
from psmt.experiments.topology import TopologyResult, topology
from psmt.threads import one_blas_thread
from psmt.types import Progress, silent
from psmt.validation import check_series

Array = NDArray[np.float64]
Mode = Literal["scores", "rollouts"]

MEMORY = 3.2
"""GiB that worker processes may take together by default; the run itself needs the rest of 4."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """All results on one film; None or nothing where no size fits, for the reason that the plan's notes give."""

    settings: ReproduceSettings
    """As asked."""
    plan: Plan
    """As done."""
    n_frames: int
    sweep: SweepResult | None
    topology: TopologyResult | None
    reconstruction: Array | None
    """MSE (n_frames,)."""
    phases: tuple[PhaseResult, ...]


def reproduce(
    patches: ArrayLike,
    folder: str | os.PathLike[str],
    *,
    settings: ReproduceSettings | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
    force: bool = False,
    device: str = "cpu",
) -> Reproduction:
    """The four experiments on a film's patches (time, n_features), each at the largest size that fits.

    Parameters
    ----------
    folder : path
        Where tasks are kept.
    executor, progress, force
        As for `run_tasks`.
    device : str
        Where to compute.
    """
    settings = ReproduceSettings() if settings is None else settings
    film = np.ascontiguousarray(check_series(patches, name="patches"))
    plan = make_plan(settings, len(film))
    run: dict[str, Any] = {"executor": executor, "progress": progress, "force": force, "device": device}
    swept = graphs = errors = None
    results: list[PhaseResult] = []
    # What is computed between tasks must not depend on the number of this machine's cores either.
    with one_blas_thread():
        if plan.sweep is not None:
            swept = sweep(film, folder, settings=plan.sweep, **run)
        if plan.topology is not None:
            graphs = topology(film, folder, settings=plan.topology, **run)
        if plan.reconstruction is not None:
            errors = reconstruct_film(film, folder, settings=plan.reconstruction, **run)
        if plan.prediction is not None:
            results = predict_film(film, choose_phases(plan.prediction, errors), folder, plan.prediction, **run)
    return Reproduction(
        settings=settings,
        plan=plan,
        n_frames=len(film),
        sweep=swept,
        topology=graphs,
        reconstruction=errors,
        phases=tuple(results),
    )


def run_key(patches: Array, settings: ReproduceSettings) -> str:
    """Short hash of a film's patches and the settings."""
    return sha256(np.ascontiguousarray(patches).tobytes() + repr(asdict(settings)).encode()).hexdigest()[:16]


def suggested_workers(n_atoms: int) -> int:
    """Processes for tasks of up to `n_atoms`: one per CPU, but no more than 4 GiB of memory hold.

    A worker takes 0.2 GiB, and at M = 2048 0.8 GiB, most of it in matrices of M x M.
    """
    each = 0.25 + 0.65 * (n_atoms / 2048) ** 2
    return max(1, min(cpu_count(), int(MEMORY / each)))


# Reconstruction


def reconstruct_film(
    patches: Array, folder: str | os.PathLike[str], *, settings: ReconstructionSettings, device: str = "cpu", **run: Any
) -> Array:
    """MSE (time,) of each patch (time, n_features) through the embedding of all of them."""
    settings.check(len(patches))
    run_stage = stages("reconstruction", folder, **run)
    ((dictionary, codes),) = code_film(patches, [settings.n_atoms], settings, run_stage, device)
    inputs = {
        "patches": patches,
        "dictionary": dictionary,
        **codes,
        "n_components": settings.components,
        "lam": settings.lam,
        **on_device(device),
    }
    task = Task(f"reconstruction-M{settings.n_atoms:04d}", reconstruct_window, inputs)
    (result,) = run_stage([task], "all frames")
    return result["mse"]


# Prediction


def choose_phases(settings: PredictionSettings, errors: Array | None) -> list[Phase]:
    """The phases that begin at the given starts, or those that the reconstruction errors (time,) single out."""
    if settings.starts:
        return [Phase(f"start-{start}", start) for start in dict.fromkeys(settings.starts)]
    if errors is None:
        raise ValueError("without starts, phases are found by reconstruction errors; give either")
    phases = find_phases(errors, window=settings.window, horizon=settings.horizon)
    # In a film with room for one stretch only, the calm one is the lively one.
    return phases if phases[0].start != phases[1].start else [Phase("only", phases[0].start)]


def predict_film(
    patches: Array,
    phases: Sequence[Phase],
    folder: str | os.PathLike[str],
    settings: PredictionSettings,
    *,
    device: str = "cpu",
    **run: Any,
) -> list[PhaseResult]:
    """Predictions of all methods in all phases of the patches (time, n_features), a task per phase."""
    tasks = [
        Task(
            f"prediction-{phase.name}-M{settings.n_atoms:04d}-H{settings.window:05d}",
            predict_patches,
            {
                "patches": patches[: phase.start + settings.horizon + 1],
                "start": phase.start,
                "horizon": settings.horizon,
                "n_atoms": settings.n_atoms,
                "window": settings.window,
                "n_components": settings.n_components,
                "alpha": settings.alpha,
                "lam": settings.lam,
                "seed": settings.seed,
                **on_device(device),
            },
        )
        for phase in phases
    ]
    results = run_tasks(tasks, folder, stage="prediction: phases", **run)
    return [_unpacked(phase, result) for phase, result in zip(phases, results, strict=True)]


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


def _unpacked(phase: Phase, arrays: Result) -> PhaseResult:
    """The result that `predict_patches` made arrays of."""

    def scores(mode: str) -> dict[str, Score]:
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
