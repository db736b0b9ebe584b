"""`python -m studies.locality`: its parameters and its command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import Option, Presets, Settings, quarter
from psmt.experiments.options.sources import PatchOptions
from psmt.types import Ints
from psmt.utils.constraints import count, real
from studies.locality.made_up import ATOMS_PER_PLACE, PLACES

SPARSE_EPOCHS, SPARSE_TOL = 60, 0.05
"""Passes over a window that a descent with a penalty on weights may take, and the movement of P by a pass at which it
stops: the question is where P is, not its last digits. How often that is too few is reported."""


@dataclass(frozen=True, kw_only=True)
class LocalitySettings(Settings):
    """What is compared; made-up series have sizes of their own."""

    n_atoms: Annotated[shared.Atoms, count(2)] = 128
    window: shared.Window = 384
    horizon: shared.Horizon = 10
    n_components: shared.QuarterComponents = None
    n_starts: Annotated[
        int, Option("--starts", "Number of starts in the film, and of made-up series of each kind.")
    ] = 12
    budgets: tuple[int, ...] = (1, 5, 20)
    """Passes over each window of descents that stop early."""
    sparsities: Annotated[tuple[float, ...], real(open_bound=True)] = (0.01, 0.03, 0.1)
    """Penalties on weights."""
    alpha: shared.Alpha = 1.0
    lam: shared.ChosenLam = "auto"
    """'auto' chooses by predicting the end of the past with the closed form."""
    max_epochs: int = 5
    seed: shared.Seed = 0
    series: bool = False
    """The values are a series, not patches: features are standardised by what lies before the first start."""
    departures: shared.RecoveryDepartures = field(default_factory=shared.our_departures)
    """In steps 5 and 7. All solutions share the dictionary of the first frames."""

    PRESETS: ClassVar[Presets] = {
        "quick": {
            "n_atoms": 64,
            "window": 192,
            "horizon": 8,
            "n_starts": 6,
            "budgets": (1, 20),
            "sparsities": (0.03,),
        }
    }

    @property
    def components(self) -> int:
        """Dimension f of the embedding on the film."""
        return quarter(self.n_atoms, self.n_components)

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

    def check(self, n_frames: int, /) -> None:
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


@dataclass(frozen=True, kw_only=True)
class LocalityOptions(PatchOptions):
    """Options of the study: it runs on the CPU, where the stochastic solver is."""

    def check(self, settings: Iterable[Settings], /) -> None:
        """As for all commands; and the device."""
        from psmt.embedding.stochastic import check_solver

        super().check(settings)
        check_solver("sgd", device=self.device)


COMMAND = Command(
    name="locality",
    help="""Compare stochastic descent with the closed form: whether it is more local, and predicts better.

On two made-up series with known places and on your film: converged, stopped early, and with a penalty on weights. \
Writes locality.csv, locality.png and report.html, which opens with the verdicts.""",
    settings=LocalitySettings,
    options=LocalityOptions,
)
