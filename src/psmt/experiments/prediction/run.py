"""Predictions at all starts, on the film and on its null models: one task per start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation.null_models import NULLS
from psmt.experiments.phases import Phase, find_phases, frame_motion
from psmt.experiments.prediction.phase import PhaseResult, predict_patches, unpack_phase
from psmt.experiments.prediction.result import PredictionResult
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array
from psmt.utils.validation import check_film

_NOT_INPUTS = {"starts", "n_starts", "n_null", "search", "departures"}
"""Settings that choose the tasks. The others are inputs of each task."""


def predict(
    values: ArrayLike, settings: PredictionSettings, run: Run, *, errors: Array | None = None
) -> PredictionResult:
    """Predict patches of a film or a series (time, n_features) with all methods: in the phases, at more starts, and on
    the null models, which decide the claims.

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


def choose_phases(settings: PredictionSettings, errors: Array | None) -> list[Phase]:
    """Phases at the starts in the settings, or those found by the reconstruction errors (time,)."""
    if settings.starts:
        return [Phase(f"start-{start}", start) for start in dict.fromkeys(settings.starts)]
    if errors is None:
        raise ValueError("without starts, phases are found by reconstruction errors; give either")
    return find_phases(errors, window=settings.window, horizon=settings.horizon, search=settings.search)


def choose_starts(phases: Sequence[Phase], n_frames: int, *, window: int, horizon: int, n_starts: int) -> list[Phase]:
    """The phases and more starts at even distances: at most `n_starts`, in order, no two with a frame in common.

    >>> [start.start for start in choose_starts([Phase("calm", 14)], 41, window=10, horizon=4, n_starts=4)]
    [14, 23, 36]
    """
    length = horizon + 1
    first, last = window, n_frames - length
    count = min(n_starts - len(phases), (last - first) // length + 1)
    places = [first + i * (last - first) // max(count - 1, 1) for i in range(count)]
    more = [place for place in places if all(abs(place - phase.start) >= length for phase in phases)]
    return sorted([*phases, *(Phase(f"start-{place}", place) for place in more)], key=lambda start: start.start)


def choose_null_starts(starts: Sequence[Phase], n_null: int) -> list[Phase]:
    """At most `n_null` of the starts, at even distances."""
    places = np.linspace(0, len(starts) - 1, min(n_null, len(starts))).round().astype(int)
    return [starts[place] for place in places]


def phase_task(
    patches: Array, phase: Phase, settings: PredictionSettings, device: str = "cpu", *, null: str = ""
) -> Task:
    """Task that predicts one phase of the patches (time, n_features), or of a null model made from these frames."""
    inputs: dict[str, Any] = {
        **{own.name: getattr(settings, own.name) for own in fields(settings) if own.name not in _NOT_INPUTS},
        "patches": patches[: phase.start + settings.horizon + 1],
        "start": phase.start,
        "departures": settings.departures.parameters,
    }
    if null:
        inputs["null"] = null
    name = f"prediction-{f'{null}-' if null else ''}{phase.name}-M{settings.n_atoms:04d}-H{settings.window:05d}"
    return Task(name, predict_patches, inputs | on_device(device))
