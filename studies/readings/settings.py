"""The parameters of `python -m studies.readings`, and its help."""

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
    """Sizes of Table 1 and Fig. 4. They are smaller than in the paper, because many readings are tried.

    Examples
    --------
    >>> settings = ReadingsSettings.make(preset="quick")
    >>> settings.windows(64), settings.ends(2000)
    ((128, 192), [384, 610, 837, 1063, 1289, 1515, 1742, 1968])
    """

    n_atoms: shared.SeveralAtoms = (512, 1024)
    """Values of M in Table 1. Fig. 4 uses the first value, as in the paper."""
    ratios: Annotated[tuple[float, ...], real(open_bound=True)] = (2.0, 3.0)
    """Sizes of the window in Table 1, as multiples of M. Fig. 4 uses 3 M, the best in the paper."""
    n_windows: int = 8
    """Number of windows of each size in Table 1, evenly spaced. Windows of all sizes end at the same frames."""
    n_starts: int = 12
    """Number of starts in Fig. 4, evenly spaced."""
    horizon: int = 30
    """K in Fig. 4, the number of predicted frames."""
    lam: shared.SeveralLam = (0.1, 1.0, 3.0, 10.0, 30.0)
    alpha: shared.Alpha = 1.0
    max_epochs: int = 5
    seed: shared.Seed = 0
    departures: shared.Departed = field(default_factory=shared.make_departures)
    """Departures that are the same in all readings: noise in V, the bound on activity, merged columns, and cuts."""
    series: bool = False
    """Whether the values are a series, not patches. Its features are standardised by the frames before the start."""

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
    def common_departures(self) -> str:
        """Departures that all readings share, in words."""
        return replace(self.departures, half_stencils=True, centred=True, dictionary_from="window").describe()

    @property
    def readings(self) -> list[Reading]:
        """All readings that are tried."""
        return all_readings(self.lam)

    def windows(self, n_atoms: int) -> tuple[int, ...]:
        """Return the sizes H of the window for one M in Table 1."""
        return tuple(int(ratio * n_atoms) for ratio in self.ratios)

    @property
    def n_inside(self) -> int:
        """Number of frames at the end of a window that are scored. It is the length of the smallest window."""
        return min(self._all_windows())

    @property
    def n_after(self) -> int:
        """Number of frames after a window that readings with ``scored='after'`` score: a quarter of the window."""
        return min(self._all_windows()) // 4

    @property
    def window(self) -> int:
        """Window H in Fig. 4."""
        return RATIO * self.n_atoms[0]

    def ends(self, n_frames: int) -> list[int]:
        """Return the first frame after each window of Table 1."""
        return _spread(max(self._all_windows()), n_frames - self.n_after, self.n_windows)

    def starts(self, n_frames: int) -> list[int]:
        """Return the first frame that is received after the window, for each start of Fig. 4."""
        return _spread(self.window, n_frames - self.horizon - 1, self.n_starts)

    def check(self, n_frames: int, /) -> None:
        """Raise if the film is too short for a window and the frames after it."""
        needed = max(max(self._all_windows()) + self.n_after, self.window + self.horizon + 1)
        if n_frames < needed:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, but the windows of n_atoms={self.n_atoms} and the frames after them "
                f"need {needed}; use a longer film or fewer atoms"
            )

    def _all_windows(self) -> list[int]:
        return [window for size in self.n_atoms for window in self.windows(size)]


def _spread(first: int, last: int, n: int) -> list[int]:
    """Return at most n different frames from `first` to `last`, evenly spaced."""
    return [int(place) for place in np.unique(np.linspace(first, last, n).round())]


COMMAND = Command(
    name="readings",
    help="""Compute Table 1 and Fig. 4 under each reading of the details that the paper leaves open.

Writes readings.csv, readings.png and report.html. Prints which readings give the paper's pattern and size. At full \
size it takes about 20 minutes for 10,000 frames on two cores. --literal leaves out our additions to the paper's \
numerics: noise in V, the bound on activity, merged columns, and holding the code after a cut.""",
    settings=ReadingsSettings,
)
