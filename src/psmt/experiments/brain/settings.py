"""`psmt brain`: its parameters, its options and its command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import USE, Command
from psmt.experiments.options.declaration import Option, Settings
from psmt.experiments.options.parameters import Seed
from psmt.experiments.options.sources import TaskOptions
from psmt.utils.constraints import count, real

if TYPE_CHECKING:
    from psmt.experiments.brain.subjects import People, Study
    from psmt.types import Progress

STATE_CANDIDATES = (2, 3, 4, 5, 6, 7, 8)
"""Numbers of states that 'auto' chooses from: more are seldom found again in other people."""

PATHS = 8
"""Steps after which a sliding window has no volume in common with where it was."""


@dataclass(frozen=True, kw_only=True)
class BrainSettings(Settings):
    """Parameters of a study of some people's series."""

    n_atoms: Annotated[
        int, Option("--atoms", "M: number of patterns of co-activation in the group's dictionary."), count(2)
    ] = 32
    alpha: Annotated[
        float,
        Option("--alpha", "α: sparsity (L1) penalty of layer 1; regions have variance one."),
        real(open_bound=True),
    ] = 0.15
    n_components: int = 6
    """Directions of the trajectory in which states are found, by decreasing variance of the brain."""
    n_states: Annotated[
        int | Literal["auto"],
        Option(
            "--states",
            "Number of states.",
            default="the fewest that predict other people about as well as any number",
            auto=True,
        ),
        count(2),
    ] = "auto"
    window: Annotated[
        int, Option("--window", "H: number of volumes that each graph of atoms is made from."), count(16)
    ] = 96
    high_pass: Annotated[
        float | None,
        Option("--high-pass", "Hz below which drifts are removed before states are found.", none=True),
    ] = 0.0025
    """None removes the mean alone. Predictions use the series without this filter."""
    horizon: int = 5
    """Volumes ahead that are predicted."""
    swc_seconds: Annotated[float, real(open_bound=True)] = 60.0
    """Length of the sliding window of correlations; a minute is usual."""
    n_surrogates: Annotated[
        int, Option("--surrogates", "Draws of each surrogate that states are compared with."), count(19)
    ] = 19
    n_compared: int = 16
    """People on whom methods and surrogates are compared, at most: the first ones."""
    n_splits: int = 6
    """Ways in which the people are halved, at most."""
    seed: Seed = 0

    @property
    def step(self) -> int:
        """Volumes from one window to the next."""
        return max(1, self.window // PATHS)

    def check_lengths(self, names: Sequence[str], lengths: Sequence[int]) -> None:
        """Raise unless each person's series has two windows, and each half of it a volume per state."""
        for name, length in zip(names, lengths, strict=True):
            if self.n_states != "auto" and self.n_states > length // 2:
                raise NotEnoughFramesError(
                    f"{name} has {length} volumes, and half of them are fewer than --states {self.n_states}; "
                    f"use --states {length // 2} or less"
                )
            if length < self.window + self.step:
                raise NotEnoughFramesError(
                    f"{name} has {length} volumes, but two windows of window={self.window} need "
                    f"{self.window + self.step}; use --window {max(16, length * PATHS // (PATHS + 1) - 1)} or less, "
                    "or leave this person out"
                )


@dataclass(frozen=True, kw_only=True)
class BrainOptions(TaskOptions):
    """Options of `psmt brain` on how scans become series."""

    frames: Annotated[int, Option("--frames", "Read at most this many volumes of each person.")] = 10_000
    atlas: Annotated[
        Path | None, Option("--atlas", "NIfTI image of labels (3-D) or maps (4-D): the regions of scans.")
    ] = None
    mask: Annotated[Path | None, Option("--mask", "Without an atlas: NIfTI image of the voxels to take.")] = None
    confounds: Annotated[
        str | None,
        Option(
            "--confounds",
            "simple, compcor or ica_aroma, for scans that fMRIPrep made; or a table of regressors.",
            default="none, and simple for a BIDS folder",
        ),
    ] = None
    tr: Annotated[float | None, Option("--tr", "Seconds from volume to volume.", default="as the file says")] = None
    low_pass: Annotated[float | None, Option("--low-pass", "Hz above which scans are filtered when they are read.")] = (
        None
    )
    smoothing: Annotated[
        float | None, Option("--smoothing", "mm: full width at half maximum of the smoothing of scans.")
    ] = None

    SOURCE_HELP: ClassVar[str] = (
        "One or several people: .nii or .nii.gz scans, a BIDS derivatives folder, tables (.npy, .npz, .csv, .tsv) of "
        "time by regions, or builtin:bold, simulated scans with known states."
    )
    SOURCE_NAME: ClassVar[str] = "FILES"
    SEVERAL_SOURCES: ClassVar[bool] = True
    DEFAULT_SOURCE: ClassVar[Any] = ("builtin:bold",)

    def open(self, spec: Sequence[str], /) -> People:  # type: ignore[override]  # people are several sources
        """The people, before their scans are read."""
        from psmt.experiments.brain.subjects import find_people

        return find_people(spec)

    def read(self, source: People, progress: Progress, /) -> Study:
        """Their series, with the same regions."""
        from psmt.data.readers.scans import Parcels
        from psmt.experiments.brain.subjects import read_study

        names = ("atlas", "mask", "confounds", "tr", "low_pass", "smoothing")
        parcels = Parcels(**{name: getattr(self, name) for name in names})
        return read_study(source, parcels, stop=self.frames, progress=progress)


COMMAND = Command(
    name="brain",
    help="""Find the dynamic networks and states of some people's brains, and measure how reliable they are.

Writes report.html, summary.json, prediction.csv (what comes next, MSE / variance), states.csv (the state of each \
volume), topology.csv (components of the atoms' graph, their births, merges and ends) and pictures. Compares with \
sliding-window correlations, ridge autoregression and dynamic modes, with an HMM if hmmlearn is installed, and with \
surrogates that have no dynamics. Without files: simulated scans. Scans need nilearn: pip install 'psmt[brain]'.""",
    settings=BrainSettings,
    options=BrainOptions,
    group=USE,
    no_departures="the paper has no study of brains; psmt predict takes it, also for a table of time by regions",
)
