"""Run `psmt predict` at many starts (frames after which all methods predict), on the film and on its null models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from psmt.data import SeriesSource
from psmt.evaluation import METHODS, mse, swap_interval
from psmt.evaluation.intervals import FEWEST_SWAPS
from psmt.evaluation.null_models import NULL_NAMES, NULLS
from psmt.experiments.phases import FilmPhase, Stretch, find_phases
from psmt.experiments.prediction.phase import (
    INTERVAL,
    MethodErrors,
    PhaseResult,
    Truth,
    mean_error,
    mean_log_error,
    predict_patches,
    rank_methods,
    read_whole_frames,
    unpack_phase,
)
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.report.claim import Evidence, error_ratio_evidence
from psmt.report.numbers import signed
from psmt.series import Scaling
from psmt.types import Array, Levels
from psmt.utils.validation import check_film

_NOT_INPUTS = {"starts", "n_starts", "n_null", "search", "departures"}
"""Settings that choose the tasks. The other settings are inputs of each task."""


def predict(
    values: ArrayLike,
    settings: PredictionSettings,
    run: Run,
    *,
    errors: Array | None = None,
    segment: Stretch | None = None,
) -> "PredictionResult":
    """Predict patches of a film, or a series (time, n_features), with all methods at many starts.

    The starts are the phases, which the report shows in detail (Fig. 4), and further frames of the film. At some
    starts, null models of the film are predicted too. The phases are the starts in the settings. If the settings have
    none, `find_phases` chooses the phases from the `segment` and from the reconstruction `errors` (time,).
    """
    film = check_film(values)
    settings.check(len(film))
    phases = choose_phases(settings, errors, segment)
    starts = choose_starts(
        phases, len(film), window=settings.window, horizon=settings.horizon, n_starts=settings.n_starts
    )
    tested = choose_null_starts(starts, settings.n_null)
    run = replace(run, name="prediction")
    around = read_whole_frames(run, sorted({own.start for own in (*phases, *starts)}), horizon=settings.horizon)

    def results(chosen: Sequence[FilmPhase], stage: str, null: str = "", **more: Any) -> list[PhaseResult]:
        frames: dict[int, dict[str, Any]] = {} if null else around
        tasks = [phase_task(film, own, settings, run, null=null, **frames.get(own.start, {}), **more) for own in chosen]
        found = zip(chosen, run.tasks(tasks, stage), strict=True)
        return [replace(unpack_phase(*one), picture_shape=run.picture_shape) for one in found]

    shown = phases[-1].start
    own = results(phases, "phases", interval=INTERVAL)
    more = results([start for start in starts if start not in phases], "more starts")
    return PredictionResult(
        settings=settings,
        phases=own,
        starts=sorted([*own, *more], key=lambda result: result.phase.start),
        nulls={null: results(tested, f"null ({null})", null) for null in NULLS},
        frame=run.surroundings and run.surroundings([slice(shown, shown + 1)], whole=True)[0],
        series=run.series,
    )


def choose_phases(own: PredictionSettings, errors: Array | None, segment: Stretch | None = None) -> list[FilmPhase]:
    """Return phases at the starts in the settings. Without starts, find phases from reconstruction errors (time,)."""
    if own.starts:
        return [FilmPhase(f"start-{start}", start) for start in dict.fromkeys(own.starts)]
    if errors is None:
        raise ValueError("without starts, phases are found by reconstruction errors; give either")
    return find_phases(errors, window=own.window, horizon=own.horizon, search=own.search, segment=segment)


def choose_starts(
    phases: Sequence[FilmPhase], n_frames: int, *, window: int, horizon: int, n_starts: int
) -> list[FilmPhase]:
    """Return at most `n_starts` starts in the order of the film: the phases, and further, evenly spaced starts.

    No two starts predict the same frame: further starts whose frames overlap with a phase are left out.

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
    """Return at most `n_null` of the starts, evenly spaced, at which null models are predicted."""
    places = np.linspace(0, len(starts) - 1, min(n_null, len(starts))).round().astype(int)
    return [starts[place] for place in places]


def phase_task(
    patches: Array, phase: FilmPhase, settings: PredictionSettings, run: Run, *, null: str = "", **more: Any
) -> Task:
    """Return a task that calls `predict_patches` for a phase. The keywords `more` are passed on to it."""
    inputs: dict[str, Any] = {
        **{own.name: getattr(settings, own.name) for own in fields(settings) if own.name not in _NOT_INPUTS},
        "patches": patches[: phase.start + settings.horizon + 1],
        "start": phase.start,
        "departures": settings.departures.parameters,
        "picture_shape": run.picture_shape,
        "null": null,
        **more,
    }
    name = f"prediction-{f'{null}-' if null else ''}{phase.name}-M{settings.n_atoms:04d}-H{settings.window:05d}"
    return Task(name, predict_patches, inputs | on_device(run.device))


MARGIN = 0.02
"""Mean errors that differ by less than 2% count as equal."""

SIMPLE = ("copy", "mean", "linear", "pixel_gain", "ridge", "pca_var", "sfa", "motion")
"""Methods without a code that use only the pixels of the patch."""


