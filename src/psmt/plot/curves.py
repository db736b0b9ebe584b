"""Predictions beside what came, errors of methods, surprise over time, and errors by size."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from psmt.errors import PSMTError
from psmt.evaluation import METHODS, log_mse, trimmed
from psmt.figures.methods import METHOD_STYLES
from psmt.figures.panels import show_tiles, tiled
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, LineStyle, style_axes
from psmt.figures.sweep_chart import draw_sweep
from psmt.plot.drawn import Shape, axes_of, label, numbers, shape_of
from psmt.plot.tables import is_table, read_table
from psmt.types import Array

_FEATURES = 4
"""Lines of a series that are drawn: those that vary most."""

_COLUMNS = 10
"""Pictures in a row at the most."""


def prediction(
    given: Any,
    truth: ArrayLike | None = None,
    *,
    horizon: int = 8,
    shape: Shape = "auto",
    phase: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Axes with predicted frames below those that came, or as dashed lines; of a table, with the errors of all methods.

    Parameters
    ----------
    given : fitted model, array (steps, n_features) of predictions; or table
        A model predicts as many steps as `truth` has, by itself. A table is what ``psmt predict`` writes,
        prediction.csv, or its result.
    truth : array_like (steps, n_features), optional
        What came.
    horizon : int
        Steps of a model's prediction where there is no truth.
    shape : (height, width), None or 'auto'
        Of frames that are pictures, see `psmt.plot`. Those of `FramePSMT` are known to be.
    phase : str, optional
        Which one of a table; the first.
    ax : Axes, optional
        Where to draw; a new figure's where none is given.
    """
    if is_table(given):
        return _errors(given, phase, ax)
    came = None if truth is None else np.asarray(truth, dtype=np.float64)
    if hasattr(given, "predict"):
        check_is_fitted(given)
        given = given.predict(horizon if came is None else len(came))
    predicted = np.asarray(given, dtype=np.float64)
    if predicted.ndim == 3:
        shape = predicted.shape[1], predicted.shape[2]
        predicted = predicted.reshape(len(predicted), -1)
        came = None if came is None else came.reshape(len(came), -1)
    predicted = numbers(predicted, "predictions")
    if came is not None and came.shape != predicted.shape:
        raise ValueError(f"truth has shape {came.shape} but predictions have {predicted.shape}; give as many frames")
    known = shape_of(shape, predicted if came is None else came)
    draw = _as_lines if known is None else _as_pictures
    return draw(predicted, came, known, ax)


def _as_pictures(predicted: Array, came: Array | None, shape: Any, ax: Axes | None) -> Axes:
    steps = np.unique(np.linspace(0, len(predicted) - 1, min(len(predicted), _COLUMNS)).round().astype(int))
    rows = [("predicted", predicted)] if came is None else [("came", came), ("predicted", predicted)]
    if came is not None:
        rows.append(("difference", predicted - came))
    ax = axes_of(ax, (0.75 * len(steps) + 1.2, 0.8 * len(rows) + 0.7))
    if came is not None and came.min() >= 0 and came.max() <= 1:
        # Grey levels of whole frames: their middle is a half, and a difference has its own.
        rows = [(name, values if name == "difference" else 2 * values - 1) for name, values in rows]
    limit = max(float(np.percentile(np.abs(rows[0][1]), 99.5)), 1e-12)
    pictures = [values[step].reshape(shape) for _, values in rows for step in steps]
    canvas = tiled(pictures, [(i, j) for i in range(len(rows)) for j in range(len(steps))], (len(rows), len(steps)))
    show_tiles(ax, canvas, limit)
    pitch = (canvas.shape[0] + 1) / len(rows)
    for i, (name, _) in enumerate(rows):
        ax.text(-0.03 * canvas.shape[1], (i + 0.5) * pitch, name, ha="right", va="center", fontsize=SMALL, color=INK)
    across = canvas.shape[1] / len(steps)
    for j, step in enumerate(steps):
        ax.text((j + 0.5) * across, canvas.shape[0], f"{step + 1}", ha="center", va="top", fontsize=SMALL, color=QUIET)
    label(ax, "Predicted frames, by steps ahead")
    return ax


def _as_lines(predicted: Array, came: Array | None, _shape: Any, ax: Axes | None) -> Axes:
    lively = np.sort(np.argsort(-(predicted if came is None else came).std(axis=0), kind="stable")[:_FEATURES])
    ax = axes_of(ax, (7.0, 3.4))
    time = np.arange(1, len(predicted) + 1)
    for i, feature in enumerate(lively):
        colour = COLOURS[i % len(COLOURS)]
        if came is not None:
            ax.plot(time, came[:, feature], color=colour, linewidth=1.6)
        ax.plot(time, predicted[:, feature], color=colour, linewidth=1.4, linestyle=(0, (3, 1.6)))
        ax.plot([], [], color=colour, label=f"feature {feature}")
    if came is not None:
        ax.plot([], [], color=INK, label="came")
    ax.plot([], [], color=INK, linestyle=(0, (3, 1.6)), label="predicted")
    style_axes(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    # The legend has room of its own above the lines.
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.3 * (high - low))
    ax.legend(frameon=False, fontsize=SMALL, ncols=3, loc="upper left")
    label(ax, f"Predicted frames, {len(lively)} of {predicted.shape[1]} features", "step ahead", "value")
    return ax


