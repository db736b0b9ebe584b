"""Figures of predicted frames: errors over time, by steps ahead and over the picture, and stills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from psmt.experiments.predict_video.film_painter import error_colours, ratio_text
from psmt.experiments.predict_video.result import FRAME_METHODS, TimeBins, VideoResult
from psmt.figures.layouts import panel_figure
from psmt.figures.panels import WIDTH, heading
from psmt.figures.style import INK, QUIET, SMALL, TEXT, LineStyle, style_axes
from psmt.types import Array

_STYLES = {
    "psmt": LineStyle("#0072b2", 2.4, layer=7),
    "copy": LineStyle(INK, 1.8, layer=6),
    "fourier": LineStyle("#009e73", 1.6, layer=5),
    "blocks": LineStyle("#e69f00", 1.4, layer=4),
    "ridge": LineStyle("#56b4e9", 1.4, layer=4),
    "linear": LineStyle("#cc79a7", 1.4, layer=3),
}
FRAME_STYLES = {name: _STYLES.get(name, LineStyle(QUIET, 1.3)) for name in dict.fromkeys([*_STYLES, *FRAME_METHODS])}
"""Methods in the order in which they are shown. Copying, the reference, is black."""

STILLS = {
    "best": "where PSMT gained most on copying, by the ratio of errors",
    "worst": "where PSMT gained least on copying, by the ratio of errors",
    "last": "the last frame",
}

_BETTER_WORSE = LinearSegmentedColormap.from_list(
    "better_worse", ["#0072b2", "#8cc4e8", "#f4f4f4", "#f0b890", "#d55e00"]
)


def scores_figure(result: VideoResult) -> Figure:
    """Error of each frame relative to copying, with cuts marked, and the surprise if there is one."""
    bins = result.scores.bins
    surprised = bool(np.isfinite(bins.surprise).any())
    figure, panels = panel_figure(
        [["ratios"], ["surprise"]] if surprised else [["ratios"]],
        height=4.6 if surprised else 3.7,
        heights=[4, 1] if surprised else None,
    )
    axes = panels["ratios"]
    span = running_span(len(bins.frames))
    values = {name: running_ratio(bins, name, span) for name in _shown(result)}
    for name, curve in values.items():
        axes.plot(bins.frames, curve, label=FRAME_METHODS[name], **FRAME_STYLES[name].kwargs())
    finite = np.concatenate([v[np.isfinite(v)] for v in values.values()])
    low, high = np.percentile(finite, (0.5, 99.5)).tolist() if len(finite) else (0.5, 2.0)
    top = min(max(1.3 * high, 1.5), 16)
    _style_ratios(axes, max(min(0.75 * low, 0.7), 1 / 64), top)
    axes.set_xlim(result.start + 0.5, result.start + result.horizon + 0.5)
    note = "" if span * bins.length == 1 else f", mean over {span * bins.length:,} frames"
    heading(axes, "a", f"error of each frame ÷ error of copying the last one{note}", lift=26)
    style: dict[str, Any] = {"fontsize": SMALL, "labelcolor": INK, "handlelength": 1.8, "columnspacing": 1.4}
    axes.legend(loc="lower left", bbox_to_anchor=(0, 0.99), ncols=len(values), frameon=False, borderpad=0, **style)
    for cut in bins.cuts:
        axes.axvline(cut, color="#d55e00", linewidth=1.0, linestyle=(0, (2, 2)), zorder=2)
    if len(bins.cuts):
        axes.annotate("cut", (bins.cuts[0], top), (3, -9), textcoords="offset points", fontsize=SMALL, color="#d55e00")
    if surprised:
        axes.tick_params(labelbottom=False)
        axes = panels["surprise"]
        axes.plot(bins.frames, bins.surprise, color="#d55e00", linewidth=1.1)
        axes.set_xlim(panels["ratios"].get_xlim())
        axes.set_ylim(bottom=min(0.0, float(np.nanmin(bins.surprise))))
        axes.yaxis.set_major_locator(MaxNLocator(2))
        style_axes(axes)
        heading(
            axes, "b", "surprise" + (f", the largest of each {bins.length} frames" if bins.length > 1 else ""), lift=4
        )
    axes.set_xlabel("frame", fontsize=TEXT, color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def places_figure(result: VideoResult) -> Figure:
    """Rollouts by step, a frame, and where in the picture PSMT is better and worse."""
    rollouts = result.scores.rollouts
    across = min(2.6 * result.shape[1] / result.shape[0], 2.75)
    tall = across * result.shape[0] / result.shape[1]
    figure, panels = panel_figure(
        [["rollouts", "frame", "map"]] if rollouts else [["frame", "map"]],
        height=max(tall, 2.3) + 1.05 if rollouts else tall + 0.75,
        width=WIDTH if rollouts else 2 * across + 1.5,
        widths=[WIDTH - 2 * across - 2.2, across, across] if rollouts else None,
    )
    if rollouts:
        axes = panels["rollouts"]
        for name in _shown(result):
            ratios = [summaries[name].ratio for summaries in rollouts.values()]
            axes.plot([*rollouts], ratios, marker="o", markersize=3, **FRAME_STYLES[name].kwargs())
        axes.set_yscale("log", base=2)
        low, high = axes.get_ylim()
        _style_ratios(axes, max(low, 0.1), min(max(high, 1.3), 4))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("frames ahead", fontsize=TEXT, color=INK)
        heading(axes, "a", "rollouts: error ÷ copying", lift=9)
    panels["frame"].imshow(np.clip(result.stills["last"].frame, 0, 1), cmap="gray", vmin=0, vmax=1)
    heading(panels["frame"], "b", "a frame", lift=9)
    drawn = panels["map"].imshow(np.log2(result.place_ratios()), cmap=_BETTER_WORSE, vmin=-2, vmax=2)
    heading(panels["map"], "c", "where PSMT is better", lift=9)
    for name in ("frame", "map"):
        panels[name].set_axis_off()
        panels[name].set_anchor("NW")
    scale = panels["map"].inset_axes((1.03, 0.1, 0.12 / across, 0.8))
    bar = figure.colorbar(drawn, cax=scale, ticks=[-2, -1, 0, 1, 2])
    bar.ax.set_yticklabels(["÷ 4", "÷ 2", "= copy", "× 2", "× 4"], fontsize=SMALL, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    return figure


def stills_figure(result: VideoResult, *, gain: float) -> Figure:
    """Chosen frames: the film, the prediction, its error and that of copying, multiplied by `gain`."""
    columns = ("film", "PSMT, one frame ahead", f"error of PSMT × {gain:g}", f"error of copying × {gain:g}")
    rows = {}
    for name, (row, last, frame, predicted) in result.stills.items():
        words = f"frame {row.frame:,}: {STILLS[name]} · MSE ÷ copying {ratio_text(row.ratio)} · PSNR {row.psnr:.1f} dB"
        rows[words] = _grey(frame), _grey(predicted), *(error_colours(own - frame, gain) for own in (predicted, last))
    return _picture_rows(columns, rows, result.shape)


def events_figure(result: VideoResult, *, gain: float) -> Figure:
    """The largest events: the frame before, the frame, its prediction, and the error."""
    columns = ("the frame before", "the frame", "PSMT's prediction", f"its error × {gain:g}")
    rows = {}
    for event, (_, last, frame, predicted) in result.event_stills.items():
        time = f", {event.time:.2f} s" if np.isfinite(event.time) else ""
        words = f"{event.kind} · frame {event.frame:,}{time} · {event.size:.3g} times the usual error"
        rows[words] = *map(_grey, (last, frame, predicted)), error_colours(predicted - frame, gain)
    return _picture_rows(columns, rows, result.shape)


def _picture_rows(
    columns: Sequence[str], rows: dict[str, tuple[NDArray[np.floating], ...]], shape: tuple[int, int]
) -> Figure:
    """Rows of pictures (height, width, 3) by the words above them, and names above the columns."""
    tall = 2.27 * shape[0] / shape[1]
    layout = [[f"{k} {name}" for name in columns] for k in range(len(rows))]
    figure, panels = panel_figure(layout, height=len(rows) * (tall + 0.38) + 0.42)
    for k, (words, pictures) in enumerate(rows.items()):
        for name, picture in zip(columns, pictures, strict=True):
            axes = panels[f"{k} {name}"]
            axes.imshow(np.clip(picture, 0, 1))
            axes.set_axis_off()
            # The words are wider than the picture and left out of the layout. A blank title keeps their place.
            axes.set_title(" ", fontsize=SMALL)
            if k == 0:
                axes.text(0, 1 + 0.34 / tall, name, fontsize=TEXT, fontweight="bold", transform=axes.transAxes)
        first = panels[f"{k} {columns[0]}"]
        first.text(0, 1 + 0.08 / tall, words, fontsize=SMALL, color=QUIET, transform=first.transAxes, in_layout=False)
    return figure


def running_span(n: int) -> int:
    """Number of points that are averaged in a curve of `n` points: odd, and 1 for short curves."""
    return 2 * (n // 200) + 1


def running_ratio(bins: TimeBins, method: str, span: int) -> Array:
    """Error divided by that of copying (n,), both averaged over `span` bins; NaN where nothing moves."""
    error, copied = (uniform_filter1d(values, span) for values in (bins.mse[method], bins.copy_mse))
    ratios: Array = np.divide(error, copied, out=np.full(len(error), np.nan), where=copied > 1e-12)
    return ratios


def _style_ratios(axes: Axes, low: float, high: float) -> None:
    """Logarithmic axis of ratios, with plain numbers."""
    axes.set_yscale("log", base=2)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(LogLocator(base=2, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.minorticks_off()
    style_axes(axes)


def _shown(result: VideoResult) -> list[str]:
    return [name for name in FRAME_STYLES if name in result.seconds]


def _grey(frame: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.repeat(frame[:, :, None], 3, axis=2)
