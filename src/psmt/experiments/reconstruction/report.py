"""The reconstruction as an experiment, and its report."""

from __future__ import annotations

import numpy as np

from psmt.experiments.contract import Experiment
from psmt.experiments.phases import describe_motion
from psmt.experiments.reconstruction.figure import reconstruction_figure
from psmt.experiments.reconstruction.run import ReconstructionResult, reconstruct
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.figures import png
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
