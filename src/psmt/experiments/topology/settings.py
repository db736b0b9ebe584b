"""`psmt topology`: its parameters, its command, and the lines of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple, Self

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import RATIO, Option, Presets, WindowSettings, anything, from_library, quarter
from psmt.utils.constraints import check_count, count, real

if TYPE_CHECKING:
    from psmt.types import Ints

MOST_WINDOWS = 2048
"""Windows in a film: in longer films they lie further apart, so that memory does not grow. With the paper's sizes this
begins at 202,000 frames."""

N_NULLS = 19
"""Draws of each null model: a statistic beyond all of them has p <= 1 / 20."""

RULE = (
    "most informative: largest variance over time of the logarithm of the component size, times one less the share "
    "of the windows with links that it spends in the component of an atom chosen before it"
)
"""How atoms are chosen if none are given."""


@dataclass(frozen=True, kw_only=True)
class TopologySettings(WindowSettings):
    """Parameters of the topology; the defaults are the paper's sizes.

    Examples
    --------
    >>> TopologySettings().components
    512
    """

    n_atoms: Annotated[shared.Atoms, count(2)] = 2048
    window: shared.Window = 6144
    overlap: float = 63 / 64
    """Share of a window that the next one has too."""
    n_components: shared.QuarterComponents = None
    """Windows of a smaller rank use their rank."""
    threshold: Annotated[float, real(-1.0)] = from_library("psmt.embedding.atom_graph", "THRESHOLD")
    """Cosine similarity above which two atoms are linked."""
    min_uses: int = from_library("psmt.experiments.window_graphs", "MIN_USES")
    """Frames of a window in which an atom must be used to have links."""
    alpha: shared.Alpha = 1.0
    max_epochs: int = 5
    """Passes over the film in which the dictionary is learned, at most."""
    chosen: Annotated[
        tuple[int, ...] | None,
        Option("--atom", "Atom to follow; may be repeated.", default="the three most informative"),
        anything,
    ] = None
    n_chosen: int = 3
    """Number of atoms that are chosen by `RULE` if none are given."""
    n_permutations: int = 999
    n_nulls: Annotated[int, count(N_NULLS)] = N_NULLS
    """Films without the claimed effect that each claim is compared with, see `design`."""
    seed: shared.Seed = 0
    departures: shared.EmbeddingDepartures = field(default_factory=shared.our_departures)
    solver: shared.Solver = "closed"
    series: bool = False
    """The values are a series, not patches: atoms are drawn as bars, and are not shifted to be compared."""

    PRESETS: ClassVar[Presets] = {
        "quick": {"n_atoms": 128, "window": 384, "overlap": 15 / 16},
        # Four parts of the built-in film, and twice as many frames per atom as in the paper, whose film is longer: with
        # three per atom, two sets of frames of the same time share hardly any links, and tests are inconclusive.
        "demo": {"n_atoms": 128, "window": 720, "overlap": 15 / 16, "n_nulls": 59},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap >= 1:
            raise ValueError(f"overlap={self.overlap} leaves no step between windows; use 0 <= overlap < 1")
        if self.chosen is not None:
            _check_chosen(self.chosen, self.n_atoms)

    @property
    def components(self) -> int:
        """Dimension f of the embedding."""
        return quarter(self.n_atoms, self.n_components)

    @property
    def step(self) -> int:
        """Frames from one window to the next, unless the film has more than `MOST_WINDOWS`."""
        return _step(self.window, self.overlap)

    def starts(self, n_frames: int) -> Ints:
        """First frames (n_windows,) of the windows in a film, at least two and at most `MOST_WINDOWS`.

        >>> TopologySettings().starts(10_000)[[0, 1, -1]]
        array([   0,   96, 3840])
        """
        import numpy as np

        self.check(n_frames)
        room = n_frames - self.window + 1
        return np.arange(0, room, max(self.step, -(-room // MOST_WINDOWS)))

    def needed(self) -> int:
        """Frames of two windows."""
        return self.window + self.step

    def check(self, n_frames: int, /) -> None:
        """Raise unless the film is long enough for two windows."""
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

    def smaller(self, n_atoms: int) -> Self:
        """These settings with fewer atoms; those that were given may not be among them."""
        return replace(self, n_atoms=n_atoms, window=RATIO * n_atoms, chosen=None)


class Row(NamedTuple):
    """One line of topology.csv."""

    center: int
    atom: int
    component_size: int
    neighbours: int


def _step(window: int, overlap: float) -> int:
    return max(1, round(window * (1 - overlap)))


def _check_chosen(chosen: Sequence[int], n_atoms: int) -> None:
    if len(chosen) == 0:
        raise ValueError("chosen=() names no atom; give at least one, or None for the most informative ones")
    for atom in chosen:
        check_count("chosen atom", atom, minimum=0)
        if atom >= n_atoms:
            raise ValueError(f"chosen atom {atom} is out of range; the dictionary has atoms 0 to {n_atoms - 1}")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"chosen={tuple(chosen)} names an atom twice; give each once")


COMMAND = Command(
    name="topology",
    help="""Follow which atoms move together, window by window (Fig. 3 of the paper).

Writes topology.csv, topology.png and atom_map.png: all atoms, with neighbours in the embedding side by side.""",
    settings=TopologySettings,
    chapter=True,
)
