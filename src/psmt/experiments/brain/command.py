"""`psmt brain`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from cyclopts import Parameter

from psmt.experiments.contract import Command
from psmt.experiments.options import AUTO, Out, ParallelOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psmt.data.readers.scans import Parcels
    from psmt.experiments.brain.settings import BrainSettings
    from psmt.experiments.brain.subjects import People, Study
    from psmt.types import Progress


@dataclass(frozen=True, kw_only=True)
class BrainOptions(ParallelOptions):
    """Options of `psmt brain`."""

    alpha: Annotated[float, Parameter(help="α: price of activity in layer 1; regions have variance one.")] = 0.15
    frames: Annotated[int, Parameter(help="Use the first so many volumes of each person at the most.")] = 10_000
    atlas: Annotated[
        Path | None,
        Parameter(help="NIfTI image of labels (3-D) or maps (4-D): the regions of scans.", show_default=False),
    ] = None
    mask: Annotated[
        Path | None, Parameter(help="Without an atlas: NIfTI image of the voxels to take.", show_default=False)
    ] = None
    confounds: Annotated[
        str | None,
        Parameter(
            help="simple, compcor or ica_aroma, for scans that fMRIPrep made; or a table of regressors. Left out: "
            "none, and simple for a BIDS folder.",
            show_default=False,
        ),
    ] = None
    tr: Annotated[
        float | None,
        Parameter(
            help="Seconds from volume to volume. Left out: as the file says.", metavar="FLOAT", show_default=False
        ),
    ] = None
    high_pass: Annotated[
        Literal["none"] | float,
        Parameter(help="Hz below which drifts are removed before states are found.", metavar="none|FLOAT", **AUTO),
    ] = 0.0025
    low_pass: Annotated[
        float | None,
        Parameter(help="Hz above which scans are filtered when they are read.", metavar="FLOAT", show_default=False),
    ] = None
    smoothing: Annotated[
        float | None,
        Parameter(help="mm: width at half maximum that scans are smoothed by.", metavar="FLOAT", show_default=False),
    ] = None
    atoms: Annotated[int, Parameter(help="M: patterns of co-activation in the group's dictionary.")] = 32
    window: Annotated[int, Parameter(help="H: volumes that each graph of atoms is made from.")] = 96
    states: Annotated[
        Literal["auto"] | int,
        Parameter(help="How many; auto takes the fewest that foretell other people well.", metavar="auto|INT", **AUTO),
    ] = "auto"
    surrogates: Annotated[int, Parameter(help="Draws of each surrogate that states are held against.")] = 19
    out: Out = Path("psmt-brain")

    film: ClassVar[str] = (
        "One or several people: .nii or .nii.gz scans, a BIDS derivatives folder, tables (.npy, .npz, .csv, .tsv) of "
        "time by regions, or builtin:bold, simulated scans with known states."
    )
    film_type: ClassVar[Any] = tuple[str, ...]
    film_name: ClassVar[str | None] = "FILES"
    default_film: ClassVar[Any] = ("builtin:bold",)

    def check(self) -> None:
        """As for all commands; and settings that can be."""
        super().check()
        self.settings()

    def parcels(self) -> "Parcels":
        """How scans become series."""
        from psmt.data.readers.scans import Parcels

        return Parcels(
            atlas=self.atlas,
            mask=self.mask,
            confounds=self.confounds,
            tr=self.tr,
            low_pass=self.low_pass,
            smoothing=self.smoothing,
        )

    def open(self, spec: "Sequence[str]") -> "People":  # type: ignore[override]  # people are several sources
        """The people, before their scans are read."""
        from psmt.experiments.brain.subjects import find_people

        return find_people(spec)

    def read(self, source: "People", progress: "Progress") -> "Study":
        """Their series, with the same regions."""
        from psmt.experiments.brain.subjects import read_study

        return read_study(source, self.parcels(), stop=self.n_frames, progress=progress)

    def remarks(self, _source: Any, material: "Study", /) -> "Sequence[str]":
        """What was left out, and why."""
        return material.remarks

    def settings(self) -> "BrainSettings":
        """As the library takes them."""
        from psmt.experiments.brain.settings import BrainSettings

        return BrainSettings(
            n_atoms=self.atoms,
            alpha=self.alpha,
            n_states=self.states,
            window=self.window,
            high_pass=None if self.high_pass == "none" else self.high_pass,
            n_surrogates=self.surrogates,
            seed=self.seed,
        )


COMMAND = Command(
    name="brain",
    help="""Find the dynamic networks and states of some people's brains, and say how far they can be trusted.

Writes report.html, summary.json, prediction.csv (what comes next, MSE / variance), states.csv (the state of each \
volume), topology.csv (components of the atoms' graph, their births, merges and ends) and pictures. Compares with \
sliding-window correlations, ridge autoregression and dynamic modes, with an HMM where hmmlearn is installed, and with \
surrogates that have no dynamics. Without files: simulated scans. Scans need nilearn: pip install 'psmt[brain]'.""",
    options=BrainOptions,
    undeparted="the paper has no study of brains; psmt predict takes it, also for a table of time by regions",
)
