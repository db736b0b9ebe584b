"""`psmt predict`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from psmt.experiments.contract import Command
from psmt.experiments.options import (
    MODEL_FLAGS,
    Atoms,
    ChosenComponents,
    ChosenLam,
    ExtrapolationName,
    Horizon,
    ModelDepartures,
    NStarts,
    Out,
    PatchOptions,
    Search,
    Solver,
    Start,
    Window,
)

if TYPE_CHECKING:
    from psmt.experiments.prediction.settings import PredictionSettings


@dataclass(frozen=True, kw_only=True)
class PredictOptions(PatchOptions):
    """Options of `psmt predict`."""

    atoms: Atoms = None
    window: Window = None
    components: ChosenComponents = "auto"
    lam: ChosenLam = "auto"
    solver: Solver = "closed"
    extrapolation: ExtrapolationName = "linear"
    start: Start = ()
    starts: NStarts = None
    horizon: Horizon = 30
    departures: ModelDepartures = MODEL_FLAGS
    search: Search = "segment"
    out: Out = Path("psmt-predict")

    foretells: ClassVar[bool] = True

    def settings(self) -> "PredictionSettings":
        """As the library takes them."""
        from psmt.experiments.prediction.settings import PredictionSettings

        base = PredictionSettings.quick() if self.quick else PredictionSettings()
        atoms = self.atoms or base.n_atoms
        return PredictionSettings(
            n_atoms=atoms,
            window=self.window or 3 * atoms,
            horizon=self.horizon,
            n_components=self.components,
            alpha=self.price,
            lam=self.lam,
            seed=self.seed,
            departures=self.departures.settings(),
            starts=self.start,
            solver=self.solver,
            extrapolation=self.extrapolation,
            series=self.series,
            n_starts=base.n_starts if self.starts is None else self.starts,
            n_null=base.n_null,
            search=self.search,
        )


COMMAND = Command(
    name="predict",
    help="""Predict frames with PSMT and all it is compared to (Fig. 4 of the paper).

Writes report.html; prediction.csv (one step ahead), rollout.csv (left to itself) and prediction.png; starts.csv and \
starts.png, errors at many starts and on two nulls, which decide the claims; where phases are searched, \
reconstruction.csv and reconstruction.png too. Ends with a table per phase that holds every method against copying, \
and with the claims. A film that is too short for 512 atoms gets fewer, unless --atoms or --window are given.""",
    options=PredictOptions,
)
