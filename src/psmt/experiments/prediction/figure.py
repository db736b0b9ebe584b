"""Figures of the prediction: errors and patches of each phase (Fig. 4 of the paper), and effects over all starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from psmt.evaluation import METHODS, log_mse
from psmt.experiments.prediction.phase import PhaseResult
from psmt.experiments.prediction.run import MARGIN, PredictionResult
from psmt.figures.layouts import Estimate, draw_estimates, draw_key, panel_figure
from psmt.figures.panels import as_picture
from psmt.figures.style import COLOURS, INK, METHOD_STYLES, QUIET, RULE, SMALL, TEXT, TITLE, style_axes
from psmt.report.numbers import signed

_COLUMNS = 8
"""Patches in a row, approximately."""

_ROWS = {"input": "input", "estimate": "estimate (layer 1)"} | {name: METHODS[name] for name in METHOD_STYLES}
"""Rows of patches; two rows are a group, with a gap to the next group."""

_PLACES = np.arange(len(_ROWS)) + 0.5 + 0.2 * (np.arange(len(_ROWS)) // 2)
"""Centres of the rows, in heights of a patch."""


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
    # All phases have the same horizon, so one size of patches fits all panels.
    horizon, n = len(results[0].frames), len(results)
    steps = shown_steps(horizon)
    spacing = steps[1] - steps[0] if len(steps) > 1 else 1
    span = 1 - spacing / 2, max(steps[-1] + spacing / 2, horizon + 0.25)
    aspect = (_PLACES[-1] + 0.5) * spacing / (span[1] - span[0])
    # What layer 1 shows is what is predicted. The frames have a few extreme values, which would leave all else grey.
    limit = max(float(np.percentile(np.abs(result.estimates), 98)) for result in results) or 1.0
    columns = min(n, 2)
    # Patches are square and stand below their steps, so all sizes are in inches.
    panel, gap, below, heights = 3.9, 1.18, 0.75, [2.5, 3.9 * aspect] * -(-n // columns)
    width = 2.12 + columns * (panel + gap) - 0.38
    height = 0.5 + sum(heights) + below * (len(heights) - 1) + 0.6
    figure = Figure(figsize=(width, height))
    grid: dict[str, Any] = {"left": 2.12 / width, "right": 1 - 0.8 / width, "wspace": gap / panel}
    grid |= {"top": 1 - 0.5 / height, "bottom": 0.6 / height, "hspace": below / np.mean(heights)}
    panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights, gridspec_kw=grid)
    for k, result in enumerate(results):
        i, j = divmod(k, columns)
        curves, patches = panels[2 * i : 2 * i + 2, j]
        _draw_curves(curves, result, steps)
        _draw_patches(patches, result, steps, spacing, limit, labels=j == 0)
        curves.set_xlim(*span)
        patches.set(label="patches", xlim=span, ylim=(_PLACES[-1] + 0.5, 0))  # imshow changes the limits
        if j == 0:
            curves.set_ylabel("log MSE vs code\n(natural log)", fontsize=TEXT, color=INK, linespacing=1.3)
    for unused in panels[-2:, 1:] if n % columns else ():
        figure.delaxes(*unused)
    fold = "" if n > 1 else "\n"
    note = "Each prediction is one step ahead and knows all earlier frames."
    if results[0].picture_shape is None:
        note += f" {fold}Bars are features, on one scale (±{limit:.1f})."
    else:
        note += f" Patches are standardised, {fold}and share one grey scale (±{limit:.1f}; beyond it black or white)."
    figure.text(0.14 / width, 0.44 / height, note, fontsize=SMALL, color=QUIET, va="top", linespacing=1.35)
    return figure


def shown_steps(horizon: int) -> list[int]:
    """Steps 1, 1 + s, 1 + 2 s, .. whose patches are shown, about eight of them."""
    return list(range(1, horizon + 1, max(round((horizon - 1) / (_COLUMNS - 1)), 1)))


def _draw_curves(axes: Axes, result: PhaseResult, steps: Sequence[int]) -> None:
    for method, style in METHOD_STYLES.items():
        if method in result.scores:
            errors = log_mse(result.scores[method].vs_code)
            axes.plot(np.arange(1, len(errors) + 1), errors, label=METHODS[method], **style.kwargs())
    style_axes(axes)
    axes.set_xticks(steps)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.margins(y=0.08)
    axes.set_xlabel("step, and the patches predicted there", fontsize=SMALL, color=QUIET, labelpad=3)
    start, horizon = result.phase.start, len(result.frames)
    about = f"frames {start + 1:,} to {start + horizon:,} · f = {result.n_components} · λ = {result.lam:g}"
    axes.set_title(result.phase.name, fontsize=TITLE, fontweight="bold", color=INK, loc="left")
    axes.set_title(about, fontsize=SMALL, color=QUIET, loc="right")


def _draw_patches(
    axes: Axes, result: PhaseResult, steps: Sequence[int], spacing: int, limit: float, *, labels: bool
) -> None:
    """Draw rows of patches at their steps, with the line style and the mean error of each method beside them."""
    pictures = {"input": result.frames, "estimate": result.estimates} | {
        method: score.predicted for method, score in result.scores.items()
    }
    means = {method: float(np.mean(log_mse(score.vs_code))) for method, score in result.scores.items()}
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform()}  # x in fractions of the panel
    axes.text(1.015, -0.2, "mean\nlog MSE", fontsize=SMALL, color=QUIET, va="bottom", **beside)
    look: dict[str, Any] = {"cmap": "gray", "vmin": -limit, "vmax": limit, "interpolation": "nearest"}
    for name, y in zip(_ROWS, _PLACES, strict=True):
        for step in steps:
            picture = as_picture(pictures[name][step - 1], result.picture_shape, limit)
            half = 0.475 * spacing
            axes.imshow(picture, extent=(step - half, step + half, y + 0.475, y - 0.475), aspect="auto", **look)
        if labels and name in METHOD_STYLES:
            axes.plot((-0.5, -0.42), (y, y), clip_on=False, **beside, **METHOD_STYLES[name].kwargs())
        if name in means:
            weight = "bold" if means[name] == min(means.values()) else "normal"
            axes.text(1.015, y, signed(means[name]), fontsize=TEXT, color=INK, va="center", fontweight=weight, **beside)
    axes.set_xticks([])
    axes.set_yticks(_PLACES if labels else [], _ROWS.values() if labels else [], fontsize=TEXT, color=INK)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
