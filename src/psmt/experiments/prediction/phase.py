"""One phase: PSMT and the methods that it is compared with predict a stretch of a film."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from psmt.coding import SparseCoder
from psmt.evaluation import METHODS, Score, error_ratio, free_running, log_mse, teacher_forced
from psmt.evaluation.null_models import NULLS
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.settings import check_start
from psmt.model import PSMT, baselines
from psmt.model.paper_options import OURS
from psmt.series import Scaling
from psmt.types import Array, Predictor, Progress, Result, silent

Mode = Literal["scores", "rollouts"]
"""One-step predictions with delayed inputs, or free-running predictions."""

Truth = Literal["code", "frame"]
"""What errors are measured against: the patch that the true code stands for, or the frame itself."""

NO_ERROR = 1e-6
"""Smallest error in a logarithm, relative to the variance of the frames. Smaller errors are rounding errors."""


class PredictionRow(NamedTuple):
    """One line of prediction.csv."""

    phase: str
    method: str
    step: int
    frame: int
    mse_vs_code: float
    mse_vs_frame: float


class MethodErrors(NamedTuple):
    """Mean errors of a method over the steps of a phase."""

    method: str
    log_mse_vs_code: float
    mse_vs_code: float
    mse_vs_frame: float
    vs_copy: float
    """mse_vs_frame divided by that of copying the last patch; below 1 is better than copying."""
    vs_copy_code: float
    """mse_vs_code divided by that of copying the last code."""


@dataclass(frozen=True)
class PhaseResult:
    """Predictions of all methods in one phase."""

    phase: FilmPhase
    n_components: int
    lam: float
    frames: Array
    """(horizon, n_features): the patches to predict."""
    estimates: Array
    """(horizon, n_features): the same patches after coding and decoding in layer 1."""
    scores: dict[str, Score]
    """One-step predictions with delayed inputs, by method."""
    rollouts: dict[str, Score]
    """Free-running predictions, by method."""
    picture_shape: tuple[int, int] | None = None
    """Height and width of frames that are pictures."""

    def rows(self, mode: Mode = "scores") -> Iterator[PredictionRow]:
        """Lines of the table, method by method."""
        for method, score in getattr(self, mode).items():
            for step, (code, frame) in enumerate(zip(score.vs_code, score.vs_frame, strict=True), start=1):
                yield PredictionRow(self.phase.name, method, step, self.phase.start + step, float(code), float(frame))

    def method_errors(self, mode: Mode = "scores") -> list[MethodErrors]:
        """Mean errors of each method, lowest `mse_vs_frame` first."""
        scores: dict[str, Score] = getattr(self, mode)
        means = {name: np.stack([own.vs_code, own.vs_frame], axis=1).mean(axis=0) for name, own in scores.items()}
        errors = [
            MethodErrors(
                method,
                float(np.mean(log_mse(scores[method].vs_code))),
                float(code),
                float(frame),
                float(error_ratio(frame, means["copy"][1])),
                float(error_ratio(code, means["copy_code"][0])),
            )
            for method, (code, frame) in means.items()
        ]
        return sorted(errors, key=lambda own: own.mse_vs_frame)


def mean_log_error(result: PhaseResult, method: str, truth: Truth) -> float:
    """Mean logarithm of a method's MSE over the steps of a phase, see `NO_ERROR`."""
    errors = getattr(result.scores[method], f"vs_{truth}")
    least = max(NO_ERROR * float(np.var(result.frames)), np.finfo(float).tiny)
    return float(np.mean(np.log(np.maximum(errors, least))))


class SharingPSMT(PSMT):
    """PSMT that takes its dictionary from other models of the same film, if one of them has learned it before."""

    def share(self, learned: dict[int, SparseCoder]) -> Self:
        """Read and store coders here, by the number of frames from the start of the film that they were fitted to."""
        self._learned = learned
        return self

    def fit_coder(
        self, samples: Array, learned: SparseCoder | None = None, *, progress: Progress = silent
    ) -> SparseCoder:
        """The shared coder that was fitted to as many frames, or a new one."""
        if len(samples) not in self._learned:
            self._learned[len(samples)] = super().fit_coder(samples, learned, progress=progress)
        return self._learned[len(samples)]


