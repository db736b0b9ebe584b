"""Plots of predictions and errors: predictions beside the true frames, errors of methods, surprise, and sweeps."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from psmt.errors import PSMTError
from psmt.evaluation import METHODS, log_mse
from psmt.figures.layouts import draw_sweep
from psmt.figures.panels import show_tiles, tiled
from psmt.figures.style import COLOURS, INK, METHOD_STYLES, QUIET, SMALL, LineStyle, style_axes
from psmt.plot.shared import BESIDE, Shape, axes_of, fitted, is_table, label, numbers, read_table, shape_of
from psmt.types import Array

_FEATURES = 4
"""Features of a series that are drawn: those with the largest variance."""

_COLUMNS = 10
"""Largest number of pictures in a row."""

_DASHED = (0, (3, 1.6))


def prediction(
    given: Any,
    truth: ArrayLike | None = None,
    *,
    horizon: int = 8,
    shape: Shape = "auto",
    phase: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw predictions with the true frames: as pictures, or as lines; or, from a table, the errors of all methods.

    `given` is a model or its predictions (steps, n_features). A model predicts as many steps as `truth` has, the true
    frames (steps, n_features), or `horizon` steps without it. Frames of `FramePSMT` are pictures whatever the `shape`.
    A table is prediction.csv of ``psmt predict``, or its result; `phase` is one of its phases, by default the first.
    """
    if is_table(given):
        return _errors(given, phase, ax)
    came = None if truth is None else np.asarray(truth, dtype=np.float64)
    if hasattr(given, "predict"):
        given = fitted(given).predict(horizon if came is None else len(came))
    predicted = np.asarray(given, dtype=np.float64)
    if predicted.ndim == 3:
        shape = predicted.shape[1], predicted.shape[2]
        predicted = predicted.reshape(len(predicted), -1)
        came = None if came is None else came.reshape(len(came), -1)
    predicted = numbers(predicted, "predictions")
    if came is not None and came.shape != predicted.shape:
        raise ValueError(f"truth has shape {came.shape} but predictions have {predicted.shape}; give as many frames")
    known = shape_of(shape, predicted if came is None else came)
    return _as_lines(predicted, came, ax) if known is None else _as_pictures(predicted, came, known, ax)


def _as_pictures(predicted: Array, came: Array | None, shape: tuple[int, int], ax: Axes | None) -> Axes:
    steps = np.unique(np.linspace(0, len(predicted) - 1, min(len(predicted), _COLUMNS)).round().astype(int))
    rows = {"predicted": predicted}
    if came is not None:
        rows = {"truth": came, "predicted": predicted, "difference": predicted - came}
        if came.min() >= 0 and came.max() <= 1:
            # Grey levels of whole frames: 0.5 becomes 0. A difference is centred at 0 already.
            rows |= {"truth": 2 * came - 1, "predicted": 2 * predicted - 1}
    ax = axes_of(ax, (0.75 * len(steps) + 1.2, 0.8 * len(rows) + 0.7))
    limit = max(float(np.percentile(np.abs(next(iter(rows.values()))), 99.5)), 1e-12)
    pictures = [values[step].reshape(shape) for values in rows.values() for step in steps]
    grid = (len(rows), len(steps))
    canvas = tiled(pictures, [(i, j) for i in range(grid[0]) for j in range(grid[1])], grid)
    show_tiles(ax, canvas, limit)
    height, width = canvas.shape
    for i, name in enumerate(rows):
        middle = (i + 0.5) * (height + 1) / len(rows)
        ax.text(-0.03 * width, middle, name, ha="right", va="center", fontsize=SMALL, color=INK)
    for j, step in enumerate(steps):
        ax.text(
            (j + 0.5) * width / len(steps), height, f"{step + 1}", ha="center", va="top", fontsize=SMALL, color=QUIET
        )
    return label(ax, "Predicted frames, by steps ahead")


def _as_lines(predicted: Array, came: Array | None, ax: Axes | None) -> Axes:
    lively = np.sort(np.argsort(-(predicted if came is None else came).std(axis=0), kind="stable")[:_FEATURES])
    ax = axes_of(ax, (7.0, 3.4))
    time = np.arange(1, len(predicted) + 1)
    for i, feature in enumerate(lively):
        colour = COLOURS[i % len(COLOURS)]
        if came is not None:
            ax.plot(time, came[:, feature], color=colour, linewidth=1.6)
        ax.plot(time, predicted[:, feature], color=colour, linewidth=1.4, linestyle=_DASHED)
        ax.plot([], [], color=colour, label=f"feature {feature}")
    if came is not None:
        ax.plot([], [], color=INK, label="truth")
    ax.plot([], [], color=INK, linestyle=_DASHED, label="predicted")
    style_axes(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Room for the legend above the lines.
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.3 * (high - low))
    title = f"Predicted frames, {len(lively)} of {predicted.shape[1]} features"
    return label(ax, title, "step ahead", "value", legend={"ncols": 3, "loc": "upper left"})


