"""How all frames are reconstructed, and the phases that are looked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self, get_args

from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_fit import RATIO, components_for, smaller_sizes
from psmt.experiments.phases import Search
from psmt.model.paper_options import OURS, Departures
from psmt.utils.validation import Constraint, allowing, check_parameters, choice, count, real


@dataclass(frozen=True, kw_only=True)
class ReconstructionSettings:
    """The original transform, with all frames in one window; the defaults are the paper's sizes.

    Parameters
    ----------
    n_atoms : int
        M.
    n_components : int, optional
        f; None is a quarter of the atoms.
    alpha, lam : float
        Price of activity in layer 1 and in step 7.
    max_epochs : int
        Passes over the film that the dictionary is learned in, at the most.
    seed : int
    departures : Departures
        From the paper.
    solver : {'closed', 'sgd'}
        Of step 5.
    window, horizon : int
        H and K of the predictions that phases are looked for; the segment of least error is as long as the window.
    search : {'segment', 'film'}
        Where phases are looked for: inside the segment of least error, or in the whole film.
    """

    n_atoms: int = 512
    n_components: int | None = None
    alpha: float = 1.0
    lam: float = 0.1
    max_epochs: int = 5
    seed: int = 0
    departures: Departures = OURS
    solver: str = "closed"
    window: int = 1536
    horizon: int = 30
    search: Search = "segment"

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": count(),
        "n_components": allowing(None, count()),
        "alpha": real(open_bound=True),
        "lam": real(),
        "max_epochs": count(),
        "seed": count(0),
        "solver": choice("closed", "sgd"),
        "window": count(),
        "horizon": count(),
        "search": choice(*get_args(Search)),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a few hundred frames, a few seconds."""
        return cls(n_atoms=128, window=384)

    @classmethod
    def demo(cls) -> Self:
        """For the built-in film."""
        return cls(n_atoms=128, window=384, search="film")

    @property
    def components(self) -> int:
        """Dimension f of the embedding."""
        return components_for(self.n_atoms, self.n_components)

    @property
    def largest(self) -> int:
        """M."""
        return self.n_atoms

    def search_window(self, n_frames: int) -> int | None:
        """Window before the phases in a film: the one asked for, or the largest that is tried and fits, or None."""
        windows = (self.window, *(RATIO * size for size in smaller_sizes(self.n_atoms)))
        return next((window for window in windows if n_frames > window + self.horizon), None)

    def check(self, n_frames: int) -> None:
        """Raise unless there are more frames than atoms: the paper's own condition, without which V is singular."""
        if n_frames <= self.n_atoms:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, not more than n_atoms={self.n_atoms}; "
                f"use n_atoms < {n_frames}, or a longer film"
            )

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """With the largest dictionary that has fewer atoms than the film has frames."""
        for size in (self.n_atoms, *smaller_sizes(self.n_atoms)):
            if size < n_frames:
                note = f"the film has {n_frames:,} frames, not more than M = {self.n_atoms:,}; M = {size:,} was used"
                return replace(self, n_atoms=size), "" if size == self.n_atoms else note
        return None, f"the film has {n_frames:,} frames; M = {size}, the smallest that is tried, needs more"
