"""`python -m studies.readings`: its parameters and its command."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import RATIO, Presets, Settings
from psmt.utils.constraints import check_count, real
from studies.readings.reading import Reading, all_readings


@dataclass(frozen=True, kw_only=True)
class ReadingsSettings(Settings):
    """Sizes of Table 1 and Fig. 4, which are below the paper's: many readings are tried.

    Examples
    --------
    >>> settings = ReadingsSettings.make(preset="quick")
    >>> settings.windows(64), settings.ends(2000)
    ((128, 192), [384, 610, 837, 1063, 1289, 1515, 1742, 1968])
    """

    n_atoms: shared.SeveralAtoms = (512, 1024)
    """Of Table 1; Fig. 4 has the first of them, as in the paper."""
    ratios: Annotated[tuple[float, ...], real(open_bound=True)] = (2.0, 3.0)
    """Sizes of the window in Table 1, as multiples of M; Fig. 4 has 3 M, which the paper found best."""
    n_windows: int = 8
    """Windows of each size of Table 1, evenly spaced; those of all sizes end at the same frames."""
    n_starts: int = 12
    """Starts of Fig. 4, evenly spaced."""
    horizon: int = 30
    """K of Fig. 4."""
    lam: shared.SeveralLam = (0.1, 1.0, 3.0, 10.0, 30.0)
    alpha: shared.Alpha = 1.0
    max_epochs: int = 5
    seed: shared.Seed = 0
    departures: shared.LiteralDepartures = field(default_factory=shared.our_departures)
    """Those that readings do not differ in: noise in V, the bound, merging, and cuts."""
    series: bool = False
    """The values are a series, not patches: features are standardised by what lies before the first start of Fig. 4."""

    PRESETS: ClassVar[Presets] = {
        "quick": {"n_atoms": (64, 128), "horizon": 15},
        "demo": {"n_atoms": (128, 256), "horizon": 20},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_atoms", "ratios", "lam"):
            check_count(f"len({name})", len(getattr(self, name)))
        check_count("window", min(self._all_windows()), minimum=4)

    @property
    def told_departures(self) -> str:
        """Departures that every reading makes, in words."""
        return replace(self.departures, half_stencils=True, centred=True, dictionary_from="window").told()

    @property
    def readings(self) -> list[Reading]:
        """The readings that are tried."""
        return all_readings(self.lam)

    def windows(self, n_atoms: int) -> tuple[int, ...]:
        """Sizes H of the window for one M in Table 1."""
        return tuple(int(ratio * n_atoms) for ratio in self.ratios)

    @property
    def n_inside(self) -> int:
        """Frames of a window that are scored: its last, as many as the smallest has, so that all score the same."""
        return min(self._all_windows())

    @property
    def n_after(self) -> int:
        """Frames after a window that are reconstructed where that is the reading: a quarter of the smallest window."""
        return min(self._all_windows()) // 4

    @property
    def window(self) -> int:
        """H of Fig. 4."""
        return RATIO * self.n_atoms[0]

    def ends(self, n_frames: int) -> list[int]:
        """The frame after each window of Table 1."""
        return _spread(max(self._all_windows()), n_frames - self.n_after, self.n_windows)

    def starts(self, n_frames: int) -> list[int]:
        """First frame that is received, of each start of Fig. 4."""
        return _spread(self.window, n_frames - self.horizon - 1, self.n_starts)

    def check(self, n_frames: int, /) -> None:
        """Raise unless the film has room for one window of each combination and what follows it."""
        needed = max(max(self._all_windows()) + self.n_after, self.window + self.horizon + 1)
        if n_frames < needed:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, but the windows of n_atoms={self.n_atoms} and the frames after them "
                f"need {needed}; use a longer film or fewer atoms"
            )

    def _all_windows(self) -> list[int]:
        return [window for size in self.n_atoms for window in self.windows(size)]


def _spread(first: int, last: int, n: int) -> list[int]:
    """At most n different frames from `first` to `last`, evenly spaced."""
    return [int(place) for place in np.unique(np.linspace(first, last, n).round())]


COMMAND = Command(
    name="readings",
    help="""Try each reading of what the paper leaves open (Table 1 and Fig. 4 under all of them).

Writes readings.csv, readings.png and report.html. Ends with a table that says which readings give the paper's pattern \
and size. Full size on 10,000 frames: about 20 minutes on two cores. --literal leaves out what we add to the paper's \
numerics: no noise in V, no bound on activity, no merged columns, nothing held after a cut.""",
    settings=ReadingsSettings,
    no_departures="its readings differ in D, V and the dictionary; --literal leaves out all other departures",
)
