"""Whole frames predicted: the error over time, left alone, and over the picture; and stills."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from psmt.evaluation import FrameRow
from psmt.experiments.predict_video.course import Stretches, summary_of
from psmt.experiments.predict_video.film_painter import error_colours
from psmt.experiments.predict_video.methods import FRAME_METHODS
from psmt.experiments.predict_video.result import VideoResult
from psmt.figures.panels import WIDTH, heading, panel
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
"""Methods in the order in which they are shown. Copying is black: what all others are held against."""

STILLS = {
    "best": "where PSMT gained most on copying, by the ratio of errors",
    "worst": "where PSMT gained least on copying, by the ratio of errors",
    "last": "the last frame",
}

_BETTER_WORSE = LinearSegmentedColormap.from_list(
    "better_worse", ["#0072b2", "#8cc4e8", "#f4f4f4", "#f0b890", "#d55e00"]
)
_LEFT, _RIGHT = 0.75, 0.2
"""Inches beside the panels."""


def scores_figure(result: VideoResult) -> Figure:
    """Figure of each frame's error against copying, with cuts marked, and of the surprise where there is one."""
    stretches = result.course.stretches
    surprised = bool(np.isfinite(stretches.surprise).any())
    height = 4.6 if surprised else 3.7
    figure = Figure(figsize=(WIDTH, height))
    width = WIDTH - _LEFT - _RIGHT
    axes = panel(figure, _LEFT, height - 3.15, width, 2.45)
    span = running_span(len(stretches.frames))
    top = _draw_ratios(axes, result, span)
    n_averaged = span * stretches.length
    note = "" if n_averaged == 1 else f", mean over {n_averaged:,} frames"
    heading(axes, "a", f"error of each frame ÷ error of copying the last one{note}", lift=26)
    _legend(axes, _shown(result))
    cuts = stretches.cuts
    for cut in cuts:
        axes.axvline(cut, color="#d55e00", linewidth=1.0, linestyle=(0, (2, 2)), zorder=2)
    if len(cuts):
        axes.annotate("cut", (cuts[0], top), (3, -9), textcoords="offset points", fontsize=SMALL, color="#d55e00")
    last = axes
    if surprised:
        axes.tick_params(labelbottom=False)
        last = panel(figure, _LEFT, 0.5, width, 0.62)
        last.plot(stretches.frames, stretches.surprise, color="#d55e00", linewidth=1.1)
        last.set_xlim(axes.get_xlim())
        style_axes(last)
        last.set_ylim(bottom=min(0.0, float(np.nanmin(stretches.surprise))))
        last.yaxis.set_major_locator(MaxNLocator(2))
        largest = "" if stretches.length == 1 else f", the largest of each {stretches.length} frames"
        heading(last, "b", f"surprise{largest}", lift=4)
    last.set_xlabel("frame", fontsize=TEXT, color=INK)
    last.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def places_figure(result: VideoResult) -> Figure:
    """Figure of the rollouts by step, of a frame, and of the places in it where PSMT is better and worse."""
    side = 2.6
    rows, columns = result.shape
    across = min(side * columns / rows, 2.75)
    tall = across * rows / columns
    height = max(tall, 2.3) + 1.25
    figure = Figure(figsize=(WIDTH, height))
    left_maps = WIDTH - 2 * across - 0.15 - 0.75
    base = 0.65
    if result.course.rollouts:
        axes = panel(figure, _LEFT, base, left_maps - _LEFT - 0.45, height - 1.25)
        _draw_rollouts(axes, result)
        heading(axes, "a", "left alone: error ÷ copying", lift=9)
    else:
        left_maps = _LEFT
    bottom = height - 0.6 - tall
    picture = panel(figure, left_maps, bottom, across, tall)
    picture.imshow(np.clip(result.stills["last"].frame, 0, 1), cmap="gray", vmin=0, vmax=1)
    heading(picture, "b", "a frame", lift=9)
    chart = panel(figure, left_maps + across + 0.15, bottom, across, tall)
    drawn = chart.imshow(np.log2(result.place_ratios()), cmap=_BETTER_WORSE, vmin=-2, vmax=2)
    heading(chart, "c", "where PSMT is better", lift=9)
    for axes in (picture, chart):
        axes.set_axis_off()
    scale = panel(figure, left_maps + 2 * across + 0.25, bottom + 0.1 * tall, 0.11, 0.8 * tall)
    bar = figure.colorbar(drawn, cax=scale, ticks=[-2, -1, 0, 1, 2])
    bar.ax.set_yticklabels(["÷ 4", "÷ 2", "= copy", "× 2", "× 4"], fontsize=SMALL, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    return figure


def stills_figure(result: VideoResult, *, gain: float) -> Figure:
    """Figure of chosen frames: the film, the prediction, its error and that of copying, enlarged `gain` times."""
    columns = ("film", "PSMT, one frame ahead", f"error of PSMT × {gain:g}", f"error of copying × {gain:g}")
    rows = []
    for name, still in result.stills.items():
        row = still.row
        words = f"frame {row.frame:,}: {STILLS[name]} · MSE ÷ copying {_ratio(row)} · PSNR {row.psnr:.1f} dB"
        errors = (error_colours(shown - still.frame, gain) for shown in (still.predicted, still.last))
        rows.append((words, (_grey(still.frame), _grey(still.predicted), *errors)))
    return _picture_rows(columns, rows, result.shape)


def events_figure(result: VideoResult, *, gain: float) -> Figure:
    """Figure of the largest events: the frame before, what came, what was expected, and its error."""
    columns = ("the frame before", "what came", "what PSMT expected", f"its error × {gain:g}")
    rows = []
    for still in result.event_stills:
        event = still.event
        time = f", {event.time:.2f} s" if np.isfinite(event.time) else ""
        words = f"{event.kind} · frame {event.frame:,}{time} · {event.size:.3g} times the usual error"
        shown = (*map(_grey, (still.last, still.frame, still.predicted)),)
        rows.append((words, (*shown, error_colours(still.predicted - still.frame, gain))))
    return _picture_rows(columns, rows, result.shape)


def _picture_rows(
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[NDArray[np.floating]]]],
    shape: tuple[int, int],
) -> Figure:
    """Rows of four pictures (height, width, 3) each, with words above each row and names above the columns."""
    gap, head = 0.1, 0.32
    across = (WIDTH - 2 * 0.12 - 3 * gap) / 4
    tall = across * shape[0] / shape[1]
    height = 0.35 + len(rows) * (tall + head + 0.05) + 0.1
    figure = Figure(figsize=(WIDTH, height))
    for k, name in enumerate(columns):
        left = 0.12 + k * (across + gap)
        figure.text(left / WIDTH, (height - 0.22) / height, name, fontsize=TEXT, fontweight="bold", color=INK)
    for i, (words, pictures) in enumerate(rows):
        top = height - 0.35 - i * (tall + head + 0.05) - head
        for k, picture in enumerate(pictures):
            axes = panel(figure, 0.12 + k * (across + gap), top - tall, across, tall)
            axes.imshow(np.clip(picture, 0, 1))
            axes.set_axis_off()
        figure.text(0.12 / WIDTH, (top + 0.08) / height, words, fontsize=SMALL, color=QUIET)
    return figure


