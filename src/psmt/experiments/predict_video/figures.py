"""Figure of predicted frames: errors and surprise over time."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator
from scipy.ndimage import uniform_filter1d

from psmt.experiments.predict_video.result import FRAME_METHODS, TimeBins, VideoResult
from psmt.figures.panels import heading, panel_figure
from psmt.figures.style import INK, QUIET, SMALL, TEXT, line_style, style_axes
from psmt.types import Array

_STYLES = {
    "frame_predictor": line_style("#0072b2", 2.4, layer=7),
    "copy": line_style(INK, 1.8, layer=6),
    "fourier": line_style("#009e73", 1.6, layer=5),
    "blocks": line_style("#e69f00", 1.4, layer=4),
    "ridge": line_style("#56b4e9", 1.4, layer=4),
    "linear": line_style("#cc79a7", 1.4, layer=3),
}
FRAME_STYLES = {name: _STYLES.get(name, line_style(QUIET, 1.3)) for name in dict.fromkeys([*_STYLES, *FRAME_METHODS])}
"""Line styles of the methods, in the order in which they are drawn. Copying, the reference, is black."""


def scores_figure(result: VideoResult) -> Figure:
    """Draw cuts and the ratio of each method's error to that of copying, by frame. Draw surprise below, if known."""
    bins = result.scores.bins
    surprised = bool(np.isfinite(bins.surprise).any())
    figure, panels = panel_figure(
        [["ratios"], ["surprise"]] if surprised else [["ratios"]],
        height=4.6 if surprised else 3.7,
        heights=[4, 1] if surprised else None,
    )
    axes = panels["ratios"]
    span = running_span(len(bins.frames))
    values = {name: running_ratio(bins, name, span) for name in FRAME_STYLES if name in result.seconds}
    for name, curve in values.items():
        axes.plot(bins.frames, curve, label=FRAME_METHODS[name], **FRAME_STYLES[name])
    finite = np.concatenate([v[np.isfinite(v)] for v in values.values()])
    low, high = np.percentile(finite, (0.5, 99.5)).tolist() if len(finite) else (0.5, 2.0)
    top = min(max(1.3 * high, 1.5), 16)
    axes.set_yscale("log", base=2)
    axes.set_ylim(max(min(0.75 * low, 0.7), 1 / 256), top)
    axes.yaxis.set_major_locator(LogLocator(base=2, numticks=12))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.2g}")
    axes.yaxis.minorticks_off()
    style_axes(axes)
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
        largest = f", the largest of each {bins.length} frames" if bins.length > 1 else ""
        heading(axes, "b", f"surprise{largest}", lift=4)
    axes.set_xlabel("frame", fontsize=TEXT, color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def running_span(n: int) -> int:
    """Return the width of the moving average of a curve of `n` points: an odd number, and 1 if `n` is below 200."""
    return 2 * (n // 200) + 1


def running_ratio(bins: TimeBins, method: str, span: int) -> Array:
    """Return the ratio (n_bins,) of a method's smoothed error to that of copying. NaN where copying has no error."""
    error, copied = (uniform_filter1d(values, span) for values in (bins.mse[method], bins.copy_mse))
    return np.asarray(np.divide(error, copied, out=np.full(len(error), np.nan), where=copied > 1e-12))
