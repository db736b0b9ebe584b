"""Which changes are put where, and with what they are predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_fit import RATIO, nothing_fits, smaller_sizes, smaller_was_used
from psmt.model.paper_options import OURS, Departures
from psmt.utils.validation import Constraint, allowing, check_parameters, count, real, truth

KINDS = {
    "flash": "one frame is brighter",
    "cut": "the film goes on elsewhere",
    "jump": "some frames are missing",
    "none": "nothing happens",
}
"""What is put into the film, by name; the last is the control."""


@dataclass(frozen=True, kw_only=True)
class ChangesSettings:
    """Which changes are put where; the sizes are the paper's.

    Parameters
    ----------
    n_atoms, window : int
        M and H.
    n_components : int or "auto"
        f; 'auto' chooses it by predicting the end of the past.
    alpha : float
        Price of activity in layer 1.
    lam : float or "auto"
        Price of activity in step 7; 'auto' as for f.
    before, horizon : int
        Frames before the change, which tell the usual error; and from it on.
    places : int
        How many places of the film, evenly spread, a change is put at, where none are given.
    at : tuple of int
        Frames that the change comes with, one after the other.
    flash : float
        What a flash adds to all features of a frame, in standard deviations of the film.
    jump : int
        Frames that a jump leaves out.
    seed : int
        Of the dictionary, and of the frames that a cut leads to.
    departures : Departures
        From the paper, by all that have layers.
    series : bool
        The values are a series, no patches: features are standardised by the past of each place.
    """

    n_atoms: int = 512
    window: int = 1536
    n_components: int | Literal["auto"] = "auto"
    alpha: float = 1.0
    lam: float | Literal["auto"] = "auto"
    before: int = 30
    horizon: int = 60
    places: int = 16
    at: tuple[int, ...] = ()
    flash: float = 3.0
    jump: int = 25
    seed: int = 0
    departures: Departures = OURS
    series: bool = False

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": count(),
        "window": count(3),
        "n_components": allowing("auto", count()),
        "alpha": real(open_bound=True),
        "lam": allowing("auto", real()),
        "before": count(),
        "horizon": count(2),
        "places": count(),
        "flash": real(open_bound=True),
        "jump": count(),
        "seed": count(0),
        "series": truth(),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a thousand frames, a few minutes on one core."""
        return cls(n_atoms=64, window=192, places=8)

    @property
    def largest(self) -> int:
        """M."""
        return self.n_atoms

    def bounds(self, n_frames: int) -> tuple[int, int]:
        """First and last frame that a change may come with: room for a window, and for what a cut leads to."""
        return self.window + self.before, n_frames - self.horizon - max(self.horizon, self.jump)

    def chosen_places(self, n_frames: int) -> tuple[int, ...]:
        """Frames that the changes come with, as given or evenly spread over a film."""
        if self.at:
            return tuple(dict.fromkeys(self.at))
        return tuple(dict.fromkeys(np.linspace(*self.bounds(n_frames), self.places).astype(int).tolist()))

    def check(self, n_frames: int) -> None:
        """Raise unless there is room for a change, and for each of those given."""
        first, last = self.bounds(n_frames)
        if last < first:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames; window={self.window}, before={self.before} and "
                f"horizon={self.horizon} need at least {n_frames + first - last}: use a smaller window or a longer film"
            )
        for place in self.at:
            if not first <= place <= last:
                raise NotEnoughFramesError(
                    f"at={place} leaves no room in a film of {n_frames} frames; use a frame from {first} to {last}"
                )

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """With the largest dictionary and window that leave room for a change."""
        smaller = [replace(self, n_atoms=m, window=RATIO * m) for m in smaller_sizes(self.n_atoms)]
        for settings in (self, *smaller):
            used, (first, last) = (settings.n_atoms, settings.window), settings.bounds(n_frames)
            if first <= last:
                note = "" if settings is self else smaller_was_used(n_frames, (self.n_atoms, self.window), used)
                return settings, note
        return None, nothing_fits(n_frames, used, n_frames + first - last)
