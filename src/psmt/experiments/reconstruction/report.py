"""The reconstruction as an experiment, and its report, with Fig. 4 (a) of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from psmt.experiments.contract import Experiment
from psmt.experiments.phases import FilmPhase, Stretch, describe_motion
from psmt.experiments.reconstruction.run import ReconstructionResult, reconstruct
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.figures import png
from psmt.figures.layouts import panel_figure
from psmt.figures.panels import label_axes
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TEXT, style_axes
from psmt.report import Picture, Section, csv_parts
from psmt.report.numbers import error


def reconstruction_section(result: ReconstructionResult, picture: bytes) -> Section:
    """Section on the error of each frame, with the figure as a PNG file."""
    errors, segment, settings = result.errors, result.segment, result.settings
    text = [
        f"Each frame is coded, embedded and recovered with one embedding of all frames and {settings.n_atoms:,} atoms "
        f"(the original sparse manifold transform, V not centred): mean MSE {error(float(np.mean(errors)))}, median "
        f"{error(float(np.median(errors)))}. The segment of least mean error is {segment.start:,} to {segment.stop:,} "
        f"(MSE {error(segment.mse)}); in the paper it is 8,448 to 9,984."
    ]
    if result.phases:
        where = "Inside this segment, as in the paper," if settings.search == "segment" else "In the whole film,"
        text += [
            f"{where} the stretch of least error is the calm phase, and that of largest error the lively one; they "
            "have no frame in common. This only chooses the stretches: no prediction uses these errors.",
            describe_motion(result.motion, result.phases, horizon=settings.horizon),
        ]
    pictures = [Picture(picture, alt="Reconstruction MSE of each frame, with the phases marked")]
    return Section(title="Reconstruction with all frames", text=text, pictures=pictures)


def reconstruction_lines(result: ReconstructionResult) -> list[str]:
    """Lines for the screen: the mean error, the segment of least error, and the motion of the phases."""
    best, phases = result.segment, result.phases
    return [
        f"{len(result.errors):,} frames: mean MSE {error(float(result.errors.mean()))}",
        f"least in frames {best.start:,} to {best.stop:,}: mean MSE {error(best.mse)}",
        *([describe_motion(result.motion, phases, horizon=result.settings.horizon)] if phases else []),
    ]


def reconstruction_figure(
    errors: ArrayLike, phases: Sequence[FilmPhase], *, window: int, horizon: int, segment: Stretch | None = None
) -> Figure:
    """Figure of the MSE (time,) of each frame, with phases and a segment marked.

    The first `window` frames have no room for phases; with 0 they are not marked.
    """
    values, length = np.asarray(errors, dtype=np.float64), horizon + 1
    note = f"Black: mean over {length} frames."
    if segment is not None:
        note += f" Bar: segment of least error, {segment.start:,} to {segment.stop:,}."
    figure, panels = panel_figure([["errors"]], height=3.3, title="Reconstruction error of each frame", note=note)
    axes = panels["errors"]
    style_axes(axes)
    n_frames = len(values)
    inside: dict[str, Any] = {"transform": axes.get_xaxis_transform()}  # x in frames, y in fractions of the panel
    if window:
        axes.axvspan(0, window, color=RULE, alpha=0.35, linewidth=0)
        # At the left edge: a short window has no room for centred text.
        axes.text(0.004 * n_frames, 0.97, "first window", va="top", fontsize=SMALL, color=QUIET, **inside)
    axes.plot(np.arange(n_frames), values, color=QUIET, linewidth=0.6, alpha=0.75)
    if n_frames >= length:
        mean = np.convolve(values, np.full(length, 1 / length), mode="valid")
        axes.plot(np.arange(len(mean)) + horizon / 2, mean, color=INK, linewidth=1.6)
    axes.set_xlim(0, n_frames)
    axes.set_ylim(0, 1.06 * max(float(values.max()), np.finfo(float).tiny))
    for i, phase in enumerate(phases):
        colour, middle = COLOURS[i % len(COLOURS)], phase.start + length / 2
        axes.axvspan(phase.start, phase.start + length, color=colour, alpha=0.28, linewidth=0)
        axes.plot([middle], [1.0], marker="v", markersize=6, color=colour, clip_on=False, **inside)
        # Labels of phases that are close to each other stand one above the other.
        crowd = sum(abs(other.start - phase.start) < 0.2 * n_frames for other in phases[:i])
        axes.annotate(
            f"{phase.name}, from {phase.start:,}",
            (middle, 1.0),
            (0, 6 + 13 * crowd),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="left" if middle < 0.1 * n_frames else "right" if middle > 0.9 * n_frames else "center",
            fontsize=TEXT,
            fontweight="bold",
            color=colour,
        )
    if segment is not None:
        ends = [segment.start, segment.stop]
        axes.plot(ends, [0.025, 0.025], color=INK, linewidth=3.2, solid_capstyle="butt", **inside)
    label_axes(axes, "frame", "MSE")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def _picture(result: ReconstructionResult) -> bytes:
    return png(
        reconstruction_figure(
            result.errors,
            result.phases,
            window=result.search_window or 0,
            horizon=min(result.settings.horizon, len(result.errors) - 1),
            segment=result.segment,
        )
    )


EXPERIMENT = Experiment[ReconstructionSettings, ReconstructionResult](
    run=lambda values, settings, run, _: reconstruct(values, settings, run),
    files={
        "reconstruction.png": _picture,
        "reconstruction.csv": lambda result: csv_parts(("frame", "mse"), enumerate(map(float, result.errors))),
    },
    shown=reconstruction_lines,
    sections=lambda result, files: [reconstruction_section(result, files["reconstruction.png"])],
    summary=ReconstructionResult.summary,
)
