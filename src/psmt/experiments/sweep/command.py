"""`psmt sweep`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from cyclopts import Parameter

from psmt.errors import PSMTError
from psmt.experiments.contract import Command
from psmt.experiments.options import (
    RECOVERY_FLAGS,
    Out,
    PatchOptions,
    QuarterComponents,
    RecoveryDepartures,
    Solver,
    unless_auto,
)

if TYPE_CHECKING:
    from psmt.experiments.sweep.settings import SweepSettings


@dataclass(frozen=True, kw_only=True)
class SweepOptions(PatchOptions):
    """Options of `psmt sweep`."""

    atoms: Annotated[
        tuple[int, ...],
        Parameter(
            help="M: atoms in the dictionary; may be repeated. Left out: 512, 1024 and 2048.",
            metavar="INT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    window: Annotated[
        int | None,
        Parameter(
            help="H: how many codes the embedding is made from. Left out: 2, 2.5 and 3 times M.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    components: QuarterComponents = "auto"
    lam: Annotated[
        tuple[float, ...],
        Parameter(
            help="λ: price of activity in step 7, recovery; may be repeated. Left out: 0.1, 3 and 30.",
            metavar="FLOAT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    departures: RecoveryDepartures = RECOVERY_FLAGS
    solver: Solver = "closed"
    out: Out = Path("psmt-sweep")

    alone: ClassVar[tuple[str, ...]] = ("window",)

    def settings(self) -> "SweepSettings":
        """As the library takes them."""
        from dataclasses import replace
        from math import nextafter

        from psmt.experiments.sweep.settings import SweepSettings

        base = SweepSettings.quick() if self.quick else SweepSettings()
        settings = replace(
            base,
            n_atoms=self.atoms or base.n_atoms,
            n_components=unless_auto(self.components, None),
            alpha=self.price,
            lam=self.lam or base.lam,
            seed=self.seed,
            departures=self.departures.settings(),
            solver=self.solver,
        )
        if self.window is None:
            return settings
        if len(settings.n_atoms) != 1:
            raise PSMTError(f"--window {self.window} belongs to one M; give one --atoms with it, or leave it out")
        ratio = self.window / settings.n_atoms[0]
        # The library takes H as a multiple of M, which must not fall below H by rounding.
        return replace(
            settings, ratios=(ratio if int(ratio * settings.n_atoms[0]) == self.window else nextafter(ratio, 1e9),)
        )


COMMAND = Command(
    name="sweep",
    help="""Reconstruct frames with more and fewer atoms and frames (Table 1 and Fig. 2 of the paper).

Writes sweep.csv and sweep.png. Ends with Table 1 and the verdicts on it at each λ; what the film is too short for is \
named.""",
    options=SweepOptions,
)
