"""Figures of the prediction: errors and patches of each phase (Fig. 4 of the paper), and effects over all starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from psmt.evaluation import METHODS, log_mse
from psmt.experiments.prediction.phase import PhaseResult
from psmt.experiments.prediction.result import MARGIN, PredictionResult
from psmt.figures.layouts import Estimate, draw_estimates, draw_key, panel_figure
from psmt.figures.panels import as_picture, panel
from psmt.figures.style import COLOURS, INK, METHOD_STYLES, QUIET, RULE, SMALL, TEXT, TITLE, style_axes
from psmt.report.numbers import signed

# Inches: patches are square, and stand below their steps on the axis of the curves, which no automatic layout gives.
# Labels at the left are the legend too, and serve both panels of a line.
_MARGIN, _LABELS, _PANEL, _NUMBERS, _GAP = 0.14, 1.98, 3.9, 0.66, 0.52
_HEAD, _CURVES, _TICKS, _GROUP_GAP, _FOOT, _LINE_GAP = 0.78, 2.5, 0.5, 0.09, 0.58, 0.25
_PANELS_PER_LINE = 2
_COLUMNS = 8
"""Patches in a row, approximately."""

_GROUPS = (("input", "estimate"), *(tuple(METHOD_STYLES)[k : k + 2] for k in range(0, len(METHOD_STYLES), 2)))
"""Rows of patches, in groups with a gap between them."""

_ROW_NAMES = {"input": "input", "estimate": "estimate (layer 1)", **METHODS}


def effects_figure(result: PredictionResult) -> Figure:
    """Figure with a row per comparison: differences of log MSE at each start, and means with their intervals."""
    parts = [own for group in result.evidence.values() for own in group]
    films = [film for film, found in result.films.items() if found]
    colours = dict(zip(films, (COLOURS[0], COLOURS[4], QUIET), strict=False))
    figure, panels = panel_figure(
        [["effects"]],
        height=1.4 + 0.62 * len(parts),
        title="Over many starts",
        note=f"Dots: starts ({len(result.starts)} of the film). Bars: means, 95% intervals. Grey band: ties, "
        f"±{MARGIN:g}. A claim holds if the bars of the film are left of the band and of the null models.",
    )
    axes = panels["effects"]
    axes.axvspan(-MARGIN, MARGIN, color=RULE, alpha=0.8, linewidth=0)
    rows = {
        own.name.replace(" against ", "\nagainst "): {
            "the film": Estimate(*own.statistic, own.values),
            **{null: Estimate(*effect, own.null_values[null]) for null, effect in own.nulls.items()},
        }
        for own in parts
    }
    draw_estimates(axes, rows, colours)
    # Linear near a tie, logarithmic beyond it, so that an effect of 0.1 is visible beside one of 5.
    axes.set_xscale("symlog", linthresh=0.1, linscale=0.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
    axes.set_xlabel("difference of mean log MSE: left of 0 the first method is better", fontsize=TEXT, color=INK)
    draw_key(figure, colours)
    return figure


def prediction_figure(results: Sequence[PhaseResult]) -> Figure:
    """Figure with a panel for each phase: log MSE over the steps, and frames at some of them, as patches or bars."""
    if not results:
        raise ValueError("results is empty; give the result of at least one phase")
    lines = [results[i : i + _PANELS_PER_LINE] for i in range(0, len(results), _PANELS_PER_LINE)]
    # All phases have the same horizon, so one size of patches fits all panels.
    steps = shown_steps(len(results[0].frames))
    spacing = steps[1] - steps[0] if len(steps) > 1 else 1
    span = 1 - spacing / 2, max(steps[-1] + spacing / 2, len(results[0].frames) + 0.25)
    side = _PANEL * spacing / (span[1] - span[0])
    rows_height = sum(map(len, _GROUPS)) * side + (len(_GROUPS) - 1) * _GROUP_GAP
    block = _HEAD + _CURVES + _TICKS + rows_height
    n = len(lines[0])
    width = _MARGIN + _LABELS + n * (_PANEL + _NUMBERS) + (n - 1) * _GAP + _MARGIN
    height = len(lines) * block + (len(lines) - 1) * _LINE_GAP + _FOOT
    figure = Figure(figsize=(width, height))
    # What layer 1 shows is what is predicted. The frames have a few extreme values, which would leave all else grey.
    limit = max(float(np.percentile(np.abs(result.estimates), 98)) for result in results) or 1.0
    for i, line in enumerate(lines):
        for j, result in enumerate(line):
            left = _MARGIN + _LABELS + j * (_PANEL + _NUMBERS + _GAP)
            bottom = height - i * (block + _LINE_GAP) - _HEAD - _CURVES
            curves = panel(figure, left, bottom, _PANEL, _CURVES)
            curves.set_xlim(*span)
            _draw_curves(curves, result, steps, first=j == 0)
            patches = panel(figure, left, bottom - _TICKS - rows_height, _PANEL, rows_height)
            patches.set_label("patches")
            _draw_patches(patches, result, steps, (0.475 * spacing, 0.475 * side), limit, labels=j == 0)
            # imshow changes the limits; y counts inches from the top.
            patches.set(xlim=span, ylim=(rows_height, 0))
    fold = "" if len(results) > 1 else "\n"
    note = "Each prediction is one step ahead and knows all earlier frames."
    if results[0].picture_shape is None:
        note += f" {fold}Bars are features, on one scale (±{limit:.1f})."
    else:
        note += f" Patches are standardised, {fold}and share one grey scale (±{limit:.1f}; beyond it black or white)."
    place = _MARGIN / width, (_FOOT - 0.14) / height
    figure.text(*place, note, fontsize=SMALL, color=QUIET, va="top", linespacing=1.35)
    return figure


def shown_steps(horizon: int) -> list[int]:
    """Steps 1, 1 + s, 1 + 2 s, .. whose patches are shown, about eight of them."""
    return list(range(1, horizon + 1, max(round((horizon - 1) / (_COLUMNS - 1)), 1)))


def _draw_curves(axes: Axes, result: PhaseResult, steps: Sequence[int], *, first: bool) -> None:
    for method, style in METHOD_STYLES.items():
        if method in result.scores:
            errors = log_mse(result.scores[method].vs_code)
            axes.plot(np.arange(1, len(errors) + 1), errors, label=METHODS[method], **style.kwargs())
    style_axes(axes)
    axes.set_xticks(steps)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.margins(y=0.08)
    if first:
        axes.set_ylabel("log MSE vs code\n(natural log)", fontsize=TEXT, color=INK, labelpad=6, linespacing=1.3)
    axes.set_xlabel("step, and the patches predicted there", fontsize=SMALL, color=QUIET, labelpad=3)
    start, horizon = result.phase.start, len(result.frames)
    about = f"frames {start + 1:,} to {start + horizon:,} · f = {result.n_components} · λ = {result.lam:g}"
    panel_name = {"fontsize": TITLE, "fontweight": "bold", "color": INK}
    axes.text(0, 1 + 0.4 / _CURVES, result.phase.name, panel_name, transform=axes.transAxes)
    axes.text(0, 1 + 0.17 / _CURVES, about, {"fontsize": TEXT, "color": QUIET}, transform=axes.transAxes)


def _draw_patches(
    axes: Axes, result: PhaseResult, steps: Sequence[int], half: tuple[float, float], limit: float, *, labels: bool
) -> None:
    """Rows of patches with half their width in steps and half their height in inches."""
    axes.set_axis_off()
    pictures = {"input": result.frames, "estimate": result.estimates} | {
        method: score.predicted for method, score in result.scores.items()
    }
    means = {method: float(np.mean(log_mse(score.vs_code))) for method, score in result.scores.items()}
    best = min(means, key=means.__getitem__)
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform()}  # x in fractions of the panel, y in inches
    text: dict[str, Any] = {"fontsize": TEXT, "color": INK, "va": "center", **beside}
    right = 1 + 0.06 / _PANEL
    axes.text(right, -0.09, "mean\nlog MSE", fontsize=SMALL, color=QUIET, va="bottom", **beside)
    y = half[1] / 0.95
    for group in _GROUPS:
        for name in group:
            for step in steps:
                axes.imshow(
                    as_picture(pictures[name][step - 1], result.picture_shape, limit),
                    cmap="gray",
                    vmin=-limit,
                    vmax=limit,
                    extent=(step - half[0], step + half[0], y + half[1], y - half[1]),
                    aspect="auto",
                    interpolation="nearest",
                )
            if labels:
                axes.text(-0.1 / _PANEL, y, _ROW_NAMES[name], ha="right", **text)
            if labels and name in METHOD_STYLES:
                key = (-_LABELS / _PANEL, (-_LABELS + 0.3) / _PANEL)
                axes.add_line(Line2D(key, (y, y), clip_on=False, **beside, **METHOD_STYLES[name].kwargs()))
            if name in means:
                axes.text(right, y, signed(means[name]), fontweight="bold" if name == best else "normal", **text)
            y += half[1] / 0.475
        y += _GROUP_GAP