def _errors(table: Any, phase: str | None, ax: Axes | None) -> Axes:
    columns = read_table(table, ("phase", "method", "step", "mse_vs_frame"), made_by="psmt predict (prediction.csv)")
    phases = list(dict.fromkeys(columns["phase"].tolist()))
    chosen = phases[0] if phase is None else phase
    if chosen not in phases:
        raise PSMTError(f"phase={phase!r} is not in the table; there are {', '.join(map(repr, phases))}")
    ax = axes_of(ax, (7.5, 4.0))
    there = columns["method"].tolist()
    for method in [name for name in dict.fromkeys([*METHOD_STYLES, *there]) if name in there]:
        own = (columns["phase"] == chosen) & (columns["method"] == method)
        look = METHOD_STYLES.get(method, LineStyle(QUIET, 1.3)).kwargs()
        errors = log_mse(columns["mse_vs_frame"][own])
        ax.plot(columns["step"][own], errors, label=f"{METHODS.get(method, method)} ({errors.mean():.2f})", **look)
    style_axes(ax)
    legend = {**BESIDE, "title": "mean log MSE"}
    return label(ax, f"Errors in phase “{chosen}”", "step", "log MSE vs frame", legend=legend)


def surprise(given: Any, frames: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the surprise of each frame relative to its usual value, and the detected cuts.

    `given` is a model, the values (time,), or a table. A copy of a model receives the `frames` (time, ..) that follow
    those that it has received. A table is scores.csv of ``psmt predict-video``, or has a column ``surprise``, and
    ``cut`` if cuts are marked.
    """
    cuts = np.zeros(0, dtype=np.int64)
    if is_table(given):
        columns = read_table(given, ("surprise",), made_by="psmt predict-video (scores.csv)")
        own = np.isfinite(columns["surprise"])
        if "method" in columns:
            own &= columns["method"] == "psmt"
        values = columns["surprise"][own]
        time = columns["frame"][own] if "frame" in columns else np.arange(len(values))
        if "cut" in columns:
            cuts = time[columns["cut"][own] > 0]
    elif hasattr(given, "update"):
        if frames is None:
            raise ValueError("a model is surprised by frames; give those that came next: surprise(model, frames)")
        copied = deepcopy(fitted(given))
        found = [(received.surprise_, received.cut_) for received in map(copied.update, np.asarray(frames))]
        values, time = np.array([value for value, _ in found]), np.arange(len(found))
        cuts = np.flatnonzero([cut for _, cut in found])
    else:
        values = numbers(given, "surprise", axes=1)
        time = np.arange(len(values))
    ax = axes_of(ax, (7.5, 2.8))
    ax.plot(time, np.maximum(values, 1e-3), color=COLOURS[0], linewidth=1.1, label="surprise")
    ax.axhline(1.0, color=QUIET, linewidth=0.8, linestyle=(0, (2, 2)), label="usual")
    for i, cut in enumerate(cuts.tolist()):
        ax.axvline(cut, color=COLOURS[1], linewidth=1.2, alpha=0.8, label="cut" if i == 0 else None)
    ax.set_yscale("log")
    style_axes(ax)
    count = f"{len(cuts)} cut{'' if len(cuts) == 1 else 's'}" if len(cuts) else "no cut"
    return label(ax, f"Surprise of {len(values):,} frames, {count}", "frame", "surprise ÷ usual", legend=BESIDE)


def sweep(given: Any, *, lam: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw errors by size: from a table by atoms M and window H, from a model by the f and λ that it chose from.

    A model with ``n_components='auto'`` or ``lam='auto'`` keeps the walk-forward errors behind its choice. A table is
    sweep.csv of ``psmt sweep``, or its result; `lam` is one of its penalties λ, by default the first.
    """
    if hasattr(given, "choice_"):
        return _choice(given.choice_.scores, ax)
    columns = read_table(given, ("lam", "n_atoms", "window", "mse"), made_by="psmt sweep (sweep.csv)")
    lams = np.unique(columns["lam"])
    chosen = columns["lam"][0] if lam is None else lam
    if chosen not in lams:
        raise PSMTError(f"lam={lam} is not in the table; there are {', '.join(f'{value:g}' for value in lams)}")
    own = columns["lam"] == chosen
    sizes = np.stack([columns["n_atoms"][own], columns["window"][own]], axis=1).astype(int)
    errors = columns["mse"][own].astype(np.float64)
    each = np.unique(sizes, axis=0).tolist()
    ax = axes_of(ax, (6.0, 3.8))
    draw_sweep(ax, {(m, h): errors[(sizes == (m, h)).all(axis=1)] for m, h in each})
    return label(ax, f"Reconstruction error, λ = {chosen:g}", "window H", "mean MSE ± standard deviation", legend={})


def _choice(scores: Any, ax: Axes | None) -> Axes:
    """Walk-forward errors by f and λ."""
    if not scores:
        raise PSMTError("nothing was chosen: n_components and lam were given; fit with n_components='auto', lam='auto'")
    ax = axes_of(ax, (6.4, 3.6))
    for i, size in enumerate(dict.fromkeys(f for f, _ in scores)):
        lams = sorted(lam for f, lam in scores if f == size)
        name = "all directions" if size is None else f"f = {size}"
        errors = [scores[size, lam] for lam in lams]
        ax.plot(lams, errors, "o-", color=COLOURS[i % len(COLOURS)], linewidth=1.5, markersize=4.5, label=name)
    best = min(scores, key=scores.__getitem__)
    ax.plot(best[1], scores[best], "o", markersize=11, markerfacecolor="none", markeredgecolor=INK, label="chosen")
    style_axes(ax)
    ax.set_xscale("log")
    return label(ax, "Candidates of the choice", "λ", "walk-forward MSE", legend=BESIDE)
