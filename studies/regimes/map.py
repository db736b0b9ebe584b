"""The map of regimes: which method predicts best at each speed and noise of a film, from measured errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from psmt.evaluation import METHODS as METHOD_NAMES
from psmt.evaluation import Interval, swap_interval
from psmt.evaluation.metrics import FLOOR
from psmt.report.claim import Verdict, error_ratio_evidence
from psmt.types import Array

MARGIN = 0.05
"""Two errors count as equal if their logarithms differ by less than this, which is about 5%."""

LABELS = METHOD_NAMES | {"psmt_hold": "PSMT, hold", "psmt_phase": "PSMT, phase"}
"""Names of the compared methods for readers, by their name in files. ``psmt`` is the paper's straight line."""

Place = tuple[float, float]
"""Speed and noise of a film on the map: pixels per frame, and a fraction of the contrast."""

PSMT_RULES = {"psmt": "linear", "psmt_hold": "hold", "psmt_gain": "gain", "psmt_phase": "phase"}
"""Extrapolations of PSMT, by their name in files."""

SIMPLE = (
    *("code_line", "code_gain", "copy_code", "copy", "mean", "linear", "pixel_gain"),
    *("ridge", "pca_var", "sfa", "motion"),
)
"""Methods without an embedding. For each speed and noise, PSMT is compared with the best of them."""

METHODS = (*PSMT_RULES, "baseline1", "baseline2", *SIMPLE)

Against = Literal["code", "frame"]
COPIES: dict[Against, str] = {"code": "copy_code", "frame": "copy"}
"""The copying method that others are compared with: it copies the last code or the last patch (frame)."""


class Ratio(NamedTuple):
    """The mean MSE of one method divided by that of another method, with its 95% interval."""

    mean: float
    low: float
    high: float
    method: str = ""
    """The method that gave this cell of a map: the best simple method or the best method of all."""

    @property
    def verdict(self) -> Verdict:
        """Return whether the ratio is below 1."""
        logs = Interval(*np.log(self[:3]).tolist())
        return error_ratio_evidence(name="", statistic=logs, margin=MARGIN).as_measured.verdict


@dataclass(frozen=True, kw_only=True)
class MeasuredMap:
    """Ratios of mean MSEs over the films of each cell."""

    ratios: Mapping[Against, Mapping[str, Mapping[Place, Ratio]]]
    """Errors divided by those of copying, by the truth ('code' or 'frame'), the method, and (speed, noise)."""
    to_simple: Mapping[Against, Mapping[str, Mapping[Place, Ratio]]]
    """Errors of PSMT's extrapolations, divided by those of the best method without an embedding (see `SIMPLE`)."""

    @classmethod
    def of(cls, errors: Mapping[Place, Array]) -> MeasuredMap:
        """Return the map from MSEs (n_starts, n_methods, 2), vs code and vs frame, by (speed, noise)."""
        ratios: dict[Against, dict[str, dict[Place, Ratio]]] = {
            against: {method: {} for method in METHODS} for against in COPIES
        }
        to_simple: dict[Against, dict[str, dict[Place, Ratio]]] = {
            against: {method: {} for method in PSMT_RULES} for against in COPIES
        }
        for place, values in errors.items():
            for column, (against, copying) in enumerate(COPIES.items()):
                own = dict(zip(METHODS, np.maximum(values[:, :, column], FLOOR).T, strict=True))
                simple = min(SIMPLE, key=lambda method: own[method].mean())
                for method in METHODS:
                    ratios[against][method][place] = _ratio(own[method], own[copying], method)
                for method in PSMT_RULES:
                    to_simple[against][method][place] = _ratio(own[method], own[simple], simple)
        return cls(ratios=ratios, to_simple=to_simple)

    def best(self, against: Against) -> dict[Place, Ratio]:
        """Return the method with the least error in each cell, divided by copying."""
        methods = self.ratios[against].values()
        places = next(iter(methods))
        return {place: min((own[place] for own in methods), key=lambda found: found.mean) for place in places}


def _ratio(errors: Array, others: Array, method: str) -> Ratio:
    """Return the ratio of mean MSEs (n_starts,). Starts are in different films, so they are independent."""
    mean, low, high = np.exp(swap_interval(errors, others)).tolist()
    return Ratio(mean, low, high, method)


def marks_of(cells: Mapping[Place, Ratio]) -> tuple[list[float], list[float]]:
    """Return the speeds and the noises of the cells of a map, in ascending order."""
    speeds, noises = (sorted(set(axis)) for axis in zip(*cells, strict=True))
    return speeds, noises
