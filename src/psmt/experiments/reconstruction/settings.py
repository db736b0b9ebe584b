"""The parameters of `psmt reconstruct`, and its help."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import RATIO, Presets, Settings, quarter, smaller_sizes


@dataclass(frozen=True, kw_only=True)
class ReconstructionSettings(Settings):
    """Parameters of `psmt reconstruct`. By default, the number of atoms is the paper's."""

    n_atoms: shared.Atoms = 512
    n_components: shared.QuarterComponents = None
    alpha: shared.Alpha = 1.0
    lam: shared.Lam = 0.1
    max_epochs: int = 5
    """Largest number of passes over the film in which the dictionary is learned."""
    seed: shared.Seed = 0
    departures: shared.Departed = field(default_factory=shared.make_departures)
    window: shared.Window = 1536
    """Number of frames before a phase that a prediction needs, and length of the segment of least error."""
    horizon: shared.Horizon = 30
    search: shared.Search = "segment"

    PRESETS: ClassVar[Presets] = {
        "quick": {"n_atoms": 128, "window": 384},
        "demo": {"n_atoms": 128, "window": 384, "search": "film"},
    }

    @property
    def components(self) -> int:
        """Number of dimensions of the embedding."""
        return quarter(self.n_atoms, self.n_components)

    def search_window(self, n_frames: int) -> int | None:
        """Return how many frames must precede a phase: `window`, or fewer in a short film. None if no phase fits."""
        windows = (self.window, *(RATIO * size for size in smaller_sizes(self.n_atoms)))
        return next((window for window in windows if n_frames > window + self.horizon), None)

    def check(self, n_frames: int, /) -> None:
        """Raise unless a film has more frames than atoms, so that the covariance can have full rank."""
        if n_frames <= self.n_atoms:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, not more than n_atoms={self.n_atoms}; "
                f"use n_atoms < {n_frames}, or a longer film"
            )

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """Return settings and a note as `Settings.fitted` does. There are fewer atoms than the film has frames."""
        for size in (self.n_atoms, *smaller_sizes(self.n_atoms)):
            if size < n_frames:
                note = f"the film has only {n_frames:,} frames, at most M = {self.n_atoms:,}; M = {size:,} was used"
                return replace(self, n_atoms=size), "" if size == self.n_atoms else note
        return None, f"the film has {n_frames:,} frames; M = {size}, the smallest that is tried, needs more"


COMMAND = Command(
    name="reconstruct",
    help="""Reconstruct each frame through one embedding of all frames (the original sparse manifold transform).

Writes reconstruction.csv and reconstruction.png, with the segment of least error and the phases for a prediction.""",
    settings=ReconstructionSettings,
    chapter=True,
)
