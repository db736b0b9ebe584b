"""Plots of predictions beside the true frames, and of surprise."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from psmt.figures.panels import show_tiles, tiled
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, style_axes
from psmt.plot.shared import BESIDE, Shape, axes_of, fitted, label, numbers, shape_of
from psmt.types import Array

_FEATURES = 4
"""Number of features of a series that are drawn. Those with the largest variance are drawn."""

_PAST = 60  # largest number of past rows that are drawn

_COLUMNS = 10  # largest number of pictures in a row

_DASHED = (0, (3, 1.6))


def prediction(
    given: Any,
    truth: ArrayLike | None = None,
    *,
    horizon: int = 8,
    interval: float | None = None,
    features: Sequence[str | int] | None = None,
    past: ArrayLike | None = None,
    shape: Shape = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw predictions and true frames, as pictures or lines, and return the axes.

    The first argument is a model, or predictions (steps, n_features): an array, a data frame or an `Interval`. `truth`
    (steps, n_features) are the true frames. A model predicts as many steps as `truth` has, or `horizon` steps without
    it. An `interval` adds intervals of this coverage. Frames of `FramePredictor` are always pictures.

    Lines show the `features`, given by name or number; by default the four with the largest variance. Lines begin with
    the last rows of the `past` (time, n_features), if given. Intervals are shaded.
    """
    came = None if truth is None else np.asarray(truth, dtype=np.float64)
    names = getattr(given, "feature_names_in_", None)
    if hasattr(given, "predict"):
        options = {} if interval is None else {"interval": interval}
        given = fitted(given).predict(horizon if came is None else len(came), **options)
    bounds = None
    if isinstance(given, tuple) and hasattr(given, "lower"):
        given, *bounds = given
    names = getattr(given, "columns", names)
    predicted = np.asarray(given, dtype=np.float64)
    if predicted.ndim == 3:
        shape = predicted.shape[1], predicted.shape[2]
        predicted = predicted.reshape(len(predicted), -1)
        came = None if came is None else came.reshape(len(came), -1)
    predicted = numbers(predicted, "predictions")
    if came is not None and came.shape != predicted.shape:
        raise ValueError(f"truth has shape {came.shape} but predictions have {predicted.shape}; give equal shapes")
    known = shape_of(shape, predicted if came is None else came) if features is None and bounds is None else None
    if known is not None:
        return _as_pictures(predicted, came, known, ax)
    before = np.zeros((0, predicted.shape[1])) if past is None else numbers(past, "past")
    if before.shape[1] != predicted.shape[1]:
        raise ValueError(f"past has {before.shape[1]} features, predictions have {predicted.shape[1]}; give the same")
    labels = [f"feature {i}" for i in range(predicted.shape[1])] if names is None else list(map(str, names))
    lively = np.argsort(-(predicted if came is None else came).std(axis=0), kind="stable")[:_FEATURES]
    shown = np.sort(lively).tolist() if features is None else [_place(one, labels) for one in features]
    return _as_lines(predicted, came, before[-_PAST:], bounds, {i: labels[i] for i in shown}, ax)


def _place(feature: str | int, names: Sequence[str]) -> int:
    if isinstance(feature, int) and 0 <= feature < len(names):
        return feature
    if feature not in names:
        raise ValueError(f"feature {feature!r} is not there; choose from 0 to {len(names) - 1}, or {', '.join(names)}")
    return names.index(str(feature))


def _as_pictures(predicted: Array, came: Array | None, shape: tuple[int, int], ax: Axes | None) -> Axes:
    steps = np.unique(np.linspace(0, len(predicted) - 1, min(len(predicted), _COLUMNS)).round().astype(int))
    rows = {"predicted": predicted}
    if came is not None:
        rows = {"truth": came, "predicted": predicted, "difference": predicted - came}
        if came.min() >= 0 and came.max() <= 1:
            # Centre the grey levels of whole frames at 0. A difference is already centred.
            rows |= {"truth": 2 * came - 1, "predicted": 2 * predicted - 1}
    ax = axes_of(ax, (0.75 * len(steps) + 1.2, 0.8 * len(rows) + 0.7))
    limit = max(float(np.percentile(np.abs(next(iter(rows.values()))), 99.5)), 1e-12)
    canvas = tiled([values[step].reshape(shape) for values in rows.values() for step in steps], len(steps))
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


def _as_lines(
    predicted: Array, came: Array | None, past: Array, bounds: Any, shown: Mapping[int, str], ax: Axes | None
) -> Axes:
    """Draw predictions, the true frames `came`, the `past` and interval `bounds`. `shown` maps features to names."""
    ax = axes_of(ax, (7.5, 3.4))
    time, before = np.arange(1, len(predicted) + 1), np.arange(1 - len(past), 1)
    for i, (feature, name) in enumerate(shown.items()):
        colour = COLOURS[i % len(COLOURS)]
        known = past[:, feature] if came is None else np.concatenate([past[:, feature], came[:, feature]])
        if len(known):
            ax.plot([*before, *time][: len(known)], known, color=colour, linewidth=1.6)
        ax.plot(time, predicted[:, feature], color=colour, linewidth=1.4, linestyle=_DASHED)
        if bounds is not None:
            lower, upper = (np.asarray(bound, dtype=np.float64)[:, feature] for bound in bounds)
            ax.fill_between(time, lower, upper, color=colour, alpha=0.18, linewidth=0)
        ax.plot([], [], color=colour, label=name)
    if came is not None or len(past):
        ax.plot([], [], color=INK, label="truth")
    ax.plot([], [], color=INK, linestyle=_DASHED, label="predicted")
    if bounds is not None:
        ax.fill_between([], [], color=INK, alpha=0.18, linewidth=0, label="interval")
    style_axes(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.ticklabel_format(axis="y", style="plain", useOffset=False)
    title = f"Predicted rows, {len(shown)} of {predicted.shape[1]} features"
    return label(ax, title, "step ahead", "value", legend=BESIDE)


def surprise(given: Any, frames: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the surprise of each frame, relative to its usual value, and the detected cuts. Return the axes.

    The first argument is a model or an array (time,) of surprise. A copy of the model receives the `frames` (time,
    ...). They must follow the frames that the model has received.
    """
    cuts = np.zeros(0, dtype=np.int64)
    if hasattr(given, "update"):
        if frames is None:
            raise ValueError("a model needs frames; give the frames that came next: surprise(model, frames)")
        copied = deepcopy(fitted(given))
        found = [(received.surprise_, received.cut_) for received in map(copied.update, np.asarray(frames))]
        values = np.array([value for value, _ in found])
        cuts = np.flatnonzero([cut for _, cut in found])
    else:
        values = numbers(given, "surprise", axes=1)
    ax = axes_of(ax, (7.5, 2.8))
    ax.plot(np.maximum(values, 1e-3), color=COLOURS[0], linewidth=1.1, label="surprise")
    ax.axhline(1.0, color=QUIET, linewidth=0.8, linestyle=(0, (2, 2)), label="usual")
    for i, cut in enumerate(cuts.tolist()):
        ax.axvline(cut, color=COLOURS[1], linewidth=1.2, alpha=0.8, label="cut" if i == 0 else None)
    ax.set_yscale("log")
    style_axes(ax)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
    count = f"{len(cuts)} cut{'' if len(cuts) == 1 else 's'}" if len(cuts) else "no cut"
    return label(ax, f"Surprise of {len(values):,} frames, {count}", "frame", "surprise ÷ usual", legend=BESIDE)
