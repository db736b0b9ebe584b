"""Fig. 4 of the paper, with copying in it: error curves, and below them what each method showed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from psmt.evaluation import METHODS, log_mse
from psmt.experiments.prediction.phase import PhaseResult
from psmt.figures.methods import METHOD_STYLES
from psmt.figures.panels import as_picture
from psmt.figures.style import INK, QUIET, SMALL, TEXT, TITLE, style_axes

# Inches. A panel is a phase; the row labels at the left, which are the legend too, serve all panels of a line.
_LABELS = 1.98
_PANEL = 3.9
_NUMBERS = 0.66
_GAP = 0.52
_MARGIN = 0.14
_HEAD = 0.78
_CURVES = 2.5
_TICKS = 0.5
_GROUP_GAP = 0.09
_FOOT = 0.58
_BLOCK_GAP = 0.25
_PANELS_PER_LINE = 2
_COLUMNS = 8
"""About so many patches in a row."""

_GROUPS = (("input", "estimate"), *(tuple(METHOD_STYLES)[k : k + 2] for k in range(0, len(METHOD_STYLES), 2)))
"""Rows of patches, in groups that stand a little apart."""

_ROW_NAMES = {"input": "input", "estimate": "estimate (layer 1)", **METHODS}


def prediction_figure(results: Sequence[PhaseResult]) -> Figure:
    """Figure with a panel for each phase: log MSE over the steps, and frames at some of them, as patches or bars."""
    if not results:
        raise ValueError("results is empty; give the result of at least one phase")
    lines = [results[i : i + _PANELS_PER_LINE] for i in range(0, len(results), _PANELS_PER_LINE)]
    steps = [shown_steps(len(result.frames)) for result in results]
    # Panels of a figure share the horizon, so that one height of rows fits all.
    spacing = steps[0][1] - steps[0][0] if len(steps[0]) > 1 else 1
    low, high = _step_range(len(results[0].frames), spacing)
    cell = _PANEL * spacing / (high - low)
    rows_height = sum(len(group) for group in _GROUPS) * cell + (len(_GROUPS) - 1) * _GROUP_GAP
    block = _HEAD + _CURVES + _TICKS + rows_height
    width = _MARGIN + _LABELS + len(lines[0]) * (_PANEL + _NUMBERS) + (len(lines[0]) - 1) * _GAP + _MARGIN
    height = len(lines) * block + (len(lines) - 1) * _BLOCK_GAP + _FOOT
    figure = Figure(figsize=(width, height))
    limit = _grey_limit(results)

    for i, line in enumerate(lines):
        top = height - i * (block + _BLOCK_GAP)
        for j, result in enumerate(line):
            left = _MARGIN + _LABELS + j * (_PANEL + _NUMBERS + _GAP)
            bottom = top - _HEAD - _CURVES
            curves = figure.add_axes((left / width, bottom / height, _PANEL / width, _CURVES / height))
            _draw_curves(curves, result, shown_steps(len(result.frames)), (low, high), first=j == 0)
            bottom -= _TICKS + rows_height
            patches = figure.add_axes((left / width, bottom / height, _PANEL / width, rows_height / height))
            patches.set_label("patches")
            _draw_patches(patches, result, spacing, (low, high), rows_height, cell, limit, labels=j == 0)
    figure.text(
        _MARGIN / width,
        (_FOOT - 0.14) / height,
        _footnote(limit, wide=len(results) > 1, pictures=results[0].picture_shape is not None),
        fontsize=SMALL,
        color=QUIET,
        va="top",
        linespacing=1.35,
    )
    return figure


def _footnote(limit: float, *, wide: bool, pictures: bool) -> str:
    told = "Each prediction is one step ahead and knows all earlier frames."
    fold = "" if wide else "\n"
    if not pictures:
        return f"{told} {fold}Bars are features, on one scale (±{limit:.1f})."
    return f"{told} Patches are standardised, {fold}and share one grey scale (±{limit:.1f}; beyond it black or white)."


def shown_steps(horizon: int) -> list[int]:
    """Steps 1, 1 + s, 1 + 2 s, .. whose patches are shown, about eight of them."""
    return list(range(1, horizon + 1, max(round((horizon - 1) / (_COLUMNS - 1)), 1)))


def _step_range(horizon: int, spacing: int) -> tuple[float, float]:
    """Ends of the step axis: patches stand centred under their steps."""
    last = shown_steps(horizon)[-1]
    return 1 - spacing / 2, max(last + spacing / 2, horizon + 0.25)


def _grey_limit(results: Sequence[PhaseResult]) -> float:
    """Standardised value that is white; its negative is black.

    By what layer 1 makes of the frames, which is what is predicted: its range is smaller than that of the frames, whose
    few extremes would leave all else grey.
    """
    limit = max(float(np.percentile(np.abs(result.estimates), 98)) for result in results)
    return limit if limit > 0 else 1.0


def _draw_curves(
    axes: Axes, result: PhaseResult, steps: Sequence[int], span: tuple[float, float], *, first: bool
) -> None:
    for method, style in METHOD_STYLES.items():
        if method in result.scores:
            errors = log_mse(result.scores[method].vs_code)
            axes.plot(np.arange(1, len(errors) + 1), errors, label=METHODS[method], **style.kwargs())
    style_axes(axes)
    axes.set_xlim(*span)
    axes.set_xticks(steps)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.margins(y=0.08)
    if first:
        axes.set_ylabel("log MSE vs code\n(natural log)", fontsize=TEXT, color=INK, labelpad=6, linespacing=1.3)
    axes.set_xlabel("step, and the patches predicted there", fontsize=SMALL, color=QUIET, labelpad=3)
    start, horizon = result.phase.start, len(result.frames)
    inch = 1 / _CURVES  # in fractions of the panel's height
    axes.text(
        0, 1 + 0.4 * inch, result.phase.name, fontsize=TITLE, fontweight="bold", color=INK, transform=axes.transAxes
    )
    axes.text(
        0,
        1 + 0.17 * inch,
        f"frames {start + 1:,} to {start + horizon:,} · f = {result.n_components} · λ = {result.lam:g}",
        fontsize=TEXT,
        color=QUIET,
        transform=axes.transAxes,
    )


def _draw_patches(
    axes: Axes,
    result: PhaseResult,
    spacing: int,
    span: tuple[float, float],
    height: float,
    cell: float,
    limit: float,
    *,
    labels: bool,
) -> None:
    """Rows of patches; y counts inches from the top."""
    axes.set_xlim(*span)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    pictures = {"input": result.frames, "estimate": result.estimates} | {
        method: score.predicted for method, score in result.scores.items()
    }
    beside = axes.get_yaxis_transform()  # x in fractions of the panel, y in inches
    means = {method: float(np.mean(log_mse(score.vs_code))) for method, score in result.scores.items()}
    best = min(means, key=means.__getitem__)
    axes.text(
        1 + 0.06 / _PANEL,
        -0.09,
        "mean\nlog MSE",
        fontsize=SMALL,
        color=QUIET,
        va="bottom",
        transform=beside,
        clip_on=False,
    )
    half_x, half_y = 0.475 * spacing, 0.475 * cell
    y = 0.0
    for group in _GROUPS:
        for name in group:
            middle = y + cell / 2
            for step in shown_steps(len(result.frames)):
                axes.imshow(
                    as_picture(pictures[name][step - 1], result.picture_shape, limit),
                    cmap="gray",
                    vmin=-limit,
                    vmax=limit,
                    extent=(step - half_x, step + half_x, middle + half_y, middle - half_y),
                    aspect="auto",
                    interpolation="nearest",
                )
            if labels:
                axes.text(
                    -0.1 / _PANEL,
                    middle,
                    _ROW_NAMES[name],
                    fontsize=TEXT,
                    color=INK,
                    ha="right",
                    va="center",
                    transform=beside,
                )
                if name in METHOD_STYLES:
                    key = (-_LABELS / _PANEL, (-_LABELS + 0.3) / _PANEL)
                    axes.add_line(
                        Line2D(key, (middle, middle), transform=beside, clip_on=False, **METHOD_STYLES[name].kwargs())
                    )
            if name in means:
                axes.text(
                    1 + 0.06 / _PANEL,
                    middle,
                    f"{means[name]:.2f}".replace("-", "−"),
                    fontsize=TEXT,
                    fontweight="bold" if name == best else "normal",
                    color=INK,
                    va="center",
                    transform=beside,
                )
            y += cell
        y += _GROUP_GAP
    # imshow takes the limits over.
    axes.set_xlim(*span)
    axes.set_ylim(height, 0)
