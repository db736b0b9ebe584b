"""Section on the reconstruction: Fig. 4 (a), and what the screen says of it."""

from __future__ import annotations

import numpy as np

from psmt.experiments.phases import told_motion
from psmt.experiments.reconstruction.run import ReconstructionResult
from psmt.report import Fact, Picture, Section
from psmt.report.numbers import error


def reconstruction_section(result: ReconstructionResult, picture: bytes) -> Section:
    """Section on the error of each frame through the embedding of all, with the figure as a PNG file."""
    errors, segment = result.errors, result.segment
    return Section(
        title="Reconstruction with all frames",
        text=[
            f"Every frame goes through one embedding of all frames, with {result.settings.n_atoms:,} atoms, and back "
            f"(the original sparse manifold transform, V not centred): mean MSE {error(float(np.mean(errors)))}, "
            f"median {error(float(np.median(errors)))}. The segment of least mean error is {segment.start:,} to "
            f"{segment.stop:,} (MSE {error(segment.mse)}), as 8,448 to 9,984 is in the paper.",
            *_phases(result),
        ],
        pictures=[Picture(picture, alt="Reconstruction MSE of each frame, with the phases marked")],
    )


def _phases(result: ReconstructionResult) -> list[str]:
    """Where the phases are and how much they move, where the film has room for any."""
    settings = result.settings
    if not result.phases:
        return []
    where = "Inside this segment, as in the paper," if settings.search == "segment" else "In the whole film,"
    return [
        f"{where} the stretch that comes back best is the calm phase, the one that comes back worst the lively one; "
        "they have no frame in common. This chooses where to look; no prediction uses it.",
        told_motion(result.motion, result.phases, horizon=settings.horizon),
    ]


def reconstruction_facts(result: ReconstructionResult) -> list[Fact]:
    """Sizes and prices."""
    settings = result.settings
    sizes = f"M = {settings.n_atoms:,}, f = {settings.components:,}, α = {settings.alpha:g}, λ = {settings.lam:g}"
    return [Fact("Reconstruction", sizes)]


def reconstruction_lines(result: ReconstructionResult) -> list[str]:
    """The mean of the errors, and the segment in which it is least."""
    best = result.segment
    return [
        f"{len(result.errors):,} frames: mean MSE {error(float(result.errors.mean()))}",
        f"least in frames {best.start:,} to {best.stop:,}: mean MSE {error(best.mse)}",
        *_phases(result)[1:],
    ]
