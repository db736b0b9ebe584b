"""Figures of `psmt predict`: phases (Fig. 4), a comparison of all methods, and one prediction (Fig. 1)."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from psmt.evaluation import METHODS, Interval, log_mse, mse
from psmt.experiments.prediction.phase import PhaseResult, PipelineStep, Truth
from psmt.experiments.prediction.run import Pair, PredictionResult
from psmt.figures.panels import GREY_LEVELS, as_picture, draw_estimates, label_axes, panel_figure, tiled
from psmt.figures.style import COLOURS, INK, METHOD_STYLES, QUIET, RULE, SMALL, TEXT, TITLE, literal, style_axes
from psmt.report.numbers import error
from psmt.types import Array, Levels

_COLUMNS = 8  # approximate number of patches in a row


def methods_figure(result: PredictionResult) -> Figure:
    """Draw each method's mean MSE over all starts, divided by that of copying, with 95% intervals.

    Each method has a row. The method with the lowest MSE against true frames comes first.
    """
    copies: dict[Truth, str] = {"frame": "copy", "code": "copy_code"}
    figure, panels = panel_figure(
        [["methods"]],
        height=1.3 + 0.3 * len(result.ranking),
        title="Error ÷ copying",
        note="Mean MSE over all starts divided by that of copying the last patch (vs frame) and the last code (vs "
        "code), 95% intervals.\nLeft of 1 is better than copying. A bar that ends at the edge has no bound there.",
    )
    found = {
        (own.method, truth): result.compare(Pair((own.method,), (copy,), truth, is_control=True)).statistic
        for own in result.ranking
        for truth, copy in copies.items()
    }
    known = [value for own in found.values() for value in own if np.isfinite(value)]
    low, high = min(known, default=0.0) - 0.3, max(known, default=0.0) + 0.3
    rows = {
        METHODS[own.method]: {
            f"vs {truth}": Interval(*np.clip(found[own.method, truth], low, high).tolist()) for truth in copies
        }
        for own in result.ranking
    }
    axes, colours = panels["methods"], {"vs frame": COLOURS[0], "vs code": COLOURS[4]}
    draw_estimates(axes, rows, colours)
    axes.set_xlim(low, high)
    steps = (1, 2, 5) if high - low < np.log(100) else (1,)
    marks = [m * 10.0**e for e in range(-7, 8) for m in steps if low <= np.log(m * 10.0**e) <= high]
    axes.set_xticks(np.log(marks), [f"{mark:g}" for mark in marks])
    look: dict[str, Any] = {"marker": "o", "markersize": 6, "linewidth": 2.4}
    handles = [Line2D([], [], color=colour, label=name, **look) for name, colour in colours.items()]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False, fontsize=TEXT)
    return figure


def prediction_figure(results: Sequence[PhaseResult]) -> Figure:
    """Draw each phase: the log MSE of all methods by step, vs codes and vs frames, and some predicted patches."""
    if not results:
        raise ValueError("results is empty; give the result of at least one phase")
    n, columns, steps = len(results), min(len(results), 2), shown_steps(len(results[0].frames))
    methods = [name for name in METHOD_STYLES if any(name in result.scores for result in results)]
    # The limit comes from reconstructions: a few extreme values of the frames themselves would make all else grey.
    limit = max(float(np.percentile(np.abs(result.estimates), 98)) for result in results) or 1.0
    shown = "Bars are features" if results[0].picture_shape is None else "Patches are standardised"
    tall = 3.9 * (len(methods) + 2) / max(len(steps), 4)
    figure, panels = panel_figure(
        [
            [f"{kind} {k}" if k < n else "." for k in range(first, first + columns)]
            for first in range(0, n, columns)
            for kind in ("code", "frame", "patches")
        ],
        width=0.8 + 5.6 * columns,
        height=(5.9 + tall) * -(-n // columns),
        heights=[2.4, 2.4, tall] * -(-n // columns),
        note=f"Each prediction is one step ahead and knows all earlier frames.\n{shown}, on one scale (±{limit:.1f}).",
    )
    for k, result in enumerate(results):
        for truth in get_args(Truth):
            _draw_curves(panels[f"{truth} {k}"], result, steps, truth)
        axes, start, horizon = panels[f"code {k}"], result.phase.start, len(result.frames)
        about = f"frames {start + 1:,} to {start + horizon:,} · f = {result.n_components} · λ = {result.lam:g}"
        axes.set_title(f"{result.phase.name}\n", fontsize=TITLE, fontweight="bold", color=INK, loc="left")
        axes.set_title(about, fontsize=SMALL, color=QUIET, loc="right")
        _draw_patches(panels[f"patches {k}"], result, methods, steps, limit)
    return figure


def shown_steps(horizon: int) -> list[int]:
    """Return the numbers of about eight evenly spaced steps, from 1 on, whose patches are shown."""
    return list(range(1, horizon + 1, max(round((horizon - 1) / (_COLUMNS - 1)), 1)))


def _draw_curves(axes: Axes, result: PhaseResult, steps: Sequence[int], truth: Truth) -> None:
    for method, style in METHOD_STYLES.items():
        if method in result.scores:
            errors = log_mse(getattr(result.scores[method], f"vs_{truth}"))
            axes.plot(np.arange(1, len(errors) + 1), errors, label=METHODS[method], **style)
    style_axes(axes)
    axes.set_xticks(steps)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.margins(y=0.08)
    label_axes(axes, "step" if truth == "frame" else "", f"log MSE vs {truth}\n(natural log)")


def _draw_patches(axes: Axes, result: PhaseResult, methods: Sequence[str], steps: Sequence[int], limit: float) -> None:
    """Draw true patches, their reconstructions from codes, and the predictions of each method, one row each."""
    rows = {"input": result.frames, "estimate (layer 1)": result.estimates}
    rows |= {METHODS[name]: result.scores[name].predicted for name in methods if name in result.scores}
    pictures = [as_picture(own[step - 1], result.picture_shape, limit) for own in rows.values() for step in steps]
    canvas = tiled(pictures, len(steps))
    axes.imshow(canvas, GREY_LEVELS, vmin=-limit, vmax=limit, interpolation="nearest")
    height, width = (size / count for size, count in zip(canvas.shape, (len(rows), len(steps)), strict=True))
    middles = height * (np.arange(len(rows)) + 0.5) - 0.5
    axes.set_yticks(middles, list(rows), fontsize=SMALL, color=INK)
    axes.set_xticks(width * (np.arange(len(steps)) + 0.5) - 0.5, [f"{step}" for step in steps], fontsize=SMALL)
    axes.tick_params(length=0, axis="x")
    axes.tick_params(length=0, pad=26, axis="y")
    axes.spines[:].set_visible(False)
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "clip_on": False}  # x in fractions of the panel
    for y, name in zip(middles, [None, None, *methods], strict=False):
        if name in result.scores:
            axes.plot((-0.07, -0.01), (y, y), **beside, **METHOD_STYLES[name])


NOW, EXPECTED, TRUE = INK, COLOURS[0], COLOURS[1]
"""Colours of the last frame, of the predicted next frame and of the true next frame."""


def pipeline_figure(result: PredictionResult) -> Figure:
    """Draw how PSMT makes the first prediction of the last phase: frame, patch, code, embedding, predicted patch."""
    phase, rule = result.phases[-1], result.settings.extrapolation
    step, shape = phase.step, phase.picture_shape
    if step is None:
        raise ValueError(f"phase {phase.phase.name} has no step to draw; compute the phase with predict_phase")
    noun = "patch" if shape else "values"
    predicted, truth = phase.scores["psmt"].predicted[0], phase.frames[0]
    errors = [error(float(mse(values, truth))) for values in (predicted, step.frame)]
    ahead = {"linear": "continued straight", "hold": "held"}.get(rule, f"continued by the rule “{rule}”")
    first = ["whole", "."] if result.frame is not None or len(step.recent) else []
    upper = [*first, "given", ".", "code", ".", "path", ".", "predicted"]
    lower = [*first, "estimate", ".", "code", ".", "path", ".", "truth"]
    figure, panels = panel_figure(
        [upper, upper, lower, [{"code": "atoms"}.get(name, name) for name in lower]],
        height=3.9,
        widths=[*[1.9, 0.06][: len(first)], 1.15, 0.06, 2.5, 0.06, 2.1, 0.06, 1.15],
        note=f"The code says which atoms add up to the {noun}. The embedding places the code on a path, which is "
        f"{ahead} by one step.\nThe code of the new point gives the predicted {noun}: MSE {errors[0]}. "
        f"Copying the last {noun} has {errors[1]}. The report has errors over many starts.",
    )
    if result.frame is not None and shape:
        _draw_frame(panels["whole"], *result.frame, side=shape[0])
    elif first:
        _draw_recent(panels["whole"], step.recent, result.series.feature_names if result.series else None)
    limit = float(np.percentile(np.abs([step.frame, step.estimate, truth]), 99)) or 1.0
    for name, values, text, colour in (
        ("given", step.frame, "given", NOW),
        ("estimate", step.estimate, "sum of its atoms", NOW),
        ("predicted", predicted, "predicted", EXPECTED),
        ("truth", truth, "true", TRUE),
    ):
        axes = panels[name]
        _draw_values(axes, values, shape, (0.0, 1.0, 0.0, 1.0), limit, colour)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal" if shape else "auto", xticks=[], yticks=[])
        axes.set_xlabel(text, fontsize=SMALL, color=colour, labelpad=2)
        axes.spines[:].set(color=colour, linewidth=1.6)
    _draw_code(panels["code"], panels["atoms"], step, shape)
    _draw_path(panels["path"], step)
    titles = {"whole": f"Frame {phase.phase.start:,}" if shape else "Series", "given": noun.capitalize()}
    titles |= {"code": "Sparse code (layer 1)", "path": "Embedding (layer 2)", "predicted": f"Next {noun}"}
    arrow = {"arrowstyle": "-|>,head_width=0.28,head_length=0.5", "color": QUIET, "linewidth": 1.6}
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    for k, name in enumerate(name for name in titles if name in panels):
        panels[name].set_title(f"{k + 1}  {titles[name]}", fontsize=TEXT, fontweight="bold", color=INK, loc="left")
        if k:
            panels[name].annotate("", (-0.01, 0.5), (-17, 0), arrowprops=arrow, **place)
    return figure


def _draw_values(
    axes: Axes, values: Array, shape: tuple[int, int] | None, box: Sequence[float], limit: float, colour: str = INK
) -> None:
    """Draw values (n_features,) in a `box` (left, right, bottom, top): a picture, or a line if `shape` is None."""
    left, right, bottom, top = box
    if shape is not None:
        look: dict[str, Any] = {"cmap": "gray", "vmin": -limit, "vmax": limit, "interpolation": "nearest"}
        axes.imshow(values.reshape(shape), extent=(left, right, bottom, top), aspect="auto", **look)
        return
    middle = (bottom + top) / 2
    axes.plot([left, right], [middle, middle], color=RULE, linewidth=0.8)
    heights = middle + (top - bottom) / 2 * np.clip(values / limit, -1, 1)
    axes.plot(np.linspace(left, right, len(values)), heights, color=colour, linewidth=1.2)


def _draw_frame(axes: Axes, frame: Levels, corner: list[int], *, side: int) -> None:
    axes.imshow(frame[0], cmap="gray", interpolation="nearest")
    row, column = corner
    for colour, width in ((INK, 3.6), (COLOURS[4], 2.0)):
        square = Rectangle((column - 0.5, row - 0.5), side, side, fill=False, edgecolor=colour, linewidth=width)
        axes.add_patch(square)
    axes.set_axis_off()
    axes.set_anchor("N")


def _draw_recent(axes: Axes, recent: Array, names: Sequence[str] | None) -> None:
    """Draw the four features with the largest variance in `recent` (time, n_features) as lines, one above the other."""
    chosen = np.sort(np.argsort(-recent.std(axis=0), kind="stable")[:4])
    places = -1.1 * float(np.ptp(recent[:, chosen], axis=0).max()) * np.arange(len(chosen))
    axes.plot(np.arange(1 - len(recent), 1), recent[:, chosen] + places, color=QUIET, linewidth=1.1)
    axes.plot(np.zeros(len(chosen)), recent[-1, chosen] + places, "o", color=NOW, markersize=4)
    style_axes(axes, grid=False)
    axes.set_yticks(places, [literal(names[i][:12]) if names else str(i) for i in chosen])
    label_axes(axes, "steps before the prediction", "" if names else "feature", SMALL)


def _draw_code(code: Axes, atoms: Axes, step: PipelineStep, shape: tuple[int, int] | None) -> None:
    """Draw the largest activities of the code as bars, with the atom below each bar."""
    n, active = len(step.atoms), len(step.activities)
    code.bar(np.arange(n), step.activities[:n], width=0.5, color=COLOURS[0])
    limit = float(np.percentile(np.abs(step.atoms), 98)) if n else 1.0
    for k, atom in enumerate(step.atoms):
        _draw_values(atoms, atom, shape, (k - 0.45, k + 0.45, -0.45, 0.45), limit)
    for axes in (code, atoms):
        axes.set(xlim=(-0.6, max(n, 1) - 0.4), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    code.axhline(0, color=QUIET, linewidth=1.2)
    atoms.set(ylim=(-0.5, 0.5), aspect="equal" if shape else "auto", anchor="N")
    text = f"the {n} most active of its {active} atoms" if active > n else "its active atoms"
    label_axes(atoms, text, size=SMALL)


def _draw_path(axes: Axes, step: PipelineStep) -> None:
    """Draw the latest points of the trajectory in the embedding, and the predicted and the true next point."""
    axes.plot(*step.path.T, "o-", color=QUIET, markersize=3.5, linewidth=1.2)
    points = {"now": (step.path[-1], NOW, "o"), "predicted": (step.expected, EXPECTED, "o")}
    for name, (point, colour, mark) in (points | {"true": (step.following, TRUE, "D")}).items():
        axes.plot(*np.stack([step.path[-1], point]).T, color=colour, linewidth=1.4, linestyle=(0, (2, 1.2)))
        axes.plot(*point, mark, color=colour, markersize=7, markeredgecolor="white", label=name, zorder=5)
    style_axes(axes, grid=False)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.12)
    label_axes(axes, "the two slowest directions", size=SMALL)
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.09), "ncols": 3}
    axes.legend(fontsize=SMALL, frameon=False, handletextpad=0.1, columnspacing=0.8, **place)