def running_span(n: int) -> int:
    """Points of a curve of `n` that are averaged, so that it can be read: odd, 1 for short ones."""
    return 2 * (n // 200) + 1


def running_ratio(stretches: Stretches, method: str, span: int) -> Array:
    """Error divided by that of copying (n,), both averaged over `span` stretches; NaN where nothing moves."""
    error, copied = (uniform_filter1d(values, span) for values in (stretches.mse[method], stretches.copy_mse))
    ratios: Array = np.divide(error, copied, out=np.full(len(error), np.nan), where=copied > 1e-12)
    return ratios


def _draw_ratios(axes: Axes, result: VideoResult, span: int) -> float:
    """Draw the curves; return the upper end of the axis."""
    frames = result.course.stretches.frames
    values = {name: running_ratio(result.course.stretches, name, span) for name in _shown(result)}
    finite = np.concatenate([v[np.isfinite(v)] for v in values.values()])
    low, high = (float(np.percentile(finite, q)) for q in (0.5, 99.5)) if len(finite) else (0.5, 2.0)
    for name, curve in values.items():
        axes.plot(frames, curve, **FRAME_STYLES[name].kwargs())
    axes.set_yscale("log", base=2)
    top = min(max(1.3 * high, 1.5), 16)
    axes.set_ylim(max(min(0.75 * low, 0.7), 1 / 64), top)
    _log_ticks(axes)
    axes.set_xlim(result.start + 0.5, result.start + result.horizon + 0.5)
    style_axes(axes)
    return top


def _draw_rollouts(axes: Axes, result: VideoResult) -> None:
    for name in _shown(result):
        ratios = [summary_of(summaries, name).ratio for summaries in result.course.rollouts.values()]
        axes.plot([*result.course.rollouts], ratios, marker="o", markersize=3, **FRAME_STYLES[name].kwargs())
    axes.set_yscale("log", base=2)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0.1), min(max(high, 1.3), 4))
    _log_ticks(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("frames ahead", fontsize=TEXT, color=INK)
    style_axes(axes)


def _log_ticks(axes: Axes) -> None:
    axes.yaxis.set_major_locator(LogLocator(base=2, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.minorticks_off()


def _shown(result: VideoResult) -> list[str]:
    return [name for name in FRAME_STYLES if name in result.seconds]


def _legend(axes: Axes, methods: Sequence[str]) -> None:
    axes.legend(
        [axes.lines[k] for k in range(len(methods))],
        [FRAME_METHODS[name] for name in methods],
        loc="lower left",
        bbox_to_anchor=(-0.005, 0.99),
        ncols=len(methods),
        frameon=False,
        fontsize=SMALL,
        labelcolor=INK,
        borderpad=0,
        handlelength=1.8,
        columnspacing=1.4,
    )


def _grey(frame: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.repeat(frame[:, :, None], 3, axis=2)


def _ratio(row: FrameRow) -> str:
    return f"{row.ratio:.2f}" if np.isfinite(row.ratio) else "n/a"