def _errors(table: Any, phase: str | None, ax: Axes | None) -> Axes:
    columns = read_table(table, ("phase", "method", "step", "mse_vs_frame"), made_by="psmt predict (prediction.csv)")
    phases = list(dict.fromkeys(columns["phase"].tolist()))
    chosen = phases[0] if phase is None else phase
    if chosen not in phases:
        raise PSMTError(f"phase={phase!r} is not in the table; there are {', '.join(map(repr, phases))}")
    ax = axes_of(ax, (7.5, 4.0))
    methods = dict.fromkeys(columns["method"].tolist())
    for method in [name for name in METHOD_STYLES if name in methods] + [m for m in methods if m not in METHOD_STYLES]:
        own = (columns["phase"] == chosen) & (columns["method"] == method)
        look = METHOD_STYLES.get(method, LineStyle(QUIET, 1.3)).kwargs()
        errors = log_mse(columns["mse_vs_frame"][own])
        ax.plot(columns["step"][own], errors, label=f"{METHODS.get(method, method)} ({errors.mean():.2f})", **look)
    style_axes(ax)
    ax.legend(frameon=False, fontsize=SMALL, loc="upper left", bbox_to_anchor=(1.0, 1.0), title="mean log MSE")
    label(ax, f"Errors in phase “{chosen}”", "step", "log MSE vs frame")
    return ax


def surprise(given: Any, frames: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Axes with the surprise of each frame, in units of what is usual, and the cuts that were told.

    Parameters
    ----------
    given : fitted model, array (time,); or table
        A model needs the `frames` that come next; a copy receives them, so that the model stays as it is. A table is
        what ``psmt predict-video`` writes, scores.csv, or has a column ``surprise``, and ``cut`` if cuts are marked.
    frames : array_like (time, ..), optional
        What came after the frames that the model knows.
    ax : Axes, optional
        Where to draw; a new figure's where none is given.
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
        check_is_fitted(given)
        copied = deepcopy(given)
        told = [(received.surprise_, received.cut_) for received in map(copied.update, np.asarray(frames))]
        values, time = np.array([value for value, _ in told]), np.arange(len(told))
        cuts = np.flatnonzero([cut for _, cut in told])
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
    ax.legend(frameon=False, fontsize=SMALL, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    told_cuts = f"{len(cuts)} cut{'' if len(cuts) == 1 else 's'}" if len(cuts) else "no cut"
    label(ax, f"Surprise of {len(values):,} frames, {told_cuts} told", "frame", "surprise ÷ usual")
    return ax


class _Entry(NamedTuple):
    """One (M, H) of Table 1."""

    n_atoms: int
    window: int
    trimmed_mean: float
    trimmed_std: float
    mean: float


def sweep(given: Any, *, lam: float | None = None, ax: Axes | None = None) -> Axes:
    """Axes with errors by size: of a table by atoms M and window H, of a model by the f and λ that it chose between.

    Parameters
    ----------
    given : fitted PSMT; or table
        A model with ``n_components='auto'`` or ``lam='auto'`` keeps the walk-forward errors behind its choice. A table
        is what ``psmt sweep`` writes, sweep.csv, or its result.
    lam : float, optional
        Which λ of a table; the first.
    ax : Axes, optional
        Where to draw; a new figure's where none is given.
    """
    if hasattr(given, "choice_"):
        return _chosen(given, ax)
    columns = read_table(given, ("lam", "n_atoms", "window", "mse"), made_by="psmt sweep (sweep.csv)")
    lams = np.unique(columns["lam"])
    chosen = columns["lam"][0] if lam is None else lam
    if chosen not in lams:
        raise PSMTError(f"lam={lam} is not in the table; there are {', '.join(f'{value:g}' for value in lams)}")
    own = columns["lam"] == chosen
    sizes = np.stack([columns["n_atoms"][own], columns["window"][own]], axis=1).astype(int)
    errors = columns["mse"][own].astype(np.float64)
    entries = []
    for n_atoms, window in np.unique(sizes, axis=0).tolist():
        values = errors[(sizes == (n_atoms, window)).all(axis=1)]
        inner = trimmed(values)
        mean = float(values.mean())
        entries.append(_Entry(n_atoms, window, float(inner.mean()), float(inner.std()), mean))
    ax = axes_of(ax, (6.0, 3.8))
    draw_sweep(ax, entries)
    ax.legend(frameon=False, fontsize=SMALL)
    label(ax, f"Reconstruction error, λ = {chosen:g}", "window H", "mean MSE ± standard deviation")
    return ax


def _chosen(model: Any, ax: Axes | None) -> Axes:
    scores = model.choice_.scores
    if not scores:
        raise PSMTError("nothing was chosen: n_components and lam were given; fit with n_components='auto', lam='auto'")
    ax = axes_of(ax, (6.4, 3.6))
    sizes = list(dict.fromkeys(f for f, _ in scores))
    for i, size in enumerate(sizes):
        prices = sorted(price for f, price in scores if f == size)
        name = "all directions" if size is None else f"f = {size}"
        errors = [scores[size, price] for price in prices]
        ax.plot(prices, errors, "o-", color=COLOURS[i % len(COLOURS)], linewidth=1.5, markersize=4.5, label=name)
    best = min(scores, key=scores.__getitem__)
    ax.plot(best[1], scores[best], "o", markersize=11, markerfacecolor="none", markeredgecolor=INK, label="chosen")
    style_axes(ax)
    ax.set_xscale("log")
    ax.legend(frameon=False, fontsize=SMALL, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    label(ax, "What was chosen between", "λ", "walk-forward MSE")
    return ax
