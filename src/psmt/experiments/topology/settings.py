"""The parameters of `psmt topology`, and its help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import RATIO, Option, Presets, WindowSettings, from_library, quarter
from psmt.utils.constraints import count, real

if TYPE_CHECKING:
    from psmt.types import Ints

MOST_WINDOWS = 2048
"""Largest number of windows in a film. In longer films, windows are further apart, so that memory does not grow. With
the paper's sizes, this begins at 202,000 frames."""

N_NULLS = 19
"""Number of draws of each null model. A statistic above all draws has p <= 1 / 20."""

RULE = (
    "atoms with the largest score: the variance over time of the logarithm of the component's size, times 1 − the "
    "share of windows in which the atom is linked and belongs to the component of an atom that is already chosen"
)
"""The rule that chooses the atoms to follow over time."""


@dataclass(frozen=True, kw_only=True)
class TopologySettings(WindowSettings):
    """Parameters of `psmt topology`. By default, the numbers of atoms and frames are the paper's."""

    n_atoms: Annotated[shared.Atoms, count(2)] = 2048
    window: shared.Window = 6144
    best_of_sweep: bool = False
    """Whether to use the number of atoms and window length with the lowest error in the sweep (`psmt reproduce`)."""
    overlap: Annotated[
        float, Option("--overlap", "Fraction of frames, below 1, that successive windows of the topology share.")
    ] = 63 / 64
    n_components: shared.QuarterComponents = None
    """Number of dimensions of the embedding. Windows of a smaller rank use their rank."""
    threshold: Annotated[
        float, Option("--threshold", "Cosine of columns of P above which atoms are linked.", default="0.7"), real(-1.0)
    ] = from_library("psmt.embedding.atom_graph", "THRESHOLD")
    min_uses: int = from_library("psmt.experiments.window_graphs", "MIN_USES")
    """Number of frames of a window in which an atom must be used to have links."""
    alpha: shared.Alpha = 1.0
    max_epochs: int = 5
    """Largest number of passes over the film in which the dictionary is learned."""
    n_chosen: int = 3
    """Number of atoms that are chosen by `RULE`."""
    n_permutations: int = 999
    n_nulls: Annotated[int, count(N_NULLS)] = N_NULLS
    """Number of draws of each null model that the claims are compared with."""
    seed: shared.Seed = 0
    departures: shared.Departed = field(default_factory=shared.make_departures)

    PRESETS: ClassVar[Presets] = {
        "quick": {"n_atoms": 128, "window": 384, "overlap": 15 / 16},
        # Four parts of the built-in film, and twice as many frames per atom as in the paper, whose film is longer: with
        # three per atom, two sets of frames of the same time share hardly any links, and tests are inconclusive.
        "demo": {"n_atoms": 128, "window": 720, "overlap": 15 / 16, "n_nulls": 59},
    }

    @classmethod
    def make(cls, given: Mapping[str, Any] | None = None, *, preset: str = "", **fallbacks: Any) -> Self:
        """Return settings as `Settings.make` does. `best_of_sweep` is True unless sizes or 'demo' are given."""
        best = not {"n_atoms", "window"} & (given or {}).keys() and preset != "demo"
        return super().make({"best_of_sweep": best, **(given or {})}, preset=preset, **fallbacks)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap >= 1:
            raise ValueError(f"overlap={self.overlap} leaves no step between windows; use 0 <= overlap < 1")

    @property
    def components(self) -> int:
        """Number of dimensions of the embedding."""
        return quarter(self.n_atoms, self.n_components)

    @property
    def step(self) -> int:
        """Number of frames between the starts of successive windows. In a long film, `starts` uses larger steps."""
        return _step(self.window, self.overlap)

    def starts(self, n_frames: int) -> Ints:
        """Return the first frame (n_windows,) of each window in a film. There are at most `MOST_WINDOWS` windows.

        >>> TopologySettings().starts(10_000)[[0, 1, -1]]
        array([   0,   96, 3840])
        """
        import numpy as np

        self.check(n_frames)
        room = n_frames - self.window + 1
        return np.arange(0, room, max(self.step, -(-room // MOST_WINDOWS)))

    def needed(self) -> int:
        """Return the smallest number of frames that a film must have, for two windows."""
        return self.window + self.step

    def check(self, n_frames: int, /) -> None:
        """Raise if a film of `n_frames` is too short for two windows."""
        if n_frames < self.needed():
            fits = max((size for size in range(3, n_frames) if size + _step(size, self.overlap) <= n_frames), default=0)
            way_out = (
                f"use window <= {fits}, and with three codes per atom n_atoms <= {fits // RATIO}"
                if fits >= 6
                else f"use a film of at least {6 + _step(6, self.overlap)} frames"
            )
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, but two windows of window={self.window} with "
                f"overlap={self.overlap:g} need {self.needed()}; {way_out}"
            )


def _step(window: int, overlap: float) -> int:
    return max(1, round(window * (1 - overlap)))


COMMAND = Command(
    name="topology",
    help="""Follow which atoms move together, window by window (Fig. 3 of the paper).

Writes topology.csv, topology.png and report.html.""",
    settings=TopologySettings,
    chapter=True,
)
