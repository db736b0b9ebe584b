"""Results of all starts, and their means with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from psmt.evaluation import Interval, error_ratio, mean_interval
from psmt.types import Array, Result
from studies.locality.made_up import KINDS
from studies.locality.settings import LocalitySettings

FILM = "film"
MATERIALS = {**{kind: f"made up: {text}" for kind, text in KINDS.items()}, FILM: "the film"}
"""Names in reports of the series that are predicted, called materials."""

REFERENCES = ("copy", "copy_code", "mean")
"""Predictions without an embedding."""

NEIGHBOURS = 2
"""Starts of a film per block of an interval: the windows of neighbouring starts overlap."""


class LocalityRow(NamedTuple):
    """One line of locality.csv: means over the windows of one start."""

    material: str
    start: int
    method: str
    atoms_used: float
    group_share: float
    frames_used: float
    roughness: float
    """Roughness, divided by the roughness of the closed form."""
    mse_vs_frame: float
    mse_vs_code: float
    missed: float
    """Share of the windows in which the solver stopped above its tolerance."""


@dataclass
class Material:
    """Results on one material (the film, or a kind of made-up series), by solution and start."""

    name: str
    results: dict[str, dict[int, Result]] = field(default_factory=dict)

    def add(self, start: int, solution: str, result: Result) -> None:
        """Add the result of a solution at a start."""
        self.results.setdefault(solution, {})[start] = result

    @property
    def methods(self) -> list[str]:
        """All methods: the solutions, the rotated closed form, and the references."""
        first, *others = self.results
        return [first, "turned", *others, *REFERENCES]

    @property
    def n_starts(self) -> int:
        """Number of starts."""
        return len(self.results["closed"])

    @property
    def has_groups(self) -> bool:
        """Whether the group of each atom is known."""
        return "group" in self.results["closed"][0]

    def values(self, method: str, what: str) -> Array:
        """Return the mean (n_starts,) of a measure or an error at each start; NaN if the method does not have it."""
        return np.array([_mean(self.results, method, what, start) for start in range(self.n_starts)])

    def weights(self, method: str) -> Array:
        """Return P (n_components, n_atoms) of the last window of the first start, times the atoms' deviations."""
        prefix, solution = ("turned_", "closed") if method == "turned" else ("", method)
        weights: Array = self.results[solution][0][f"{prefix}weights"]
        return weights

    def interval(self, method: str, what: str) -> Interval:
        """Mean over starts and its interval."""
        return mean_interval(self.values(method, what), **self._dependence)

    def log_ratio(self, method: str, what: str, reference: str = "closed") -> Interval:
        """Return the mean logarithm of the ratio to a reference method at the same start, and its interval."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.values(method, what) / self.values(reference, what))
        return mean_interval(logs, **self._dependence)

    @property
    def _dependence(self) -> dict[str, Any]:
        """Starts of a film may depend on each other; made-up series do not."""
        return {"block": NEIGHBOURS} if self.name == FILM else {"independent": True}

    def rows(self) -> Iterator[LocalityRow]:
        """Lines of locality.csv."""
        for method in self.methods:
            columns = [self.values(method, what).tolist() for what in ("atoms", "group", "frames")]
            roughness = self.values(method, "roughness") / self.values("closed", "roughness")
            errors = [self.values(method, what).tolist() for what in ("mse", "mse_code", "missed")]
            for start, values in enumerate(zip(*columns, roughness.tolist(), *errors, strict=True)):
                yield LocalityRow(self.name, start, method, *values)


def _mean(results: dict[str, dict[int, Result]], method: str, what: str, start: int) -> float:
    solution, key = method, what
    if method in REFERENCES:
        # References do not depend on the solution, and have only an error vs frame.
        solution, key = "closed", method if what == "mse" else ""
    elif method == "turned":
        solution, key = "closed", f"turned_{what}" if what in ("atoms", "group", "frames") else what
    found = results[solution][start].get(key)
    return float("nan") if found is None else float(np.mean(found))


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalityResult:
    """Results on all materials (the film and the made-up series)."""

    settings: LocalitySettings
    n_frames: int
    materials: tuple[Material, ...]

    def rows(self) -> Iterator[LocalityRow]:
        """Lines of locality.csv."""
        for material in self.materials:
            yield from material.rows()


def versus_copying(material: Material, method: str) -> float:
    """Return the MSE vs frame divided by that of copying the last frame. Both are means over all starts."""
    return error_ratio(float(material.values(method, "mse").mean()), float(material.values("copy", "mse").mean()))