class Pair(NamedTuple):
    """A comparison of two groups of methods: the best method of each group, by errors against the `truth`."""

    methods: tuple[str, ...]
    others: tuple[str, ...]
    truth: Truth
    is_control: bool = False
    """Whether the comparison is a control. Controls use no null models, because the mean is best on these anyway."""


COMPARISONS: dict[str, list[Pair]] = {
    "dynamic_beats_static": [
        Pair(("psmt",), ("baseline1",), "code"),
        Pair(("psmt",), ("baseline2",), "code"),
        Pair(("psmt",), ("mean_code",), "code", is_control=True),
    ],
    "beats_copying": [Pair(("psmt",), ("copy_code", "mean_code"), "code")],
    "gain_beats_copying": [Pair(("psmt_gain",), ("copy_code", "mean_code"), "code")],
    "beats_simple_rules": [Pair(("psmt", "psmt_gain"), SIMPLE, "frame")],
    "embedding_helps": [
        Pair((method,), (twin,), truth)
        for truth in get_args(Truth)
        for method, twin in (("psmt", "code_line"), ("psmt_gain", "code_gain"))
    ],
    "codes_help": [Pair(("code_line",), ("linear",), "frame"), Pair(("code_gain",), ("pixel_gain",), "frame")],
}
"""Comparisons that decide each claim. Errors against codes and against frames are compared separately, because a method
that uses codes always loses the part of a frame that its code does not contain."""


@dataclass(frozen=True, kw_only=True)
class PredictionResult:
    """Predictions at all starts, on the film and on its null models."""

    settings: PredictionSettings
    phases: Sequence[PhaseResult]
    """The phases in Fig. 4: those at the given starts, or else a calm and a lively phase."""
    starts: Sequence[PhaseResult]
    """Predictions at all starts that decide the claims, including the phases, in the order of the film."""
    nulls: Mapping[str, Sequence[PhaseResult]]
    """Predictions at some of the starts, for each null model (see `psmt.evaluation.null_models`)."""
    frame: tuple[Levels, list[int]] | None = None
    """The first frame (1, height, width) of the last phase, and the patch's corner, or None without a film."""
    series: SeriesSource | None = None
    """The series as it was read, or None for a film."""

    @property
    def forecasts(self) -> dict[str, Array]:
        """For each phase, (4, horizon, n_features): truth, prediction, lower and upper bound, in units of the input."""
        restore = Scaling.of(self.series.values).restore if self.series else np.asarray
        return {one.phase.name: restore(one.forecast) for one in self.phases if one.forecast is not None}

    @cached_property
    def ranking(self) -> list[MethodErrors]:
        """Mean errors of each method over all starts, lowest `mse_vs_frame` first."""
        return rank_methods([one.scores for one in self.starts])

    @cached_property
    def evidence(self) -> dict[str, list[Evidence]]:
        """For each claim, the comparisons of two methods that decide it: ratios of their mean errors."""
        return {key: [self.compare(pair) for pair in pairs] for key, pairs in COMPARISONS.items()}

    def compare(self, pair: Pair) -> Evidence:
        """Return evidence: the log ratio of the two methods' mean MSE over all starts, on the film and null models."""
        nulls = {} if pair.is_control else {NULL_NAMES[null]: found for null, found in self.nulls.items()}
        films = {"the film": self.starts, **nulls}
        chosen = {film: self._choose(pair, found) for film, found in films.items() if found}
        errors = {
            film: [np.array([mean_error(one, method, pair.truth) for one in films[film]]) for method in methods]
            for film, methods in chosen.items()
        }
        (method, other), n = chosen["the film"], len(self.starts)
        logs = np.array([[mean_log_error(one, name, pair.truth) for one in self.starts] for name in (method, other)])
        less: Array = logs[0] - logs[1]
        return error_ratio_evidence(
            name=f"{METHODS[method]} against {METHODS[other]}, vs {pair.truth}",
            statistic=swap_interval(*errors.pop("the film")),
            nulls={null: swap_interval(*both) for null, both in errors.items()},
            n=n,
            margin=MARGIN,
            too_few=f"fewer than {FEWEST_SWAPS} starts" if n < FEWEST_SWAPS else "",
            details=f", {signed(float(less.mean()))} in mean log MSE, lower at {np.sum(less < -MARGIN)} of {n} starts",
            is_control=pair.is_control,
        )

    @staticmethod
    def _choose(pair: Pair, found: Sequence[PhaseResult]) -> tuple[str, str]:
        """Return the method with the lowest mean error in each of the two groups of a comparison."""

        def total(method: str) -> float:
            return sum(mean_error(one, method, pair.truth) for one in found)

        sides = ([name for name in side if name in found[0].scores] for side in (pair.methods, pair.others))
        first, second = (min(side, key=total) for side in sides)
        return first, second

    def summary(self) -> list[dict[str, Any]]:
        """Return the numbers of each phase, for JSON."""
        return [
            {
                "phase": result.phase.name,
                "start": result.phase.start,
                "n_components": result.n_components,
                "lam": result.lam,
                "coding_mse_vs_frame": float(np.mean(mse(result.estimates, result.frames))),
                "one_step": [errors._asdict() for errors in result.method_errors("scores")],
                "rollout": [errors._asdict() for errors in result.method_errors("rollouts")],
            }
            for result in self.phases
        ]
