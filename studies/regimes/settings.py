"""Which films are made, and what is compared on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from psmt.model.paper_options import OURS, Departures
from psmt.utils.validation import Constraint, allowing, check_parameters, count, each, real


@dataclass(frozen=True, kw_only=True)
class RegimesSettings:
    """Which films are made, and what is compared on each.

    Parameters
    ----------
    speeds : tuple of float
        Pixels per frame.
    noises : tuple of float
        Standard deviation of the noise, as a fraction of the contrast of the patch.
    n_starts : int
        Starts at each speed and noise, each in a film of its own: intervals are over these.
    n_atoms, window, horizon : int
        M, H and K.
    past : int
        Frames before each start: the dictionary is learned from all of them.
    n_components, lam : "auto", or int and float
        f and λ; 'auto' chooses both by predicting the end of the past.
    alpha : float
        Price of activity in layer 1.
    patch_size : int
        Side of the patch.
    seed : int
        Of the dictionary's first atoms.
    departures : Departures
        From the paper, by all that have layers.
    """

    speeds: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
    noises: tuple[float, ...] = (0.0, 0.03, 0.1, 0.3)
    n_starts: int = 6
    n_atoms: int = 96
    window: int = 288
    past: int = 400
    horizon: int = 12
    n_components: int | Literal["auto"] = "auto"
    alpha: float = 1.0
    lam: float | Literal["auto"] = "auto"
    patch_size: int = 16
    seed: int = 0
    departures: Departures = OURS

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "speeds": each(real(open_bound=True)),
        "noises": each(real()),
        "n_starts": count(3),
        "n_atoms": count(),
        "window": count(3),
        "past": count(),
        "horizon": count(),
        "n_components": allowing("auto", count()),
        "alpha": real(open_bound=True),
        "lam": allowing("auto", real()),
        "patch_size": count(8),
        "seed": count(0),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)
        for name in ("speeds", "noises"):
            values = getattr(self, name)
            if not values or list(values) != sorted(set(values)):
                raise ValueError(
                    f"{name}={values} is no axis of a map; give at least one value, each larger than the last"
                )
        if self.past < self.window:
            raise ValueError(f"past={self.past} is shorter than window={self.window}; use past >= {self.window}")

    @classmethod
    def quick(cls) -> Self:
        """The small version: a corner of the map at each end, less than a minute."""
        return cls(speeds=(0.05, 0.5, 4.0), noises=(0.0, 0.1), n_starts=4)

    @property
    def largest(self) -> int:
        """M."""
        return self.n_atoms
