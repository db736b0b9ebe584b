"""`psmt reconstruct`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from psmt.experiments.contract import Command
from psmt.experiments.options import (
    DEFAULT_LAM,
    RECOVERY_FLAGS,
    Atoms,
    FixedLam,
    Horizon,
    Out,
    PatchOptions,
    QuarterComponents,
    RecoveryDepartures,
    Search,
    Solver,
    unless_auto,
)

if TYPE_CHECKING:
    from psmt.experiments.reconstruction.settings import ReconstructionSettings


@dataclass(frozen=True, kw_only=True)
class ReconstructOptions(PatchOptions):
    """Options of `psmt reconstruct`."""

    atoms: Atoms = None
    window: Annotated[
        int | None,
        Parameter(
            help="H: frames that phases need before them, and length of the segment of least error. Left out: 3 times "
            "M.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    components: QuarterComponents = "auto"
    lam: FixedLam = "auto"
    solver: Solver = "closed"
    horizon: Horizon = 30
    departures: RecoveryDepartures = RECOVERY_FLAGS
    search: Search = "segment"
    out: Out = Path("psmt-reconstruct")

    def settings(self) -> "ReconstructionSettings":
        """As the library takes them."""
        from psmt.experiments.reconstruction.settings import ReconstructionSettings

        base = ReconstructionSettings.quick() if self.quick else ReconstructionSettings()
        atoms = self.atoms or base.n_atoms
        return ReconstructionSettings(
            n_atoms=atoms,
            n_components=unless_auto(self.components, None),
            alpha=self.price,
            lam=unless_auto(self.lam, DEFAULT_LAM),
            seed=self.seed,
            departures=self.departures.settings(),
            solver=self.solver,
            window=self.window or 3 * atoms,
            horizon=self.horizon,
            search=self.search,
        )


COMMAND = Command(
    name="reconstruct",
    help="""Reconstruct each frame through one embedding of all frames (the original sparse manifold transform).

Writes reconstruction.csv and reconstruction.png, with the segment of least error and the phases for a prediction.""",
    options=ReconstructOptions,
)
