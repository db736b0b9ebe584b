"""`python -m studies.locality`: the command, its options and its parameters."""

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
"""Largest number of passes over a window with a sparsity penalty, and tolerance: descent stops when a pass moves P by
less. The tolerance is large, since the last digits of P do not matter; the report says how often it is not reached."""


@dataclass(frozen=True, kw_only=True)
class LocalitySettings(Settings):
    """Which solutions are compared, and the size of the model on the film; see `run.MADE_UP` for made-up series."""

    n_atoms: Annotated[shared.Atoms, count(2)] = 128
    window: shared.Window = 384
    horizon: shared.Horizon = 10
    n_components: shared.QuarterComponents = None
    n_starts: Annotated[
        int, Option("--starts", "Number of starts in the film, and of made-up series of each kind.")
    ] = 12
    budgets: tuple[int, ...] = (1, 5, 20)
    """Passes over each window for descent that is stopped early."""
    sparsities: Annotated[tuple[float, ...], real(open_bound=True)] = (0.01, 0.03, 0.1)
    """Sparsity penalties on the weights of P."""
    alpha: shared.Alpha = 1.0
    lam: shared.ChosenLam = "auto"
    """'auto' chooses λ by predicting the end of the past with the closed form."""
    max_epochs: int = 5
    seed: shared.Seed = 0
    series: bool = False
    """Whether the values are a series, not patches: the frames before the first start then standardise the features."""
    departures: shared.RecoveryDepartures = field(default_factory=shared.our_departures)
    """In steps 5 and 7 only: all solutions share the dictionary of the first frames."""

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
        """Largest M, that of the made-up series included."""
        return max(self.n_atoms, PLACES * ATOMS_PER_PLACE)

    @property
    def solutions(self) -> dict[str, dict[str, Any]]:
        """Solutions of step 5 by name: parameters of `PSMT`."""
        return (
            {"closed": {}, "sgd": {"solver": "sgd"}}
            | {f"early-{k}": {"solver": "sgd", "tol": None, "max_epochs": k} for k in self.budgets}
            | {
                f"sparse-{penalty:g}": {
                    "solver": "sgd",
                    "sparsity": penalty,
                    "max_epochs": SPARSE_EPOCHS,
                    "tol": SPARSE_TOL,
                }
                for penalty in self.sparsities
            }
        )

    def starts(self, n_frames: int) -> Ints:
        """Starts (n_starts,) in a film, evenly spaced: the frames after each start are predicted."""
        return np.linspace(self.first(n_frames), n_frames - self.horizon - 1, self.n_starts).astype(np.int64)

    def first(self, n_frames: int) -> int:
        """First start; the dictionary is learned from the frames before it."""
        return max(self.window, n_frames // 4)

    def check(self, n_frames: int, /) -> None:
        """Raise unless all starts have different frames to predict."""
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
    ['closed form', 'sgd, 5 passes', 'sgd, penalty 0.03']
    """
    kind, _, value = name.partition("-")
    words = {
        "closed": "closed form",
        "turned": "rotated closed form",
        "sgd": "sgd, converged",
        "early": f"sgd, {value} pass{'' if value == '1' else 'es'}",
        "sparse": f"sgd, penalty {value}",
        "copy": "copy last frame",
        "copy_code": "copy last code",
        "mean": "mean of the window",
    }
    return words[kind]


@dataclass(frozen=True, kw_only=True)
class LocalityOptions(PatchOptions):
    """Options of the study, which runs on the CPU only, because the stochastic solver does."""

    def check(self, settings: Iterable[Settings], /) -> None:
        """Check the options of every command, and the device."""
        from psmt.embedding.stochastic import check_solver

        super().check(settings)
        check_solver("sgd", device=self.device)


COMMAND = Command(
    name="locality",
    help="""Test whether stochastic descent is more local than the closed form, and predicts better.

Compares descent that converges, that is stopped early, and that has a sparsity penalty on the weights, on two kinds \
of made-up series with known places and on your film. Writes locality.csv, locality.png and report.html, which begins \
with the verdicts.""",
    settings=LocalitySettings,
    options=LocalityOptions,
)
