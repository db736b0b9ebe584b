"""Predictions at all starts, and the evidence that they give on each claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psmt.evaluation import METHODS, mean_interval, mse
from psmt.evaluation.null_models import NULL_NAMES
from psmt.experiments.phases import phase_motion
from psmt.experiments.prediction.phase import PhaseResult, Truth, mean_log_error
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.report import Evidence
from psmt.report.numbers import log_ratio, signed
from psmt.types import Array

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
        return Evidence(
            name=f"{METHODS[method]} against {against}, vs {truth}",
            statistic=effect,
            nulls={null: mean_interval(values) for null, values in differences.items()},
            n=n,
            margin=MARGIN,
            lower_is_better=True,
            write=log_ratio,
            unit=" × the error",
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
