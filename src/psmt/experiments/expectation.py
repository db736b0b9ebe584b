"""The map of regimes: which methods predict better than copying, by speed and noise; and where a film lies on it.

The map that ships was measured on the built-in film. ``python -m studies.regimes --out psmt-regimes`` makes it again as
``psmt-regimes/expectation_map.json``; copied over the file beside this module, it is the map that reports use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import starmap
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from psmt.data.speed_and_noise import Regime
from psmt.evaluation import Interval
from psmt.figures.layouts import panel_figure
from psmt.figures.panels import heading
from psmt.figures.style import COLOURS, INK, SMALL, style_axes
from psmt.report import Verdict, error_ratio_evidence
from psmt.report.numbers import ratio

FORMAT = 1
"""Version of the file's format."""

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
"""Methods that are compared, by their name in files, with the name for people."""

Place = tuple[float, float]
"""Speed and noise of a film on the map."""
Against = Literal["code", "frame"]
COPIES: dict[Against, str] = {"code": "copy_code", "frame": "copy"}
"""Methods are compared with copying the last code, vs code; and with copying the last patch, vs frame."""

_COLOURS = LinearSegmentedColormap.from_list("copying", [COLOURS[0], "#ffffff", COLOURS[1]])
_FULL = np.log(30.0)
"""A ratio of 30, or 1 / 30, has the full colour."""


class Ratio(NamedTuple):
    """An MSE divided by that of copying: geometric mean over starts, and its interval."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Whether it is below copying."""
        return error_ratio_evidence(name="", statistic=Interval(*np.log(self).tolist()), margin=MARGIN).verdict


@dataclass(frozen=True, kw_only=True)
class RegimeMap:
    """Errors of each method divided by those of copying, by speed and noise."""

    speeds: tuple[float, ...]
    """Pixels per frame, in increasing order."""
    noises: tuple[float, ...]
    """Fractions of the contrast, in increasing order."""
    ratios: Mapping[Against, Mapping[str, Mapping[Place, Ratio]]]
    """By what errors are measured against, method, and (speed, noise)."""

    def nearest(self, regime: Regime) -> Place:
        """Speed and noise of the cell of the map that is nearest to this regime."""
        speed = self.speeds[round(float(scale(regime.speed, self.speeds)))]
        return speed, self.noises[round(float(scale(regime.noise, self.noises)))]

    def best(self, cell: Place, against: Against) -> str:
        """The method of least error in a cell."""
        return min(self.ratios[against], key=lambda method: self.ratios[against][method][cell].mean)

    @classmethod
    def from_json(cls, text: str | bytes) -> RegimeMap:
        """The map in a file. Raises ValueError if the file has another format."""
        content = json.loads(text)
        if content.get("format") != FORMAT:
            raise ValueError(
                f"format={content.get('format')!r} is not {FORMAT}; make the map again: python -m studies.regimes"
            )
        speeds, noises = tuple(content["speeds"]), tuple(content["noises"])
        cells = [(speed, noise) for speed in speeds for noise in noises]
        ratios = {
            against: {
                method: dict(zip(cells, starmap(Ratio, content[f"{against} {method}"]), strict=True))
                for method in METHODS
            }
            for against in COPIES
        }
        return cls(speeds=speeds, noises=noises, ratios=ratios)

    @property
    def cells(self) -> list[Place]:
        """Speed and noise of each cell."""
        return [(speed, noise) for speed in self.speeds for noise in self.noises]


@cache
def shipped_map() -> RegimeMap:
    """The map that comes with the package."""
    return RegimeMap.from_json(files("psmt.experiments").joinpath(FILE).read_bytes())


def scale(value: float, marks: tuple[float, ...]) -> float:
    """Place of a value on an axis with marks at 0, 1, ..: by its logarithm, or linear below the first positive mark.

    >>> [round(scale(value, (0.0, 0.1, 1.0)), 2) for value in (0.05, 0.1, 10**-0.5, 7.0)]
    [0.5, 1.0, 1.5, 2.0]
    """
    if marks[0] == 0 and len(marks) > 1 and value < marks[1]:
        return max(value, 0.0) / marks[1]
    first = 1 if marks[0] == 0 else 0
    return float(np.interp(np.log(max(value, 1e-12)), np.log(marks[first:]), np.arange(first, len(marks))))


