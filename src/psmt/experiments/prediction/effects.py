"""How much lower the error of one method is than that of others, start by start, on the film and on its nulls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from psmt.evaluation import METHODS, Interval, difference_interval, mean_interval
from psmt.experiments.prediction.phase import PhaseResult
from psmt.report import Verdict, all_hold, judged
from psmt.types import Array

MARGIN = 0.02
"""Mean log errors that differ by less than this, errors within 2% of each other, are a tie."""

BLOCK = 2
"""Successive starts that are drawn together: neighbours may show one scene."""

NO_ERROR = 1e-6
"""Errors below this share of the frames' variance count as this much: below it are rounding and a film that rests."""

Truth = Literal["code", "frame"]
"""What errors are against: the patch that the true code stands for, or the frame."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Paired differences of mean log errors: negative where the method is better than the best of the others."""

    method: str
    others: tuple[str, ...]
    truth: Truth
    differences: Array
    """(n_starts,): one per start of the film, in order."""
    null_differences: Mapping[str, Array]
    """The same (n_null,) by null; empty where the claim is no question of order in time."""

    @property
    def name(self) -> str:
        """The comparison in words."""
        others = METHODS[self.others[0]] if len(self.others) == 1 else "the better of copying and the mean"
        return f"{METHODS[self.method]} against {others}, vs {self.truth}"

    @property
    def effect(self) -> Interval:
        """Mean difference over the starts, with its interval."""
        return mean_interval(self.differences, block=BLOCK)

    @property
    def null_effects(self) -> dict[str, Interval]:
        """The same on each null, where starts are independent draws."""
        return {null: mean_interval(values) for null, values in self.null_differences.items()}

    @property
    def wins(self) -> int:
        """Starts at which the method is better by more than the margin."""
        return int(np.sum(self.differences < -MARGIN))

    @property
    def on_film(self) -> Verdict:
        """Whether the method is better on the film, nulls aside."""
        return judged(self.effect, margin=MARGIN)

    def beyond(self, null: str) -> Verdict:
        """Whether it is better on the film by more than on a null."""
        return judged(difference_interval(self.effect, self.null_effects[null]), margin=MARGIN)

    @property
    def verdict(self) -> Verdict:
        """Whether it is better on the film and, where it is, beyond each null too."""
        if self.on_film != "holds":
            return self.on_film
        return all_hold(["holds", *(self.beyond(null) for null in self.null_differences)])


def compare(
    film: Sequence[PhaseResult],
    nulls: Mapping[str, Sequence[PhaseResult]],
    method: str,
    others: Sequence[str],
    truth: Truth,
) -> Comparison:
    """The comparison of a method with the best of others at each start of the film, and of its nulls."""

    def differences(results: Sequence[PhaseResult]) -> Array:
        own = [mean_log_error(result, method, truth) for result in results]
        best = [min(mean_log_error(result, other, truth) for other in others) for result in results]
        return np.subtract(own, best)

    return Comparison(
        method=method,
        others=tuple(others),
        truth=truth,
        differences=differences(film),
        null_differences={name: differences(results) for name, results in nulls.items()},
    )


def mean_log_error(result: PhaseResult, method: str, truth: Truth) -> float:
    """Mean over the steps of a start of the logarithm of a method's MSE, none below `NO_ERROR`."""
    score = result.scores[method]
    errors = score.vs_code if truth == "code" else score.vs_frame
    least = max(NO_ERROR * float(np.var(result.frames)), np.finfo(float).tiny)
    return float(np.mean(np.log(np.maximum(errors, least))))
