"""One phase: PSMT and what it is compared with, on a stretch of a film."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from psmt.coding import SparseCoder
from psmt.evaluation import METHODS, Score, free_running, log_mse, teacher_forced
from psmt.experiments.phases import Phase
from psmt.experiments.prediction.settings import check_start
from psmt.experiments.shared_dictionary import SharingPSMT
from psmt.model import PSMT
from psmt.model.baselines import (
    Baseline1,
    Baseline2,
    CopyCode,
    CopyLast,
    LinearTrend,
    MeanCode,
    MeanFrame,
    RidgeAutoregression,
)
from psmt.model.paper_options import OURS
from psmt.series import Scaling
from psmt.types import Array, Predictor

Mode = Literal["scores", "rollouts"]
"""One-step predictions with delayed inputs, or free-running ones."""


class Row(NamedTuple):
    """One line of prediction.csv."""

    phase: str
    method: str
    step: int
    frame: int
    mse_vs_code: float
    mse_vs_frame: float


@dataclass(frozen=True)
class PhaseResult:
    """Everything that one phase gave."""

    phase: Phase
    n_components: int
    lam: float
    frames: Array
    """(horizon, n_features): the patches that were to be predicted."""
    estimates: Array
    """(horizon, n_features): what layer 1 makes of them."""
    scores: dict[str, Score]
    """One-step predictions with delayed inputs, by method."""
    rollouts: dict[str, Score]
    """Free-running predictions, by method."""
    picture_shape: tuple[int, int] | None = None
    """Height and width of frames that are pictures."""

    def rows(self, mode: Mode = "scores") -> Iterator[Row]:
        """Lines of the table, method by method."""
        for method, score in getattr(self, mode).items():
            for step, (code, frame) in enumerate(zip(score.vs_code, score.vs_frame, strict=True), start=1):
                yield Row(self.phase.name, method, step, self.phase.start + step, float(code), float(frame))


class Summary(NamedTuple):
    """Mean errors of a method over some rows."""

    method: str
    log_mse_vs_code: float
    mse_vs_code: float
    mse_vs_frame: float
    vs_copy: float
    """mse_vs_frame divided by that of copying the last patch; below 1 is better than copying."""
    vs_copy_code: float
    """mse_vs_code divided by that of copying the last code."""


def methods_of(psmt: PSMT, psmt_gain: PSMT) -> dict[str, Predictor]:
    """All that is compared, by name: PSMT, which is fitted, and what is not yet; baselines with layers share PSMT's."""
    shared: dict[str, Any] = {
        "window": psmt.window,
        "n_components": psmt.n_components_,
        "lam": psmt.lam_,
        "coder": psmt.coder_,
        "device": psmt.device,
        **{name: getattr(psmt, name) for name in OURS.parameters},
        "solver": psmt.solver,
        "random_state": psmt.random_state,
    }
    return {
        "psmt": psmt,
        "psmt_gain": psmt_gain,
        "baseline1": Baseline1(**shared),
        "baseline2": Baseline2(**shared),
        "copy": CopyLast(),
        "copy_code": CopyCode(**shared),
        "mean": MeanFrame(window=psmt.window_),
        "mean_code": MeanCode(**shared),
        "linear": LinearTrend(),
        "ridge": RidgeAutoregression(),
    }


def predict_phase(
    patches: Array,
    phase: Phase,
    *,
    horizon: int = 30,
    n_atoms: int = 512,
    window: int = 1536,
    n_components: int | Literal["auto"] = "auto",
    alpha: float = 1.0,
    lam: float | Literal["auto"] = "auto",
    seed: int = 0,
    departures: Mapping[str, Any] = MappingProxyType({}),
    solver: str = "closed",
    extrapolation: str = "linear",
    series: bool = False,
    device: str = "cpu",
) -> PhaseResult:
    """Predictions of all methods for the `horizon` frames after ``phase.start``.

    Dictionary, n_components, lam and gains come from frames before the start alone. Baselines 1 and 2 share PSMT's
    dictionary, n_components and lam. All that have layers depart from the paper alike. Features of a series are
    standardised by its past, and errors are those of standardised features.
    """
    check_start(phase.start, len(patches), window=window, horizon=horizon)
    if series:
        patches = Scaling.of(patches[: phase.start]).standardise(patches)
    past, delayed = patches[: phase.start], np.asarray(patches[phase.start : phase.start + horizon + 1])
    asked: dict[str, Any] = {
        "n_atoms": n_atoms,
        "window": window,
        "n_components": n_components,
        "alpha": alpha,
        "lam": lam,
        "random_state": seed,
        "solver": solver,
        "device": device,
        **departures,
    }
    learned: dict[int, SparseCoder] = {}
    psmt = SharingPSMT(extrapolation=extrapolation, **asked).share(learned).fit(past)
    methods = methods_of(psmt, SharingPSMT(extrapolation="gain", **asked).share(learned))
    estimates = psmt.coder_.inverse_transform(psmt.coder_.transform(delayed))
    n_components_used = len(psmt.embedding_)
    scores, rollouts = {}, {}
    for name, method in methods.items():
        # Who receives nothing after training, Baseline 1, has the first frame that all receive in its training window:
        # every method begins with the same frames.
        received = getattr(method, "static_window", False)
        fitted = psmt if method is psmt else method.fit(patches[: phase.start + received])
        rollouts[name] = free_running(deepcopy(fitted), delayed, estimates)
        scores[name] = teacher_forced(fitted, delayed, estimates)
    return PhaseResult(phase, n_components_used, psmt.lam_, delayed[1:], estimates[1:], scores, rollouts)


def summarise(rows: Iterable[Row], methods: Sequence[str] = tuple(METHODS)) -> list[Summary]:
    """Mean errors of each method, best `mse_vs_frame` first."""
    errors: dict[str, list[Row]] = {method: [] for method in methods}
    for row in rows:
        errors[row.method].append(row)
    means = {method: np.mean([row[4:] for row in lines], axis=0) for method, lines in errors.items() if lines}
    summaries = [
        Summary(
            method,
            float(np.mean(log_mse([row.mse_vs_code for row in errors[method]]))),
            float(code),
            float(frame),
            _ratio(frame, means["copy"][1]),
            _ratio(code, means["copy_code"][0]),
        )
        for method, (code, frame) in means.items()
    ]
    return sorted(summaries, key=lambda summary: summary.mse_vs_frame)


def _ratio(error: float, reference: float) -> float:
    return float(error / reference) if reference > 0 else float("nan")
