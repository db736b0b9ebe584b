"""Predictions at all starts, on the film and on its null models; and the evidence that they give on each claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation import METHODS, mean_interval, mse
from psmt.evaluation.null_models import NULL_NAMES, NULLS
from psmt.experiments.phases import FilmPhase, find_phases, frame_motion, phase_motion
from psmt.experiments.prediction.phase import PhaseResult, Truth, mean_log_error, predict_patches, unpack_phase
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.report import Evidence, error_ratio_evidence
from psmt.report.numbers import signed
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

    def results(chosen: Sequence[FilmPhase], stage: str, null: str = "") -> list[PhaseResult]:
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


def choose_phases(settings: PredictionSettings, errors: Array | None) -> list[FilmPhase]:
    """Phases at the starts in the settings, or those found by the reconstruction errors (time,)."""
    if settings.starts:
        return [FilmPhase(f"start-{start}", start) for start in dict.fromkeys(settings.starts)]
    if errors is None:
        raise ValueError("without starts, phases are found by reconstruction errors; give either")
    return find_phases(errors, window=settings.window, horizon=settings.horizon, search=settings.search)


def choose_starts(
    phases: Sequence[FilmPhase], n_frames: int, *, window: int, horizon: int, n_starts: int
) -> list[FilmPhase]:
    """The phases and more starts at even distances: at most `n_starts`, in order, no two with a frame in common.

    >>> [start.start for start in choose_starts([FilmPhase("calm", 14)], 41, window=10, horizon=4, n_starts=4)]
    [14, 23, 36]
    """
    length = horizon + 1
    first, last = window, n_frames - length
    count = min(n_starts - len(phases), (last - first) // length + 1)
    places = [first + i * (last - first) // max(count - 1, 1) for i in range(count)]
    more = [place for place in places if all(abs(place - phase.start) >= length for phase in phases)]
    return sorted([*phases, *(FilmPhase(f"start-{place}", place) for place in more)], key=lambda start: start.start)


def choose_null_starts(starts: Sequence[FilmPhase], n_null: int) -> list[FilmPhase]:
    """At most `n_null` of the starts, at even distances."""
    places = np.linspace(0, len(starts) - 1, min(n_null, len(starts))).round().astype(int)
    return [starts[place] for place in places]


def phase_task(
    patches: Array, phase: FilmPhase, settings: PredictionSettings, device: str = "cpu", *, null: str = ""
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


MARGIN = 0.02
"""Mean log errors that differ by less than this are a tie: the errors are within 2% of each other."""

BLOCK = 2
"""Successive starts that are resampled together: neighbours may show the same scene."""

FEWEST = 3 * BLOCK
"""Starts that an interval needs."""

TRIVIAL: dict[Truth, tuple[str, ...]] = {"code": ("copy_code", "mean_code"), "frame": ("copy", "mean")}
"""Copying and the mean, by what errors are measured against."""

COPYING: dict[str, tuple[str, Truth]] = {
    "beats_copying": ("psmt", "code"),
    "beats_copying_frames": ("psmt", "frame"),
    "gain_beats_copying": ("psmt_gain", "code"),
    "gain_beats_copying_frames": ("psmt_gain", "frame"),
}
"""Claims that a method beats copying. Codes and frames are two questions: every method with layers loses the part of a
frame that its code does not show, however well it predicts."""


@dataclass(frozen=True, kw_only=True)
class PredictionResult:
    """Predictions at all starts."""

    settings: PredictionSettings
    phases: Sequence[PhaseResult]
    """The stretches of Fig. 4: those asked for, or a calm and a lively one."""
    starts: Sequence[PhaseResult]
    """All starts that decide the claims, with the phases among them, in order."""
    nulls: Mapping[str, Sequence[PhaseResult]]
    """Some of the starts on each null model, see `psmt.evaluation.null_models`."""
    motion: Array
    """Motion of each frame of the film (time,), see `frame_motion`."""

    @cached_property
    def phase_motions(self) -> dict[str, float]:
        """Mean motion of the predicted frames, by phase."""
        horizon = self.settings.horizon
        return {result.phase.name: phase_motion(self.motion, result.phase, horizon=horizon) for result in self.phases}

    @cached_property
    def films(self) -> dict[str, Sequence[PhaseResult]]:
        """Results on the film and on each null model, by their names in a sentence."""
        return {"the film": self.starts} | {NULL_NAMES[null]: found for null, found in self.nulls.items()}

    @cached_property
    def evidence(self) -> dict[str, list[Evidence]]:
        """Paired differences of mean log errors for each claim; below 0 the first method is better."""
        return {
            "dynamic_beats_static": [
                self._compare("psmt", ("baseline1",), "code"),
                self._compare("psmt", ("baseline2",), "code"),
                # The mean is the best prediction on a null model, so there is nothing to exceed.
                self._compare("psmt", ("mean_code",), "code", nulls=False),
            ],
            **{key: [self._compare(method, TRIVIAL[truth], truth)] for key, (method, truth) in COPYING.items()},
        }

    def _compare(self, method: str, others: Sequence[str], truth: Truth, *, nulls: bool = True) -> Evidence:
        """Mean log errors of a method less those of the best of others, start by start."""
        differences = {
            film: np.array(
                [
                    mean_log_error(one, method, truth) - min(mean_log_error(one, other, truth) for other in others)
                    for one in found
                ]
            )
            for film, found in self.films.items()
            if nulls or found is self.starts
        }
        own = differences.pop("the film")
        effect, n = mean_interval(own, block=BLOCK), len(own)
        against = METHODS[others[0]] if len(others) == 1 else "the better of copying and the mean"
        return error_ratio_evidence(
            name=f"{METHODS[method]} against {against}, vs {truth}",
            statistic=effect,
            nulls={null: mean_interval(values) for null, values in differences.items()},
            n=n,
            margin=MARGIN,
            too_few=f"fewer than {FEWEST} starts" if n < FEWEST else "",
            details=f", {signed(effect.mean)} in log MSE, lower at {count_wins(own)} of {n} starts",
            values=own,
            null_values=differences,
        )

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
                "one_step": [errors._asdict() for errors in result.method_errors("scores")],
                "rollout": [errors._asdict() for errors in result.method_errors("rollouts")],
            }
            for result in self.phases
        ]


def count_wins(differences: Array) -> int:
    """Starts at which a method is better by more than the margin."""
    return int(np.sum(differences < -MARGIN))
