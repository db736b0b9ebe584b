"""The experiment `psmt reconstruct`: all frames from one embedding, and its report with Fig. 4 (a) of the paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from psmt.experiments import phases
from psmt.experiments.contract import Experiment
from psmt.experiments.film_tasks import code_film, window_task
from psmt.experiments.phases import FilmPhase, Stretch, error_memory
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.figures import png
from psmt.figures.panels import label_axes, panel_figure
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TITLE, style_axes
from psmt.pipeline.run import Run
from psmt.report import Picture, Section, csv_parts
from psmt.report.numbers import error
from psmt.types import Array
from psmt.utils.validation import check_film


@dataclass(frozen=True, kw_only=True)
class ReconstructionResult:
    """The reconstruction error of each frame, and the segment and phases that are chosen by these errors."""

    settings: ReconstructionSettings
    errors: Array
    """MSE (time,) of each frame."""
    windows: Sequence[Stretch] = ()
    """Windows of the sweep with the same numbers of atoms and frames. If there are any, the segment is one of them."""

    @cached_property
    def sweep_segment(self) -> Stretch | None:
        """Of the sweep's windows with room for two phases, the one with the least error. None without such windows."""
        if self.search_window is None:
            return None
        return phases.least_window(self.windows, window=self.search_window, horizon=self.settings.horizon)

    @cached_property
    def segment(self) -> Stretch:
        """The segment in which phases are searched: `sweep_segment`, or else the film's segment of least error."""
        if self.sweep_segment is not None:
            return self.sweep_segment
        if self.search_window is None:
            return phases.least_error(self.errors, window=self.settings.window)
        return phases.phase_segment(self.errors, window=self.search_window, horizon=self.settings.horizon)

    @cached_property
    def search_window(self) -> int | None:
        """Number of frames that must precede a phase, or None if the film is too short for phases."""
        return self.settings.search_window(len(self.errors))

    @cached_property
    def phases(self) -> list[FilmPhase]:
        """The stretches of the film to predict, or [] if the film is too short."""
        if self.search_window is None:
            return []
        own = self.settings
        return phases.find_phases(
            self.errors, window=self.search_window, horizon=own.horizon, search=own.search, segment=self.sweep_segment
        )

    def summary(self) -> dict[str, Any]:
        """Return the numbers for summary.json."""
        return {
            "mean": float(np.mean(self.errors)),
            "median": float(np.median(self.errors)),
            "least_error": self.segment._asdict(),
            "segment_of": "whole-film errors" if self.sweep_segment is None else "windows of the sweep",
            "error_memory": error_memory(self.errors),
            "phases": [{"phase": own.name, "start": own.start} for own in self.phases],
        }


def reconstruct(
    values: ArrayLike, settings: ReconstructionSettings, run: Run, windows: Sequence[Stretch] = ()
) -> ReconstructionResult:
    """Reconstruct patches of a film, or a series (time, n_features), from one embedding of all frames.

    Return the errors. If there are `windows` of a sweep, phases are searched in the window with the least error.
    """
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="reconstruction")
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run)
    name = f"reconstruction-M{settings.n_atoms:04d}"
    whole = {"patches": film, "dictionary": dictionary, "codes": codes}
    # In the original transform, V is the second moment about zero.
    task = window_task(name, whole, settings.components, settings, run, centred=False)
    (result,) = run.tasks([task], "all frames")
    return ReconstructionResult(settings=settings, errors=result["mse"], windows=windows)


