"""`psmt locality`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from psmt.experiments.contract import Command
from psmt.experiments.options import (
    AUTO,
    RECOVERY_FLAGS,
    Out,
    PatchOptions,
    QuarterComponents,
    RecoveryDepartures,
    Window,
    unless_auto,
)

if TYPE_CHECKING:
    from studies.locality.settings import LocalitySettings


@dataclass(frozen=True, kw_only=True)
class LocalityOptions(PatchOptions):
    """Options of `psmt locality`."""

    atoms: Annotated[
        int | None, Parameter(help="M: atoms in the dictionary. Left out: 128.", metavar="INT", show_default=False)
    ] = None
    window: Window = None
    components: QuarterComponents = "auto"
    lam: Annotated[
        Literal["auto"] | float,
        Parameter(
            help="λ: price of activity in step 7, recovery; auto chooses by predicting the end of the past.",
            metavar="auto|FLOAT",
            **AUTO,
        ),
    ] = "auto"
    starts: Annotated[int | None, Parameter(help="Starts in the film, and made-up series of each kind.")] = None
    horizon: Annotated[
        int | None, Parameter(help="K: how many frames are predicted after each start. Left out: 10.")
    ] = None
    departures: RecoveryDepartures = RECOVERY_FLAGS
    out: Out = Path("psmt-locality")

    def settings(self) -> "LocalitySettings":
        """As the library takes them."""
        from dataclasses import replace

        from studies.locality.settings import LocalitySettings

        base = LocalitySettings.quick() if self.quick else LocalitySettings()
        atoms = self.atoms or base.n_atoms
        return replace(
            base,
            n_atoms=atoms,
            window=self.window or 3 * atoms,
            n_components=unless_auto(self.components, None),
            n_starts=base.n_starts if self.starts is None else self.starts,
            horizon=base.horizon if self.horizon is None else self.horizon,
            alpha=self.price,
            lam=self.lam,
            seed=self.seed,
            series=self.series,
            departures=self.departures.settings(),
        )

    def check(self) -> None:
        """As for all commands; and on the CPU, where the stochastic solver is."""
        super().check()
        from psmt.embedding.stochastic import check_solver

        check_solver("sgd", device=self.device)


COMMAND = Command(
    name="locality",
    help="""Hold stochastic descent against the closed form: whether it is more local, and predicts better.

On two made-up series with known places and on your film: converged, stopped early, and with a price on weights. \
Writes locality.csv, locality.png and report.html, which opens with the verdicts.""",
    options=LocalityOptions,
)
