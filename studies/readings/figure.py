"""One picture of all readings: what each says of Table 1 and of Fig. 4, beside what the paper has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from psmt.evaluation import Interval
from psmt.experiments.table_1 import MARGIN, PAPER_SIZE
from psmt.figures.panels import heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TITLE, style_axes
from psmt.report import INCONCLUSIVE, Verdict, judged
from studies.readings.result import ORDER, PAPER_LOGS, Found, ReadingsResult

_VERDICT: dict[Verdict, str] = {"holds": COLOURS[2], "does not hold": COLOURS[1], INCONCLUSIVE: "#9aa3ad"}
_MARKERS = ("o", "s", "^", "D", "v", "P")
_BAND = "#dce9f5"

# Inches. A row is a reading; columns are the two claims and the size of Table 1, and the order and the size of Fig. 4.
_WIDTH, _LEFT, _RIGHT, _HEAD, _FOOT = 13.0, 3.3, 0.15, 1.0, 0.95
_ROW, _GAP = 0.27, 0.22
_COLUMNS = 5


def readings_figure(result: ReadingsResult) -> Figure:
    """Figure with a row per reading and five columns: atoms, frames and size of Table 1; order and size of Fig. 4."""
    found = result.found
    inside = _ROW * len(found)
    height = _HEAD + inside + _FOOT
    figure = Figure(figsize=(_WIDTH, height))
    width = (_WIDTH - _LEFT - _RIGHT - (_COLUMNS - 1) * _GAP) / _COLUMNS
    columns = [panel(figure, _LEFT + k * (width + _GAP), _FOOT, width, inside) for k in range(_COLUMNS)]
    for axes in columns:
        _draw_rows(axes, found)
    columns[0].set_yticks(range(len(found)), [own.reading.name for own in found], fontsize=SMALL, color=INK)
    _draw_changes(columns[0], [own.atoms for own in found], as_ratio=True)
    _draw_changes(columns[1], [own.frames for own in found], as_ratio=True)
    _draw_sizes(columns[2], found)
    pairs = [{_said(pair): own.differences[pair] for pair in ORDER} for own in found]
    _draw_changes(columns[3], pairs, as_ratio=False)
    _draw_logs(columns[4], found)
    titles = ("More atoms help", "More frames help", "Size of Table 1", "Order of Fig. 4", "Size of Fig. 4")
    labels = (
        "error, most ÷ fewest atoms",
        "error, longest ÷ shortest H",
        "trimmed mean MSE",
        "difference of log MSE",
        "mean log MSE vs code",
    )
    for axes, letter, title, label in zip(columns, "abcde", titles, labels, strict=True):
        heading(axes, letter, title)
        axes.set_xlabel(label, fontsize=SMALL, color=INK)
    _draw_words(figure, height, found)
    return figure


def _draw_rows(axes: Axes, found: Sequence[Found]) -> None:
    style_axes(axes, grid=False)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    for row in range(0, len(found), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="#f4f6f8", zorder=0, linewidth=0)


def _draw_changes(axes: Axes, rows: Sequence[Mapping[str, Interval]], *, as_ratio: bool) -> None:
    """Means with their intervals, a mark for each; green where it is below by more than the margin."""
    ends = [end for row in rows for own in row.values() for end in own if np.isfinite(end)]
    reach = max([abs(end) for end in ends], default=1.0)
    limit = 1.12 * max(min(reach, 6.0), 0.05)
    for i, row in enumerate(rows):
        for k, own in enumerate(row.values()):
            offset = 0.4 * ((k + 0.5) / len(row) - 0.5)
            colour = _VERDICT[judged(own, margin=MARGIN)]
            # An interval that is infinite, or a mark that lies outside, ends at the edge.
            low, mean, high = np.clip([own.low, own.mean, own.high], -limit, limit)
            axes.plot([low, high], [i + offset] * 2, color=colour, linewidth=1.2, zorder=3, solid_capstyle="butt")
            axes.plot(mean, i + offset, _MARKERS[k % 6], color=colour, markersize=4.2, zorder=4, clip_on=False)
    axes.axvline(0, color=QUIET, linewidth=0.9, zorder=1)
    axes.set_xlim(-limit, limit)
    if as_ratio:
        steps = (0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 1, 1.1, 1.25, 2, 5, 10, 20, 50)
        shown = _apart([step for step in steps if abs(np.log(step)) <= limit], limit)
        axes.xaxis.set_major_locator(FixedLocator(np.log(shown).tolist()))
        axes.xaxis.set_major_formatter(lambda value, _: f"{np.exp(value):.3g}")
    axes.legend(
        handles=[
            Line2D([], [], color=QUIET, marker=_MARKERS[k % 6], linestyle="none", markersize=4.2, label=name)
            for k, name in enumerate(rows[0])
        ],
        loc="lower left",
        bbox_to_anchor=(-0.06, 1.0 + 0.28 / (_ROW * len(rows))),
        ncol=len(rows[0]) or 1,
        fontsize=7.5,
        frameon=False,
        handletextpad=0.1,
        columnspacing=0.9,
    )


def _apart(steps: list[float], limit: float) -> list[float]:
    """Those of the steps that leave room for their labels, 1 among them."""
    kept = [1.0]
    for step in sorted(steps, key=lambda step: -abs(np.log(step))):
        if all(abs(np.log(step / other)) > 0.3 * limit for other in kept):
            kept.append(step)
    return sorted(kept)


def _draw_sizes(axes: Axes, found: Sequence[Found]) -> None:
    """From the least to the largest error of Table 1; green where all lie in the paper's band."""
    axes.axvspan(*PAPER_SIZE, color=_BAND, zorder=0.5, linewidth=0)
    for i, own in enumerate(found):
        means = list(own.means.values())
        colour = _VERDICT["holds" if own.table_size else "does not hold"]
        axes.plot([min(means), max(means)], [i, i], color=colour, linewidth=1.2, zorder=3)
        axes.plot(means, [i] * len(means), "o", color=colour, markersize=3.4, zorder=4)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.1), max(high, 1.3))
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(FixedLocator([s for s in (0.001, 0.01, 0.1, 1, 10, 100, 1000) if low <= s <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _draw_logs(axes: Axes, found: Sequence[Found]) -> None:
    """Log MSE of PSMT, green in the paper's band; and beside it the baselines, copying and the mean."""
    axes.axvspan(*PAPER_LOGS, color=_BAND, zorder=0.5, linewidth=0)
    for i, own in enumerate(found):
        colour = _VERDICT["holds" if own.prediction_size else "does not hold"]
        for method, marker in (("baseline2", "2"), ("baseline1", "1"), ("copy", "|"), ("mean", "x")):
            axes.plot(own.logs[method], i, marker, color=INK if method == "copy" else QUIET, markersize=5, zorder=3)
        axes.plot(own.logs["psmt"], i, "o", color=colour, markersize=4.6, zorder=4)
    axes.legend(
        handles=[
            Line2D([], [], color=QUIET, marker=marker, linestyle="none", markersize=5, label=name)
            for marker, name in (("o", "PSMT"), ("2", "B 2"), ("1", "B 1"), ("|", "copy"), ("x", "mean"))
        ],
        loc="lower left",
        bbox_to_anchor=(-0.08, 1.0 + 0.28 / (_ROW * len(found))),
        ncol=5,
        fontsize=7,
        frameon=False,
        handletextpad=-0.5,
        columnspacing=0.1,
    )


def _draw_words(figure: Figure, height: float, found: Sequence[Found]) -> None:
    figure.text(
        0.12 / _WIDTH,
        1 - 0.14 / height,
        f"Reading the paper: {len(found)} ways to fill in what it leaves open",
        fontsize=TITLE,
        fontweight="bold",
        color=INK,
        va="top",
    )
    figure.text(
        0.12 / _WIDTH,
        0.12 / height,
        "Green: as in the paper; orange: not; grey: inconclusive (95% intervals, ties within 1%). Blue bands: the "
        "paper's own figures, on its own film. a, b, d: left of the line is as the paper has it.",
        fontsize=SMALL,
        color=QUIET,
        va="bottom",
    )
    figure.add_artist(Line2D([0.12 / _WIDTH, 1 - 0.12 / _WIDTH], [0.4 / height] * 2, color=RULE, linewidth=0.7))


def _said(pair: tuple[str, str]) -> str:
    short = {"psmt": "PSMT", "baseline2": "B 2", "baseline1": "B 1"}
    return " − ".join(short[name] for name in pair)
