"""`psmt topology`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from psmt.experiments.contract import Command
from psmt.experiments.options import (
    EMBEDDING_FLAGS,
    EmbeddingDepartures,
    Out,
    PatchOptions,
    QuarterComponents,
    Solver,
    Window,
    unless_auto,
)

if TYPE_CHECKING:
    from psmt.experiments.topology.settings import TopologySettings


@dataclass(frozen=True, kw_only=True)
class TopologyOptions(PatchOptions):
    """Options of `psmt topology`."""

    atoms: Annotated[
        int | None, Parameter(help="M: atoms in the dictionary. Left out: 2048.", metavar="INT", show_default=False)
    ] = None
    window: Window = None
    components: QuarterComponents = "auto"
    solver: Solver = "closed"
    atom: Annotated[
        tuple[int, ...],
        Parameter(
            help="Atom to follow; may be repeated. Left out: the three most informative.",
            metavar="INT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    departures: EmbeddingDepartures = EMBEDDING_FLAGS
    out: Out = Path("psmt-topology")

    def settings(self) -> "TopologySettings":
        """As the library takes them."""
        from dataclasses import replace

        from psmt.experiments.topology.settings import TopologySettings

        base = TopologySettings.quick() if self.quick else TopologySettings()
        atoms = self.atoms or base.n_atoms
        return replace(
            base,
            n_atoms=atoms,
            window=self.window or 3 * atoms,
            n_components=unless_auto(self.components, None),
            alpha=self.price,
            chosen=self.atom or None,
            seed=self.seed,
            departures=self.departures.settings(),
            solver=self.solver,
            series=self.series,
        )


COMMAND = Command(
    name="topology",
    help="""Follow which atoms move together, window by window (Fig. 3 of the paper).

Writes topology.csv, topology.png and atom_map.png: all atoms, neighbours in the embedding side by side.""",
    options=TopologyOptions,
)
