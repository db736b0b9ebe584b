"""The map of regimes: which method predicts better than copying, by speed and noise; and where a film lies on it.

The map in the package was measured on the built-in film. ``python -m studies.regimes --out psmt-regimes`` makes it
again, as ``psmt-regimes/expectation_map.json``; reports use it after it is copied over the file beside this module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np

from psmt.data.speed_and_noise import Regime
from psmt.evaluation import Interval, log_mse, mean_interval
from psmt.report import Verdict, judged
from psmt.report.numbers import ratio
from psmt.types import Array

FORMAT = 1
"""Version of the file format."""

FILE = "expectation_map.json"

MARGIN = 0.05
"""Errors whose logarithms differ by less than this, about 5%, are a tie."""

METHODS = {
    "linear": "PSMT, straight line",
    "hold": "PSMT, hold",
    "gain": "PSMT, learned gain",
    "phase": "PSMT, phase",
    "baseline1": "Baseline 1",
    "baseline2": "Baseline 2",
    "copy_code": "copy last code",
    "copy": "copy last patch",
    "mean": "mean patch",
    "ridge": "ridge regression",
    "trend": "linear in pixels",
}
"""The methods that are compared, by their names in files, with the names for people."""

Against = Literal["code", "frame"]
COPIES: dict[Against, str] = {"code": "copy_code", "frame": "copy"}
"""What methods are compared with: copying the last code, vs code; copying the last patch, vs frame."""


class Ratio(NamedTuple):
    """An MSE divided by that of copying, with the bounds of its geometric mean over starts."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Whether it is below copying."""
        return judged(Interval(*np.log(self).tolist()), margin=MARGIN)


@dataclass(frozen=True, kw_only=True)
class RegimeMap:
    """Errors of each method relative to copying, by speed and noise."""

    speeds: tuple[float, ...]
    """Pixels per frame, ascending."""
    noises: tuple[float, ...]
    """Fractions of the contrast, ascending."""
    ratios: Mapping[Against, Mapping[str, Mapping[tuple[float, float], Ratio]]]
    """By what they are compared with, method, and (speed, noise)."""

    def nearest(self, regime: Regime) -> tuple[float, float]:
        """Speed and noise of the nearest film on the map."""
        speed = self.speeds[round(float(scale(regime.speed, self.speeds)))]
        return speed, self.noises[round(float(scale(regime.noise, self.noises)))]

    def best(self, cell: tuple[float, float], against: Against) -> str:
        """The method of least error in a cell."""
        return min(self.ratios[against], key=lambda method: self.ratios[against][method][cell].mean)

    def to_json(self) -> bytes:
        """The file that `from_json` reads: three digits per number, one line per method."""
        lines = [
            f'  "{against} {method}": {json.dumps([[_digits(x) for x in cells[cell]] for cell in self.cells])}'
            for against, methods in self.ratios.items()
            for method, cells in methods.items()
        ]
        head = {"format": FORMAT, "made_by": "studies.regimes", "speeds": self.speeds, "noises": self.noises}
        named = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        return ("{\n" + ",\n".join(named + lines) + "\n}\n").encode()

    @classmethod
    def from_json(cls, text: str | bytes) -> RegimeMap:
        """The map in a file.

        Raises
        ------
        ValueError
            When the file is of another format.
        """
        content = json.loads(text)
        if content.get("format") != FORMAT:
            raise ValueError(
                f"format={content.get('format')!r} is not {FORMAT}; make the map again: python -m studies.regimes"
            )
        speeds, noises = tuple(content["speeds"]), tuple(content["noises"])
        cells = [(speed, noise) for speed in speeds for noise in noises]
        ratios: dict[Against, dict[str, dict[tuple[float, float], Ratio]]] = {
            against: {
                method: {cell: Ratio(*three) for cell, three in zip(cells, content[f"{against} {method}"], strict=True)}
                for method in METHODS
            }
            for against in COPIES
        }
        return cls(speeds=speeds, noises=noises, ratios=ratios)

    @property
    def cells(self) -> list[tuple[float, float]]:
        """Speed and noise of each film."""
        return [(speed, noise) for speed in self.speeds for noise in self.noises]


def measured_map(errors: Mapping[tuple[float, float], Array]) -> RegimeMap:
    """The map from MSEs (n_starts, n_methods, 2), vs code and vs frame, by (speed, noise)."""
    ratios: dict[Against, dict[str, dict[tuple[float, float], Ratio]]] = {
        against: {method: {} for method in METHODS} for against in COPIES
    }
    for cell, values in errors.items():
        logs = log_mse(values)
        for column, (against, copying) in enumerate(COPIES.items()):
            gaps = logs[:, :, column] - logs[:, [list(METHODS).index(copying)], column]
            for method, gap in zip(METHODS, gaps.T, strict=True):
                # Each start is in a film of its own, so starts are independent.
                ratios[against][method][cell] = Ratio(*np.exp(mean_interval(gap)).tolist())
    speeds, noises = (tuple(sorted(set(axis))) for axis in zip(*errors, strict=True))
    return RegimeMap(speeds=speeds, noises=noises, ratios=ratios)


@cache
def shipped_map() -> RegimeMap:
    """The map that comes with the package."""
    return RegimeMap.from_json(files("psmt.experiments").joinpath(FILE).read_bytes())


def scale(value: float, marks: tuple[float, ...]) -> float:
    """Position of a value on an axis with marks at 0, 1, ..: logarithmic, and linear below the first positive mark.

    >>> [round(scale(value, (0.0, 0.1, 1.0)), 2) for value in (0.05, 0.1, 10**-0.5, 7.0)]
    [0.5, 1.0, 1.5, 2.0]
    """
    if marks[0] == 0 and len(marks) > 1 and value < marks[1]:
        return max(value, 0.0) / marks[1]
    first = 1 if marks[0] == 0 else 0
    return float(np.interp(np.log(max(value, 1e-12)), np.log(marks[first:]), np.arange(first, len(marks))))


def expectation(regime: Regime) -> str:
    """What to expect of a film of this regime: what the map says of the nearest film."""
    known = shipped_map()
    cell = known.nearest(regime)
    code, frame = (known.ratios[against]["linear"][cell] for against in ("code", "frame"))
    best = known.best(cell, "frame")
    return (
        f"The patch moves by {regime.speed:.2g} pixels per frame, with noise of {regime.noise:.1%} of its contrast. "
        f"On the built-in film at {cell[0]:g} pixels per frame and noise of {cell[1]:.0%}, PSMT's straight line has "
        f"{ratio(code.mean)} times the error of copying the code ({_WORDS[code.verdict]}) and {ratio(frame.mean)} "
        f"times that of copying the patch ({_WORDS[frame.verdict]}); nearest to the patch itself comes "
        f"{METHODS[best]}, with {ratio(known.ratios['frame'][best][cell].mean)} times the error of copying it."
    )


_WORDS: dict[Verdict, str] = {"holds": "it wins", "does not hold": "it loses", "inconclusive": "a tie"}


def _digits(value: float) -> float:
    return float(f"{value:.3g}")
