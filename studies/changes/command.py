"""`psmt changes`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from psmt.experiments.contract import Command
from psmt.experiments.options import (
    MODEL_FLAGS,
    Atoms,
    ChosenComponents,
    ChosenLam,
    ModelDepartures,
    Out,
    PatchOptions,
    Window,
)

if TYPE_CHECKING:
    from studies.changes.settings import ChangesSettings


@dataclass(frozen=True, kw_only=True)
class ChangesOptions(PatchOptions):
    """Options of `psmt changes`."""

    atoms: Atoms = None
    window: Window = None
    components: ChosenComponents = "auto"
    lam: ChosenLam = "auto"
    at: Annotated[
        tuple[int, ...],
        Parameter(
            help="Frame that a change comes with; may be repeated. Left out: places all over the film.",
            metavar="INT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    places: Annotated[
        int | None,
        Parameter(
            help="How many places, evenly spread, where none are given. Left out: 16.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    horizon: Annotated[int, Parameter(help="Frames that are predicted from each change on.")] = 60
    flash: Annotated[float, Parameter(help="Brightness of the flash, in standard deviations of the film.")] = 3.0
    jump: Annotated[int, Parameter(help="Frames that the jump leaves out.")] = 25
    departures: ModelDepartures = MODEL_FLAGS
    out: Out = Path("psmt-changes")

    def settings(self) -> "ChangesSettings":
        """As the library takes them."""
        from studies.changes.settings import ChangesSettings

        base = ChangesSettings.quick() if self.quick else ChangesSettings()
        atoms = self.atoms or base.n_atoms
        return ChangesSettings(
            n_atoms=atoms,
            window=self.window or 3 * atoms,
            n_components=self.components,
            alpha=self.price,
            lam=self.lam,
            horizon=self.horizon,
            places=base.places if self.places is None else self.places,
            at=self.at,
            flash=self.flash,
            jump=self.jump,
            seed=self.seed,
            departures=self.departures.settings(),
            series=self.series,
        )


COMMAND = Command(
    name="changes",
    help="""Put a flash, a cut and a jump into a film, and see how every method recovers.

Writes changes.csv (each error), changes.png and report.html. Ends with a table per kind of change, and with whether \
PSMT tells the changes and whether its response to them pays.""",
    options=ChangesOptions,
)
