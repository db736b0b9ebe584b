"""The readings: ways to fill in the details that the paper leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Dictionary = Literal["usual", "film", "past", "window"]
"""Frames that layer 1 is learned from. 'usual' is 'film' for Table 1 and 'past' for Fig. 4, as in the commands."""

Exhibit = Literal["table", "prediction"]
"""The result of the paper that is computed: Table 1, or Fig. 4."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to fill in the details that the paper leaves open. The defaults are those of `psmt sweep`.

    Parameters
    ----------
    lam : float
        Sparsity (L1) penalty of step 7.
    components : float or None
        f as a share of M. None uses the rank of V.
    dictionary : {'usual', 'film', 'past', 'window'}
        Frames that layer 1 is learned from. In Fig. 4, 'film' includes the frames that are predicted.
    half_stencils : bool
        Whether D is H x H. If False, it has interior columns only.
    centred : bool
        Whether V is the covariance. If False, it is the second moment about zero.
    scored : {'inside', 'after'}
        Frames that Table 1 reconstructs: those inside the window, or those after it. Fig. 4 always scores those after.
    """

    lam: float = 0.1
    components: float | None = 0.25
    dictionary: Dictionary = "usual"
    half_stencils: bool = False
    centred: bool = True
    scored: Literal["inside", "after"] = "inside"

    @property
    def name(self) -> str:
        """Name of the reading: λ, f, and all details that differ from the defaults.

        >>> Reading(lam=10.0, components=None, half_stencils=True).name
        'λ = 10, f = all, D full'
        """
        parts = [f"λ = {self.lam:g}", f"f = {self._dimension}"]
        if self.dictionary != "usual":
            parts.append(
                f"dictionary per {self.dictionary}" if self.dictionary != "past" else "dictionary from the past"
            )
        parts += ["D full"] * self.half_stencils + ["V not centred"] * (not self.centred)
        parts += ["errors after the window"] * (self.scored == "after")
        return ", ".join(parts)

    @property
    def _dimension(self) -> str:
        if self.components is None:
            return "all"
        return "M" if self.components == 1 else f"M / {1 / self.components:g}"

    def n_components(self, n_atoms: int) -> int | None:
        """Return the dimension f for one M; None means the rank of V."""
        return None if self.components is None else max(int(self.components * n_atoms), 1)

    def learned_from(self, exhibit: Exhibit) -> Dictionary:
        """Return which frames layer 1 is learned from in Table 1 or in Fig. 4."""
        if self.dictionary != "usual":
            return self.dictionary
        return "film" if exhibit == "table" else "past"


LINES = (Reading(), Reading(components=None), Reading(components=None, half_stencils=True))
"""Readings that are combined with every λ: f = M / 4; f = rank of V; and f = rank of V with the whole D."""

CENTRES = (Reading(lam=0.1, components=0.25), Reading(lam=10.0, components=None))
"""Two readings in which every other detail is changed alone. The first is that of the commands. The second has errors
as large as the paper's."""

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
"""Changes that are made to each reading of `CENTRES`. The last one follows Algorithm 1 to the letter."""


def all_readings(lams: Sequence[float]) -> list[Reading]:
    """Return the readings of `LINES` with every λ, and those of `CENTRES` with every change, each reading once.

    >>> len(all_readings([0.1, 1.0, 3.0, 10.0, 30.0]))
    30
    """
    grid = [replace(line, lam=lam) for line in LINES for lam in lams]
    changed = [replace(centre, **change) for centre in CENTRES for change in CHANGES]
    return list(dict.fromkeys([*grid, *CENTRES, *changed]))
