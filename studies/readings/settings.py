"""How large Table 1 and Fig. 4 are under each reading, and where in the film."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_fit import RATIO
from psmt.model.paper_options import OURS, Departures
from psmt.utils.validation import Constraint, check_count, check_parameters, count, each, real, truth
from studies.readings.reading import Reading, all_readings


@dataclass(frozen=True, kw_only=True)
class ReadingsSettings:
    """Sizes of both, which are below the paper's: many readings are tried.

    Parameters
    ----------
    n_atoms : tuple of int
        Sizes M of the dictionary in Table 1; Fig. 4 has the first of them, as in the paper.
    ratios : tuple of float
        Sizes of the window in Table 1, as multiples of M; Fig. 4 has 3 M, which the paper found best.
    n_windows : int
        Windows of each combination of Table 1, evenly spread; those of all combinations end at the same frames.
    n_starts, horizon : int
        Starts of Fig. 4, evenly spread, and K.
    lam : tuple of float
        Prices of activity in step 7 that are tried.
    alpha : float
        Price of activity in layer 1.
    max_epochs : int
        Passes over the frames that a dictionary is learned in, at the most.
    seed : int
    departures : Departures
        From the paper, of those that readings do not differ in: noise in V, the bound, merging, and cuts.
    series : bool
        The values are a series, no patches: features are standardised by what lies before the first start of Fig. 4.

    Examples
    --------
    >>> settings = ReadingsSettings.quick()
    >>> settings.windows(64), settings.ends(2000)
    ((128, 192), [384, 610, 837, 1063, 1289, 1515, 1742, 1968])
    """

    n_atoms: tuple[int, ...] = (512, 1024)
    ratios: tuple[float, ...] = (2.0, 3.0)
    n_windows: int = 8
    n_starts: int = 12
    horizon: int = 30
    lam: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 30.0)
    alpha: float = 1.0
    max_epochs: int = 5
    seed: int = 0
    departures: Departures = OURS
    series: bool = False

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": each(count()),
        "ratios": each(real(open_bound=True)),
        "n_windows": count(),
        "n_starts": count(),
        "horizon": count(),
        "lam": each(real()),
        "alpha": real(open_bound=True),
        "max_epochs": count(),
        "seed": count(0),
        "series": truth(),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)
        for name in ("n_atoms", "ratios", "lam"):
            check_count(f"len({name})", len(getattr(self, name)))
        check_count("window", min(self._all_windows()), minimum=4)

    @classmethod
    def quick(cls) -> Self:
        """The small version: about a minute."""
        return cls(n_atoms=(64, 128), horizon=15)

    @classmethod
    def demo(cls) -> Self:
        """For the built-in film."""
        return cls(n_atoms=(128, 256), horizon=20)

    @property
    def largest(self) -> int:
        """The largest M."""
        return max(self.n_atoms)

    @property
    def told_departures(self) -> str:
        """Those that every reading makes, in words."""
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

    def check(self, n_frames: int) -> None:
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
    """At most n different frames from `first` to `last`, evenly spread."""
    return [int(place) for place in np.unique(np.linspace(first, last, n).round())]
