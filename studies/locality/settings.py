"""What is compared, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_fit import components_for
from psmt.model.paper_options import OURS, Departures
from psmt.types import Ints
from psmt.utils.validation import Constraint, allowing, check_parameters, count, each, real, truth
from studies.locality.made_up import ATOMS_PER_PLACE, PLACES

SPARSE_EPOCHS, SPARSE_TOL = 60, 0.05
"""Passes over a window that a descent with a price on weights may take, and the movement of P by a pass at which it is
done: where P is, not its last digits, is asked. How often that is too few is told."""


@dataclass(frozen=True, kw_only=True)
class LocalitySettings:
    """What is compared; made-up series have sizes of their own.

    Parameters
    ----------
    n_atoms, window, horizon : int
        M, H and K on the film; K frames are predicted from each start.
    n_components : int, optional
        f on the film; None is a quarter of the atoms.
    n_starts : int
        Places in the film, and made-up series of each kind.
    budgets : tuple of int
        Passes over each window of descents that stop early.
    sparsities : tuple of float
        Prices of weights.
    alpha : float
        Price of activity in layer 1.
    lam : float or 'auto'
        Price of activity in step 7; 'auto' chooses by predicting the end of the past with the closed form.
    max_epochs : int
        Passes over the film that the dictionary is learned in, at the most.
    seed : int
    series : bool
        The values are a series, no patches: features are standardised by what lies before the first start.
    departures : Departures
        From the paper, in steps 5 and 7. All solutions share the dictionary of the first frames.
    """

    n_atoms: int = 128
    window: int = 384
    horizon: int = 10
    n_components: int | None = None
    n_starts: int = 12
    budgets: tuple[int, ...] = (1, 5, 20)
    sparsities: tuple[float, ...] = (0.01, 0.03, 0.1)
    alpha: float = 1.0
    lam: float | Literal["auto"] = "auto"
    max_epochs: int = 5
    seed: int = 0
    series: bool = False
    departures: Departures = OURS

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": count(2),
        "window": count(3),
        "horizon": count(),
        "n_components": allowing(None, count()),
        "n_starts": count(),
        "budgets": each(count()),
        "sparsities": each(real(open_bound=True)),
        "alpha": real(open_bound=True),
        "lam": allowing("auto", real()),
        "max_epochs": count(),
        "seed": count(0),
        "series": truth(),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a few hundred frames."""
        return cls(n_atoms=64, window=192, horizon=8, n_starts=6, budgets=(1, 20), sparsities=(0.03,))

    @property
    def components(self) -> int:
        """Dimension f of the embedding on the film."""
        return components_for(self.n_atoms, self.n_components)

    @property
    def largest(self) -> int:
        """M, or that of the made-up series."""
        return max(self.n_atoms, PLACES * ATOMS_PER_PLACE)

    @property
    def solutions(self) -> dict[str, dict[str, Any]]:
        """Solutions of step 5 by name, with parameters of `PSMT`."""
        return (
            {"closed": {}, "sgd": {"solver": "sgd"}}
            | {f"early-{k}": {"solver": "sgd", "tol": None, "max_epochs": k} for k in self.budgets}
            | {
                f"sparse-{price:g}": {
                    "solver": "sgd",
                    "sparsity": price,
                    "max_epochs": SPARSE_EPOCHS,
                    "tol": SPARSE_TOL,
                }
                for price in self.sparsities
            }
        )

    def starts(self, n_frames: int) -> Ints:
        """Frames (n_starts,) of a film after which is predicted, as far apart as they can be, in order."""
        return np.linspace(self.first(n_frames), n_frames - self.horizon - 1, self.n_starts).astype(np.int64)

    def first(self, n_frames: int) -> int:
        """The first start: the dictionary is learned from what lies before it."""
        return max(self.window, n_frames // 4)

    def check(self, n_frames: int) -> None:
        """Raise unless all starts have frames of their own to predict."""
        left, needed = n_frames - self.first(n_frames), self.n_starts * (self.horizon + 1)
        if left < needed:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, of which {max(left, 0)} come after window={self.window} and the "
                f"first quarter, but n_starts={self.n_starts} of horizon={self.horizon} need {needed}; use a longer "
                f"film, a shorter window, or a horizon <= {max(left, 0) // self.n_starts - 1}"
            )


def label(name: str) -> str:
    """The name of a method for people.

    >>> [label(name) for name in ("closed", "early-5", "sparse-0.03")]
    ['closed form', 'sgd, 5 passes', 'sgd, price 0.03']
    """
    kind, _, value = name.partition("-")
    words = {
        "closed": "closed form",
        "turned": "closed form, turned",
        "sgd": "sgd, converged",
        "early": f"sgd, {value} pass{'' if value == '1' else 'es'}",
        "sparse": f"sgd, price {value}",
        "copy": "copy last frame",
        "copy_code": "copy last code",
        "mean": "mean of the window",
    }
    return words[kind]