def reconstruction_section(result: ReconstructionResult, picture: bytes) -> Section:
    """Return the section of the report on the error of each frame. `picture` is the figure as a PNG file."""
    errors, segment, settings = result.errors, result.segment, result.settings
    of = "all frames" if result.sweep_segment is None else "the windows of the sweep"
    text = [
        f"Each frame is coded, embedded and recovered with one embedding of all frames and {settings.n_atoms:,} atoms "
        f"(the original sparse manifold transform, V not centred): mean MSE {error(float(np.mean(errors)))}, median "
        f"{error(float(np.median(errors)))}. By the errors of {of}, the segment of least mean error is "
        f"{segment.start:,} to {segment.stop:,} (MSE {error(segment.mse)}); in the paper it is 8,448 to 9,984. Errors "
        f"stay alike for {error_memory(errors):,} frames (autocorrelation above 1/e); K is {settings.horizon}."
    ]
    if result.phases:
        where = "Inside this segment, as in the paper," if settings.search == "segment" else "In the whole film,"
        text += [
            f"{where} the stretch of least error is the calm phase, and that of largest error the lively one; they "
            "have no frame in common. This only chooses the stretches: no prediction uses these errors."
        ]
    pictures = [Picture(picture, alt="Reconstruction MSE of each frame, with the phases marked")]
    return Section(title="Reconstruction with all frames", text=text, pictures=pictures)


def reconstruction_figure(result: ReconstructionResult) -> Figure:
    """Draw the MSE of each frame, and mark the phases, the segment of least error, and the frames before any phase."""
    errors, segment = result.errors, result.segment
    length = min(result.settings.horizon + 1, len(errors))
    figure, panels = panel_figure([["errors"]], height=3.6)
    axes = panels["errors"]
    style_axes(axes)
    axes.plot(errors, color=QUIET, linewidth=0.6, alpha=0.75, label="each frame")
    mean = np.convolve(errors, np.full(length, 1 / length), mode="valid")
    axes.plot(
        np.arange(len(mean)) + (length - 1) / 2, mean, color=INK, linewidth=1.6, label=f"mean over {length} frames"
    )
    spans = {"first window": (0, result.search_window or 0, RULE, 1.0)}
    spans |= {"segment of least error": (segment.start, segment.stop, INK, 0.03)}
    for phase, colour in zip(result.phases, COLOURS, strict=False):
        spans[f"{phase.name}, from {phase.start:,}"] = phase.start, phase.start + length, colour, 1.0
    for name, (start, stop, colour, top) in spans.items():
        axes.axvspan(start, stop, ymax=top, color=colour, alpha=0.4 if top == 1 else 1.0, linewidth=0, label=name)
    axes.set(xlim=(0, len(errors)), ylim=(0, 1.06 * max(float(errors.max()), np.finfo(float).tiny)))
    axes.set_title("Reconstruction error of each frame\n", fontsize=TITLE, fontweight="bold", color=INK, loc="left")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=6, fontsize=SMALL, frameon=False, borderaxespad=0.2)
    label_axes(axes, "frame", "MSE")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def _run(values: Array, settings: ReconstructionSettings, run: Run, earlier: Mapping[str, Any]) -> ReconstructionResult:
    windows: list[Stretch] = []
    if (swept := earlier.get("sweep")) is not None:
        places = swept.settings.segments(settings.window, swept.n_frames)
        errors = swept.errors.get((settings.lam, settings.n_atoms, settings.window), ())
        found = zip(places, errors, strict=False)  # no errors if the sweep had other sizes
        windows = [Stretch(start, stop, float(np.mean(own))) for (start, stop), own in found]
    return reconstruct(values, settings, run, windows)


EXPERIMENT = Experiment[ReconstructionSettings, ReconstructionResult](
    run=_run,
    files={
        "reconstruction.png": lambda result: png(reconstruction_figure(result)),
        "reconstruction.csv": lambda result: csv_parts(("frame", "mse"), enumerate(map(float, result.errors))),
    },
    shown=lambda result: [
        f"{len(result.errors):,} frames: mean MSE {error(float(result.errors.mean()))}",
        f"least in frames {result.segment.start:,} to {result.segment.stop:,}: mean MSE {error(result.segment.mse)}",
    ],
    sections=lambda result, files: [reconstruction_section(result, files["reconstruction.png"])],
    summary=ReconstructionResult.summary,
)
