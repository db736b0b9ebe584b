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
from itertools import starmap
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from psmt.data.speed_and_noise import Regime
from psmt.evaluation import Interval
from psmt.figures.panels import WIDTH, heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, TITLE, style_axes
from psmt.report import Verdict, judged
from psmt.report.numbers import ratio

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

Place = tuple[float, float]
"""Speed and noise of a film on the map."""
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
    ratios: Mapping[Against, Mapping[str, Mapping[Place, Ratio]]]
    """By what they are compared with, method, and (speed, noise)."""

    def nearest(self, regime: Regime) -> Place:
        """Speed and noise of the nearest film on the map."""
        speed = self.speeds[round(float(scale(regime.speed, self.speeds)))]
        return speed, self.noises[round(float(scale(regime.noise, self.noises)))]

    def best(self, cell: Place, against: Against) -> str:
        """The method of least error in a cell."""
        return min(self.ratios[against], key=lambda method: self.ratios[against][method][cell].mean)

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
        """Speed and noise of each film."""
        return [(speed, noise) for speed in self.speeds for noise in self.noises]


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


# Figures

_WINS, _LOSES = COLOURS[0], COLOURS[1]
_COLOURS = LinearSegmentedColormap.from_list("copying", [_WINS, "#ffffff", _LOSES])
_FULL = np.log(30.0)
"""A ratio of 30, or 1 / 30, has the full colour."""

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

# Inches.
LEFT, _GAP, _HEAD, FOOT, _ROW = 0.75, 0.28, 0.9, 0.95, 0.36


def place_figure(known: RegimeMap, regime: Regime | None = None) -> Figure:
    """The straight line relative to copying the code and the patch, and the best method; with a film's place."""
    height = _HEAD + len(known.noises) * _ROW + FOOT
    figure = Figure(figsize=(WIDTH, height))
    draw_maps(figure, known, FOOT, regime)
    title = "Where the paper’s straight line beats copying" + ("" if regime is None else ", and this film")
    below = "Diamond: this film’s median speed and its noise; bar: the middle half of its speeds."
    draw_frame(figure, title, "" if regime is None else below)
    return figure


def draw_maps(figure: Figure, known: RegimeMap, bottom: float, regime: Regime | None = None) -> None:
    """Draw the three maps side by side, `bottom` inches above the lower edge."""
    width = (WIDTH - LEFT - 0.15 - 2 * _GAP) / 3
    height = len(known.noises) * _ROW
    titles = ("straight line ÷ copying code", "straight line ÷ copying patch", "least error vs frame")
    for k, title in enumerate(titles):
        axes = panel(figure, LEFT + k * (width + _GAP), bottom, width, height)
        if k < 2:
            draw_cells(axes, known, "linear", ("code", "frame")[k], words=True)
        else:
            _draw_best(axes, known)
        heading(axes, "abc"[k], title)
        axes.set_xticks(range(len(known.speeds)), [f"{speed:g}" for speed in known.speeds])
        axes.set_yticks(range(len(known.noises)), [f"{noise:g}" for noise in known.noises])
        axes.tick_params(labelleft=k == 0)
        axes.set_xlabel("speed (pixels per frame)", fontsize=SMALL, color=INK)
        if k == 0:
            axes.set_ylabel("noise ÷ contrast", fontsize=SMALL, color=INK)
        if regime is not None:
            _draw_film(axes, known, regime)


def draw_cells(axes: Axes, known: RegimeMap, method: str, against: Against, *, words: bool) -> None:
    """Ratios to copying as colours; with `words` as numbers too, in brackets if inconclusive."""
    ratios, texts = known.ratios[against][method], {}
    for cell, value in ratios.items() if words else ():
        text = ratio(value.mean) if abs(value.mean - 1) >= 0.005 else f"{value.mean:.2f}"
        texts[cell] = f"({text})" if value.verdict == "inconclusive" else text
    _draw_grid(axes, known, ratios, texts, bold=True, fontsize=7.0)


def _draw_best(axes: Axes, known: RegimeMap) -> None:
    """The best method in each cell, on the colour of its ratio to copying."""
    best = {cell: known.best(cell, "frame") for cell in known.cells}
    ratios = {cell: known.ratios["frame"][method][cell] for cell, method in best.items()}
    texts = {cell: _SHORT[method] for cell, method in best.items()}
    _draw_grid(axes, known, ratios, texts, bold=False, fontsize=6.6, linespacing=0.9)


def _draw_grid(
    axes: Axes, known: RegimeMap, ratios: Mapping[Place, Ratio], texts: Mapping[Place, str], *, bold: bool, **style: Any
) -> None:
    """Ratios as colours, with a text in each cell; with `bold`, in bold where the method wins."""
    logs = np.array([[np.log(ratios[speed, noise].mean) for speed in known.speeds] for noise in known.noises])
    axes.imshow(logs, cmap=_COLOURS, vmin=-_FULL, vmax=_FULL, origin="lower", aspect="auto")
    style_axes(axes, grid=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    for (speed, noise), text in texts.items():
        j, i = known.speeds.index(speed), known.noises.index(noise)
        colour = "white" if abs(logs[i, j]) > 0.72 * _FULL else INK
        weight = "bold" if bold and ratios[speed, noise].verdict == "holds" else "normal"
        axes.text(j, i, text, ha="center", va="center", color=colour, fontweight=weight, **style)


def _draw_film(axes: Axes, known: RegimeMap, regime: Regime) -> None:
    slow, middle, fast = (scale(speed, known.speeds) for speed in (regime.slow, regime.speed, regime.fast))
    noise = scale(regime.noise, known.noises)
    axes.plot([slow, fast], [noise, noise], color=INK, linewidth=2.2, zorder=5, solid_capstyle="round")
    axes.plot(middle, noise, marker="D", markersize=7.5, color="#f0e442", markeredgecolor=INK, zorder=6)


def draw_frame(figure: Figure, title: str, note: str = "") -> None:
    """Draw the title, and the note on colours with `note` below it."""
    height = figure.get_figheight()
    figure.text(0.12 / WIDTH, 1 - 0.14 / height, title, fontsize=TITLE, fontweight="bold", color=INK, va="top")
    text = (
        "MSE divided by that of copying: blue wins, orange loses; in brackets, inconclusive (95% interval over "
        "films, 5% margin)."
    )
    text += f"\n{note}" if note else ""
    figure.text(0.12 / WIDTH, 0.12 / height, text, fontsize=SMALL, color=QUIET, va="bottom", linespacing=1.4)
