"""`psmt readings`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from psmt.experiments.contract import Command
from psmt.experiments.options import Out, PatchOptions

if TYPE_CHECKING:
    from studies.readings.settings import ReadingsSettings


@dataclass(frozen=True, kw_only=True)
class ReadingsOptions(PatchOptions):
    """Options of `psmt readings`."""

    atoms: Annotated[
        tuple[int, ...],
        Parameter(
            help="M: atoms in the dictionary; may be repeated. Left out: 512 and 1024.",
            metavar="INT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    lam: Annotated[
        tuple[float, ...],
        Parameter(
            help="λ: price of activity in step 7, recovery; may be repeated. Left out: 0.1, 1, 3, 10 and 30.",
            metavar="FLOAT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    literal: Annotated[
        bool,
        Parameter(
            help="Every reading without what we add to the paper's numerics: no noise in V, no bound on activity, no "
            "merged columns, nothing held after a cut. D, V and the dictionary are what readings differ in anyway.",
            negative=(),
            show_default=False,
        ),
    ] = False
    out: Out = Path("psmt-readings")

    def settings(self) -> "ReadingsSettings":
        """As the library takes them."""
        from dataclasses import replace

        from psmt.model.paper_options import OURS, Departures
        from studies.readings.settings import ReadingsSettings

        base = ReadingsSettings.quick() if self.quick else ReadingsSettings()
        return replace(
            base,
            n_atoms=self.atoms or base.n_atoms,
            lam=self.lam or base.lam,
            alpha=self.price,
            seed=self.seed,
            series=self.series,
            departures=Departures.literal() if self.literal else OURS,
        )


COMMAND = Command(
    name="readings",
    help="""Try each reading of what the paper leaves open (Table 1 and Fig. 4 under all of them).

Writes readings.csv, readings.png and report.html. Ends with a table that says which readings give the paper's pattern \
and size. Full size on 10,000 frames: about 20 minutes on two cores.""",
    options=ReadingsOptions,
    undeparted="its readings differ in D, V and the dictionary; --literal leaves out all other departures",
)
