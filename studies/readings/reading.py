"""What the paper leaves open, and the readings of it that are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Dictionary = Literal["usual", "film", "past", "window"]
"""What layer 1 is learned from. 'usual' is what the commands do: the film for Table 1, the past for Fig. 4."""

Exhibit = Literal["table", "prediction"]
"""Table 1, or Fig. 4."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to fill in what the paper leaves open; the defaults are what `psmt sweep` has, at its first λ.

    Parameters
    ----------
    lam : float
        Price of activity in step 7.
    components : float or None
        f as a share of M; None is all that V has.
    dictionary : {'usual', 'film', 'past', 'window'}
        Frames that layer 1 is learned from. For Fig. 4, 'film' has seen what is to be predicted.
    half_stencils : bool
        D is H x H, or has interior columns only.
    centred : bool
        V is the covariance, or the second moment about zero.
    scored : {'inside', 'after'}
        Frames that Table 1 reconstructs: those of the window, or those that follow it. Fig. 4 always has the latter.
    """

    lam: float = 0.1
    components: float | None = 0.25
    dictionary: Dictionary = "usual"
    half_stencils: bool = False
    centred: bool = True
    scored: Literal["inside", "after"] = "inside"

    @property
    def name(self) -> str:
        """What it says, in a few words: λ and f, and what else is not as usual.

        >>> Reading(lam=10.0, components=None, half_stencils=True).name
        'λ = 10, f = all, D full'
        """
        said = [f"λ = {self.lam:g}", f"f = {self._dimension}"]
        if self.dictionary != "usual":
            said.append(
                f"dictionary per {self.dictionary}" if self.dictionary != "past" else "dictionary from the past"
            )
        said += ["D full"] * self.half_stencils + ["V not centred"] * (not self.centred)
        said += ["errors after the window"] * (self.scored == "after")
        return ", ".join(said)

    @property
    def _dimension(self) -> str:
        if self.components is None:
            return "all"
        return "M" if self.components == 1 else f"M / {1 / self.components:g}"

    def n_components(self, n_atoms: int) -> int | None:
        """Dimension f for one M; None is all that V has."""
        return None if self.components is None else max(int(self.components * n_atoms), 1)

    def learned_from(self, exhibit: Exhibit) -> Dictionary:
        """What layer 1 is learned from in Table 1 or in Fig. 4."""
        if self.dictionary != "usual":
            return self.dictionary
        return "film" if exhibit == "table" else "past"


LINES = (Reading(), Reading(components=None), Reading(components=None, half_stencils=True))
"""Readings that all λ are tried with: f a quarter of the atoms, f all that V has, and that with the whole D."""

CENTRES = (Reading(lam=0.1, components=0.25), Reading(lam=10.0, components=None))
"""Readings around which all else is changed, one thing at a time: that of the commands, and one with errors as large as
the paper's."""

CHANGES: tuple[dict[str, Any], ...] = (
    {"components": 1 / 16},
    {"dictionary": "film"},
    {"dictionary": "past"},
    {"dictionary": "window"},
    {"half_stencils": True},
    {"centred": False},
    {"scored": "after"},
    {"dictionary": "window", "half_stencils": True},
)
"""What is changed. The last is the letter of Algorithm 1: H frames for everything, and D as large as they are."""


def all_readings(lams: Sequence[float]) -> list[Reading]:
    """Every λ along the lines; then one change at a time around the centres. Each reading once.

    >>> len(all_readings([0.1, 1.0, 3.0, 10.0, 30.0]))
    30
    """
    grid = [replace(line, lam=lam) for line in LINES for lam in lams]
    changed = [replace(centre, **change) for centre in CENTRES for change in CHANGES]
    return list(dict.fromkeys([*grid, *CENTRES, *changed]))
