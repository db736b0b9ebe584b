"""Fig. 4 (a) of the paper: how well each frame comes back, and the phases that this singles out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from psmt.experiments.phases import Phase, Stretch
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TEXT, TITLE, style_axes


def reconstruction_figure(
    errors: ArrayLike, phases: Sequence[Phase], *, window: int, horizon: int, segment: Stretch | None = None
) -> Figure:
    """Figure of the MSE (time,) of each frame after the embedding of all frames, with phases and a segment marked.

    With a `window` of 0 there is no first window to be left out of the search for phases.
    """
    values = np.asarray(errors, dtype=np.float64)
    figure = Figure(figsize=(10.0, 3.3))
    axes = figure.add_axes((0.075, 0.16, 0.905, 0.6))
    style_axes(axes)
    frames = np.arange(len(values))
    if window:
        axes.axvspan(0, window, color=RULE, alpha=0.35, linewidth=0)
        axes.text(
            window / 2,
            0.95,
            "first window",
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=SMALL,
            color=QUIET,
        )
    axes.plot(frames, values, color=QUIET, linewidth=0.6, alpha=0.75)
    length = horizon + 1
    if len(values) >= length:
        mean = np.convolve(values, np.full(length, 1 / length), mode="valid")
        axes.plot(frames[: len(mean)] + horizon / 2, mean, color=INK, linewidth=1.6)
    axes.set_xlim(0, len(values))
    axes.set_ylim(0, 1.06 * max(float(values.max()), np.finfo(float).tiny))
    beneath = axes.get_xaxis_transform()
    near = 0.2 * len(values)  # labels closer than this would touch
    for i, phase in enumerate(phases):
        colour = COLOURS[i % len(COLOURS)]
        axes.axvspan(phase.start, phase.start + length, color=colour, alpha=0.28, linewidth=0)
        middle = phase.start + length / 2
        axes.plot(
            [middle], [1.0], marker="v", markersize=6, color=colour, transform=axes.get_xaxis_transform(), clip_on=False
        )
        share = middle / len(values)
        crowd = sum(abs(other.start - phase.start) < near for other in phases[:i])
        axes.annotate(
            f"{phase.name}, from {phase.start:,}",
            (middle, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, 6 + 13 * crowd),
            textcoords="offset points",
            ha="left" if share < 0.1 else "right" if share > 0.9 else "center",
            fontsize=TEXT,
            fontweight="bold",
            color=colour,
        )
    if segment is not None:
        ends = [segment.start, segment.stop]
        axes.plot(ends, [0.025, 0.025], color=INK, linewidth=3.2, solid_capstyle="butt", transform=beneath)
    axes.set_xlabel("frame", fontsize=TEXT, color=INK)
    axes.set_ylabel("MSE", fontsize=TEXT, color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.text(
        0.012, 0.965, "Reconstruction error of each frame", fontsize=TITLE, fontweight="bold", color=INK, va="top"
    )
    note = f"black: mean over {length} frames"
    if segment is not None:
        note += f" · bar: least error, {segment.start:,} to {segment.stop:,}"
    figure.text(0.985, 0.96, note, fontsize=SMALL, color=QUIET, va="top", ha="right")
    return figure
