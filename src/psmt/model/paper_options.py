"""The departures from the paper. Models, settings and reports share this list.

docs/explanation/departures.md says why each departure is made, how often it is active, and how it changes the error.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from psmt.numerics.rank import RANK_TOL
from psmt.recovery import ACTIVITY_FACTOR
from psmt.utils.constraints import Constraint, allowing, check_parameters, choice, real

CONSTRAINTS: dict[str, Constraint] = {
    "rank_tol": real(),
    "activity_bound": allowing(None, real(open_bound=True)),
    "dictionary_from": choice("past", "window"),
    "on_cut": choice("hold", "ignore"),
}


@dataclass(frozen=True, kw_only=True)
class Departures:
    """Parameters of `PSMT` that can depart from the paper. Their defaults are those of the package, not of the paper.

    Examples
    --------
    >>> from dataclasses import replace
    >>> Departures.literal().describe()
    'none: the paper to the letter'
    >>> replace(Departures.literal(), activity_bound=2.0).describe()
    'predicted codes limited to 2 times the activity of the window'
    """

    half_stencils: bool = False
    centred: bool = True
    rank_tol: float = RANK_TOL
    activity_bound: float | None = ACTIVITY_FACTOR
    merge_parallel: bool = True
    dictionary_from: str = "past"
    on_cut: str = "hold"

    def __post_init__(self) -> None:
        check_parameters(self, CONSTRAINTS)

    @classmethod
    def literal(cls) -> Self:
        """Return the values of the paper. `centred` is True because the paper calls V "the covariance matrix of A*"."""
        return cls(
            half_stencils=True,
            centred=True,
            rank_tol=0.0,
            activity_bound=None,
            merge_parallel=False,
            dictionary_from="window",
            on_cut="ignore",
        )

    @property
    def embedding(self) -> dict[str, Any]:
        """Return the parameters of step 5 as keyword arguments of `embed_window`."""
        return {"centred": self.centred, "half_stencils": self.half_stencils, "rank_tol": self.rank_tol}

    @property
    def recovery(self) -> dict[str, Any]:
        """Return the parameters of step 7, which recovers a code from a point of the embedding."""
        return {"activity_bound": self.activity_bound, "merge_parallel": self.merge_parallel}

    @property
    def parameters(self) -> dict[str, Any]:
        """Return all parameters as keyword arguments of `PSMT`."""
        return asdict(self)

    def describe(self) -> str:
        """Return the departures in words, separated by semicolons."""
        made = {
            "D without its half stencils": not self.half_stencils,
            "V about zero": not self.centred,
            f"noise of about {f'{self.rank_tol:g}'.replace('e-0', 'e−')} of the variance where V is not determined": (
                self.rank_tol > 0
            ),
            f"predicted codes limited to {self.activity_bound or 0:g} times the activity of the window": (
                self.activity_bound is not None
            ),
            "parallel columns of P merged": self.merge_parallel,
            "dictionary of a prediction from its whole past": self.dictionary_from == "past",
            "the code held after a cut": self.on_cut == "hold",
        }
        return "; ".join(text for text, is_made in made.items() if is_made) or "none: the paper to the letter"


OURS = Departures()
"""The defaults of the package."""
