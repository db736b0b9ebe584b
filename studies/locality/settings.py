"""The parameters and options of `python -m studies.locality`, and its help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from psmt.errors import NotEnoughFramesError, PSMTError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import Option, Presets, Settings, quarter
from psmt.experiments.options.sources import PatchOptions
from psmt.types import Ints
from psmt.utils.constraints import count, real
from studies.locality.made_up import ATOMS_PER_PLACE, PLACES

SPARSE_EPOCHS, SPARSE_TOL = 60, 0.05
"""Largest number of passes over a window with a sparsity penalty, and tolerance. Descent stops when a pass changes P by
less than the tolerance. It is large, because the last digits of P do not matter."""


@dataclass(frozen=True, kw_only=True)
class LocalitySettings(Settings):
    """The solutions that are compared, and the size of the model on the film. `run.MADE_UP` has the other sizes."""

    n_atoms: Annotated[shared.Atoms, count(2)] = 128
    window: shared.Window = 384
    horizon: shared.Horizon = 10
    n_components: shared.QuarterComponents = None
    n_starts: Annotated[
        int, Option("--starts", "Number of starts in the film, and of made-up series of each kind.")
    ] = 12
    budgets: tuple[int, ...] = (1, 5, 20)
    """Numbers of passes over each window after which descent is stopped early."""
    sparsities: Annotated[tuple[float, ...], real(open_bound=True)] = (0.01, 0.03, 0.1)
    """Sparsity penalties on the weights of P."""
    alpha: shared.Alpha = 1.0
    lam: shared.ChosenLam = "auto"
    """'auto' chooses λ by predicting the end of the past with the closed form."""
    max_epochs: int = 5
    seed: shared.Seed = 0
    series: bool = False
    """Whether the values are a series, not patches. Its features are standardised by the frames before the start."""
    departures: shared.Departed = field(default_factory=shared.make_departures)
    """Departures from the paper in steps 5 and 7. All solutions share the dictionary of the first frames."""

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
        """Largest M of the film and the made-up series."""
        return max(self.n_atoms, PLACES * ATOMS_PER_PLACE)

    @property
    def solutions(self) -> dict[str, dict[str, Any] | None]:
        """Parameters of the descent for each solution of step 5, by name. The closed form has none."""
        return (
            {"closed": None, "sgd": {}}
            | {f"early-{k}": {"tol": None, "max_epochs": k} for k in self.budgets}
            | {
                f"sparse-{penalty:g}": {
                    "sparsity": penalty,
                    "max_epochs": SPARSE_EPOCHS,
                    "tol": SPARSE_TOL,
                }
                for penalty in self.sparsities
            }
        )

    def starts(self, n_frames: int) -> Ints:
        """Return evenly spaced starts (n_starts,) in a film. The frames after each start are predicted."""
        return np.linspace(self.first(n_frames), n_frames - self.horizon - 1, self.n_starts).astype(np.int64)

    def first(self, n_frames: int) -> int:
        """Return the first start. The dictionary is learned from the frames before it."""
        return max(self.window, n_frames // 4)

    def check(self, n_frames: int, /) -> None:
        """Raise if the film is too short for all starts to predict different frames."""
        left, needed = n_frames - self.first(n_frames), self.n_starts * (self.horizon + 1)
        if left < needed:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, of which {max(left, 0)} come after window={self.window} and the "
                f"first quarter, but n_starts={self.n_starts} of horizon={self.horizon} need {needed}; use a longer "
                f"film, a shorter window, or a horizon <= {max(left, 0) // self.n_starts - 1}"
            )


def label(name: str) -> str:
    """Return the name of a method in reports.

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
    """Options of the study. It runs only on the CPU, because the stochastic solver does."""

    def check(self, settings: Iterable[Settings], /) -> None:
        """Check the options that all commands have, and that the device is the CPU."""
        super().check(settings)
        if self.device != "cpu":
            raise PSMTError(f"--device {self.device}: the descent runs on the CPU only; use --device cpu")


COMMAND = Command(
    name="locality",
    help="""Test whether stochastic descent is more local than the closed form, and predicts better.

Compares descent that converges, that is stopped early, and that has a sparsity penalty on the weights, on two kinds \
of made-up series with known places and on your film. Writes locality.csv, locality.png and report.html, which begins \
with the verdicts.""",
    settings=LocalitySettings,
    options=LocalityOptions,
)