def expectation(regime: Regime) -> str:
    """Two sentences on what to expect of a film of this regime: what the map says of the nearest cell."""
    known = shipped_map()
    cell = known.nearest(regime)
    code, frame = (known.ratios[against]["linear"][cell] for against in ("code", "frame"))
    best = known.best(cell, "frame")
    words: dict[Verdict, str] = {"holds": "it wins", "does not hold": "it loses", "inconclusive": "a tie"}
    return (
        f"The patch moves by {regime.speed:.2g} pixels per frame, with noise of {regime.noise:.1%} of its contrast. "
        f"On the built-in film at {cell[0]:g} pixels per frame and noise of {cell[1]:.0%}, PSMT's straight line has "
        f"{ratio(code.mean)} times the error of copying the code ({words[code.verdict]}) and {ratio(frame.mean)} "
        f"times that of copying the patch ({words[frame.verdict]}). The lowest error vs the patch itself is that of "
        f"{METHODS[best]}: {ratio(known.ratios['frame'][best][cell].mean)} times the error of copying it."
    )


def place_figure(known: RegimeMap, regime: Regime | None = None) -> Figure:
    """Figure of the straight line against copying the code and the patch, and the best method; with a film's place."""
    note = REGIME_NOTE
    if regime is not None:
        note += "\nDiamond: this film’s median speed and its noise; bar: the middle half of its speeds."
    figure, panels = panel_figure(
        [["a", "b", "c"]],
        height=1.85 + 0.36 * len(known.noises),
        title="Where the paper’s straight line beats copying" + ("" if regime is None else ", and this film"),
        note=note,
    )
    draw_regimes(panels, known)
    if regime is not None:
        slow, middle, fast = (scale(speed, known.speeds) for speed in (regime.slow, regime.speed, regime.fast))
        noise = scale(regime.noise, known.noises)
        for axes in panels.values():
            axes.plot([slow, fast], [noise, noise], color=INK, linewidth=2.2, zorder=5, solid_capstyle="round")
            axes.plot(middle, noise, marker="D", markersize=7.5, color="#f0e442", markeredgecolor=INK, zorder=6)
    return figure


REGIME_NOTE = (
    "MSE divided by that of copying: blue wins, orange loses; in brackets, inconclusive (95% interval over films, 5% "
    "margin)."
)


def draw_regimes(panels: Mapping[str, Axes], known: RegimeMap) -> None:
    """Draw the straight line against copying code (a) and patch (b), and the method of least error vs frame (c)."""
    linear = dict.fromkeys(known.cells, "linear")
    draw_ratios(panels["a"], known, "code", linear, _write_ratio)
    draw_ratios(panels["b"], known, "frame", linear, _write_ratio)
    best = {cell: known.best(cell, "frame") for cell in known.cells}
    draw_ratios(panels["c"], known, "frame", best, lambda method, _: {"s": _SHORT[method], "fontsize": 6.6})
    titles = ("straight line ÷ copying code", "straight line ÷ copying patch", "least error vs frame")
    for (letter, axes), title in zip(panels.items(), titles, strict=False):
        heading(axes, letter, title)
        axes.set_xticks(range(len(known.speeds)), [f"{speed:g}" for speed in known.speeds])
        axes.set_yticks(range(len(known.noises)), [f"{noise:g}" for noise in known.noises])
        axes.tick_params(labelleft=letter == "a")
        axes.set_xlabel("speed (pixels per frame)", fontsize=SMALL, color=INK)
    panels["a"].set_ylabel("noise ÷ contrast", fontsize=SMALL, color=INK)


def draw_ratios(
    axes: Axes,
    known: RegimeMap,
    against: Against,
    methods: Mapping[tuple[float, float], str],
    write: Callable[[str, Ratio], dict[str, Any]] | None = None,
) -> None:
    """Draw the ratio to copying of the method chosen for each cell as a colour, with the text that `write` gives."""
    shown = [[known.ratios[against][methods[v, n]][v, n] for v in known.speeds] for n in known.noises]
    logs = np.log([[own.mean for own in row] for row in shown])
    axes.imshow(logs, cmap=_COLOURS, vmin=-_FULL, vmax=_FULL, origin="lower", aspect="auto")
    style_axes(axes, grid=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    if write is None:
        return
    for (i, j), value in np.ndenumerate(logs):
        text = write(methods[known.speeds[j], known.noises[i]], shown[i][j])
        colour = "white" if abs(value) > 0.72 * _FULL else INK
        axes.text(j, i, **text, ha="center", va="center", color=colour, linespacing=0.9)


def _write_ratio(_method: str, value: Ratio) -> dict[str, Any]:
    text = ratio(value.mean) if abs(value.mean - 1) >= 0.005 else f"{value.mean:.2f}"
    weight = "bold" if value.verdict == "holds" else "normal"
    return {"s": f"({text})" if value.verdict == "inconclusive" else text, "fontsize": 7.0, "fontweight": weight}


_SHORT = {
    "linear": "straight\nline",
    "hold": "hold",
    "gain": "gain",
    "phase": "phase",
    "baseline1": "Base-\nline 1",
    "baseline2": "Base-\nline 2",
    "copy_code": "copy\ncode",
    "copy": "copy",
    "mean": "mean",
    "ridge": "ridge",
    "trend": "linear\npixels",
}