def methods_of(psmt: PSMT, psmt_gain: PSMT) -> dict[str, Predictor]:
    """All methods by name. PSMT is fitted, the others are not yet; baselines with layers share those of PSMT."""
    shared: dict[str, Any] = {"n_components": psmt.n_components_, "lam": psmt.lam_, "coder": psmt.coder_}
    shared |= {name: getattr(psmt, name) for name in ("window", "device", "solver", "random_state", *OURS.parameters)}
    return {
        "psmt": psmt,
        "psmt_gain": psmt_gain,
        "baseline1": baselines.Baseline1(**shared),
        "baseline2": baselines.Baseline2(**shared),
        "copy": baselines.CopyLast(),
        "copy_code": baselines.CopyCode(**shared),
        "mean": baselines.MeanFrame(window=psmt.window_),
        "mean_code": baselines.MeanCode(**shared),
        "linear": baselines.LinearTrend(),
        "ridge": baselines.RidgeAutoregression(),
    }


def predict_phase(
    patches: Array,
    phase: FilmPhase,
    *,
    horizon: int,
    window: int,
    seed: int = 0,
    extrapolation: str = "linear",
    series: bool = False,
    **model: Any,
) -> PhaseResult:
    """Predictions of all methods for the `horizon` frames after ``phase.start``.

    Dictionary, n_components, lam and gains come from frames before the start only. Baselines 1 and 2 share PSMT's
    dictionary, n_components and lam. Features of a series are standardised by its past, and errors are those of
    standardised features. Other keywords are parameters of `PSMT`, for all methods that have layers.
    """
    check_start(phase.start, len(patches), window=window, horizon=horizon)
    if series:
        patches = Scaling.of(patches[: phase.start]).standardise(patches)
    past, delayed = patches[: phase.start], np.asarray(patches[phase.start : phase.start + horizon + 1])
    model |= {"window": window, "random_state": seed}
    learned: dict[int, SparseCoder] = {}
    psmt = SharingPSMT(extrapolation=extrapolation, **model).share(learned).fit(past)
    methods = methods_of(psmt, SharingPSMT(extrapolation="gain", **model).share(learned))
    estimates = psmt.coder_.inverse_transform(psmt.coder_.transform(delayed))
    n_components_used = len(psmt.embedding_)
    scores, rollouts = {}, {}
    for name, method in methods.items():
        # Baseline 1 receives nothing after training. So its training window includes the first frame that the others
        # receive: every method begins with the same frames.
        received = getattr(method, "static_window", False)
        fitted = psmt if method is psmt else method.fit(patches[: phase.start + received])
        rollouts[name] = free_running(deepcopy(fitted), delayed, estimates)
        scores[name] = teacher_forced(fitted, delayed, estimates)
    return PhaseResult(phase, n_components_used, psmt.lam_, delayed[1:], estimates[1:], scores, rollouts)


def predict_patches(
    *, patches: Array, start: int, departures: Mapping[str, Any], null: str = "", **settings: Any
) -> Result:
    """Arrays of `predict_phase` for the frames after `start`, on the film or on a null model of it. One task."""
    if null:
        # Each start draws its own null, so that its errors are independent of those at other starts.
        patches = NULLS[null](patches, np.random.default_rng([settings["seed"], start]))
    result = predict_phase(patches, FilmPhase("phase", start), **departures, **settings)
    arrays = {name: np.asarray(getattr(result, name)) for name in ("n_components", "lam", "frames", "estimates")}
    for mode in get_args(Mode):
        for method, score in getattr(result, mode).items():
            arrays |= {f"{mode}-{method}-{name}": values for name, values in vars(score).items()}
    return arrays


def unpack_phase(phase: FilmPhase, arrays: Result) -> PhaseResult:
    """The result of a phase from the arrays of `predict_patches`."""
    fields = Score.__dataclass_fields__
    scores, rollouts = (
        {method: Score(**{name: arrays[f"{mode}-{method}-{name}"] for name in fields}) for method in METHODS}
        for mode in get_args(Mode)
    )
    n_components, lam = int(arrays["n_components"]), float(arrays["lam"])
    return PhaseResult(phase, n_components, lam, arrays["frames"], arrays["estimates"], scores, rollouts)
