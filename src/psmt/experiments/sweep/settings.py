"""What is swept, and what is held fixed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_fit import LADDER, components_for, smaller_sizes
from psmt.model.paper_options import OURS, Departures
from psmt.utils.validation import Constraint, allowing, check_count, check_parameters, choice, count, each, real


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """What is swept, and what is held fixed; the defaults are the paper's sizes.

    Parameters
    ----------
    n_atoms : tuple of int
        Sizes M of the dictionary.
    ratios : tuple of float
        Sizes of the window, as multiples of M.
    steps_per_window : int
        A window begins each H // steps_per_window frames; 4 is the paper's overlap of 3/4.
    null_windows : int
        Windows of each combination on each null of the film, evenly spread; 0 asks for no null.
    n_components : int, optional
        f; None is a quarter of the atoms. Windows of a smaller rank have that many.
    alpha : float
        Price of activity in layer 1.
    lam : tuple of float
        Prices of activity in step 7. The paper does not give its own, and its claims depend on it: 0.1 reconstructs
        best, and at 30 errors are as large as the paper's.
    max_epochs : int
        Passes over the film that a dictionary is learned in, at the most.
    seed : int
    departures : Departures
        From the paper.
    solver : {'closed', 'sgd'}
        Of step 5.

    Examples
    --------
    >>> SweepSettings().windows(512)
    (1024, 1280, 1536)
    >>> SweepSettings.quick().n_atoms
    (64, 128)
    """

    n_atoms: tuple[int, ...] = (512, 1024, 2048)
    ratios: tuple[float, ...] = (2.0, 2.5, 3.0)
    steps_per_window: int = 4
    null_windows: int = 4
    n_components: int | None = None
    alpha: float = 1.0
    lam: tuple[float, ...] = (0.1, 3.0, 30.0)
    max_epochs: int = 5
    seed: int = 0
    departures: Departures = OURS
    solver: str = "closed"

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": each(count()),
        "ratios": each(real(open_bound=True)),
        "steps_per_window": count(),
        "null_windows": count(0),
        "n_components": allowing(None, count()),
        "alpha": real(open_bound=True),
        "lam": each(real()),
        "max_epochs": count(),
        "seed": count(0),
        "solver": choice("closed", "sgd"),
    }

    def __post_init__(self) -> None:
        if not self.n_atoms or not self.ratios or not self.lam:
            raise ValueError(
                f"n_atoms={self.n_atoms}, ratios={self.ratios} and lam={self.lam} must name at least one value each"
            )
        check_parameters(self, self._parameter_constraints)
        check_count("window", self._smallest_window(), minimum=max(3, self.steps_per_window))

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a few hundred frames, less than a minute."""
        return cls(n_atoms=(64, 128))

    @classmethod
    def demo(cls) -> Self:
        """For the built-in film: windows short enough that there are many; at λ = 30 nothing of it comes back."""
        return cls(n_atoms=(64, 128, 256), steps_per_window=2, lam=(0.1, 3.0))

    @property
    def largest(self) -> int:
        """The largest M."""
        return max(self.n_atoms)

    def windows(self, n_atoms: int) -> tuple[int, ...]:
        """Sizes H of the window for one M."""
        return tuple(int(ratio * n_atoms) for ratio in self.ratios)

    def segments(self, window: int, n_frames: int) -> list[tuple[int, int]]:
        """First frame of each window in a film, and the one after its last."""
        step = window // self.steps_per_window
        return [(start, start + window) for start in range(0, n_frames - window + 1, step)]

    def null_segments(self, window: int, n_frames: int) -> list[tuple[int, int]]:
        """The same on a null, whose frames are all alike: a few of them, evenly spread.

        >>> SweepSettings(n_atoms=(10,), null_windows=3).null_segments(20, 100)
        [(0, 20), (40, 60), (80, 100)]
        """
        starts = np.unique(np.linspace(0, n_frames - window, self.null_windows).round().astype(int))
        return [(int(start), int(start) + window) for start in starts]

    def components(self, n_atoms: int) -> int:
        """Dimension f of the embedding for one M."""
        return components_for(n_atoms, self.n_components)

    def check(self, n_frames: int) -> None:
        """Raise unless the film is long enough for one combination at least."""
        needed = self._smallest_window()
        if n_frames < needed:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, but the smallest window of n_atoms={self.n_atoms} needs {needed}; "
                f"use a longer film, or n_atoms <= {int(n_frames / min(self.ratios))}"
            )

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """With smaller dictionaries added where the film is too short to compare those asked for."""
        whole = [size for size in self.n_atoms if max(self.windows(size)) <= n_frames]
        if len(whole) >= min(2, len(self.n_atoms)):
            return self, ""
        smaller = [size for size in smaller_sizes(min(self.n_atoms)) if max(self.windows(size)) <= n_frames]
        added = tuple(sorted(smaller[: 3 - len(whole)]))
        if not added and n_frames < self._smallest_window():
            needed = min(self._smallest_window(), max(self.windows(LADDER[-1])))
            return None, f"the film has {n_frames:,} frames; the smallest window that is tried needs {needed:,}"
        note = ""
        if added:
            note = (
                f"the film has {n_frames:,} frames, too few to compare the sizes asked for; "
                f"M = {', '.join(map(str, added))} was added, and what does not fit is listed"
            )
        return replace(self, n_atoms=added + self.n_atoms), note

    def _smallest_window(self) -> int:
        return min(window for size in self.n_atoms for window in self.windows(size))
