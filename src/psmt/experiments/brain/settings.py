"""The parameters and options of `psmt brain`, and its help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from psmt.errors import ModelFileError, NotEnoughFramesError
from psmt.experiments.contract import USE, Command
from psmt.experiments.options.declaration import Option, Settings
from psmt.experiments.options.parameters import Seed
from psmt.experiments.options.sources import TaskOptions
from psmt.utils.constraints import count, real

if TYPE_CHECKING:
    from psmt.brain import GroupModel
    from psmt.experiments.brain.subjects import People, Study
    from psmt.types import Progress

PARAMETERS = ("n_atoms", "alpha", "n_components", "n_states", "high_pass")
"""Parameters of `psmt.brain.fit_group`, which a learned model determines."""

STEPS_PER_WINDOW = 8
"""Number of windows that begin within the length of one window."""


@dataclass(frozen=True, kw_only=True)
class BrainSettings(Settings):
    """Parameters of `psmt brain`: of its model, its predictions and its comparisons."""

    n_atoms: Annotated[int, Option("--atoms", "M: number of atoms, patterns of co-activation."), count(2)] = 32
    alpha: Annotated[
        float, Option("--alpha", "α: sparsity (L1) penalty of layer 1; regions have variance 1."), real(open_bound=True)
    ] = 0.05
    n_components: int = 6
    """Number of dimensions of the trajectories in which states are found, by decreasing variance."""
    n_states: Annotated[
        int | Literal["auto"],
        Option("--states", "Number of states.", "as few as predict other people about as well as any", auto=True),
        count(2),
    ] = "auto"
    window: Annotated[int, Option("--window", "H: number of volumes in each graph of atoms."), count(16)] = 96
    high_pass: Annotated[
        float | None, Option("--high-pass", "Hz below which drifts are removed before states are found.", none=True)
    ] = 0.0025
    """Lowest frequency in Hz that is kept. None removes only the mean. Predictions use the unfiltered series."""
    horizon: int = 5
    """Number of volumes ahead that are predicted."""
    swc_seconds: Annotated[float, real(open_bound=True)] = 60.0
    """Seconds of the sliding window in which correlations are computed. A minute is usual."""
    n_surrogates: Annotated[
        int, Option("--surrogates", "Number of surrogates, without states, to compare the scans with."), count(19)
    ] = 19
    n_compared: int = 16
    """Largest number of people on whom methods and surrogates are compared. The first people are taken."""
    n_splits: int = 6
    """Largest number of ways to split the people into halves."""
    seed: Seed = 0

    @property
    def step(self) -> int:
        """Number of volumes from the start of one window to the start of the next."""
        return max(1, self.window // STEPS_PER_WINDOW)

    def check_lengths(self, names: Sequence[str], lengths: Sequence[int]) -> None:
        """Raise if a person has too few volumes for two windows, or fewer than two volumes per state."""
        for name, length in zip(names, lengths, strict=True):
            if self.n_states != "auto" and self.n_states > length // 2:
                raise NotEnoughFramesError(
                    f"{name} has {length} volumes, and half of them are fewer than --states {self.n_states}; "
                    f"use --states {length // 2} or less"
                )
            if length < self.window + self.step:
                fits = max(16, length * STEPS_PER_WINDOW // (STEPS_PER_WINDOW + 1) - 1)
                raise NotEnoughFramesError(
                    f"{name} has {length} volumes, but two windows of window={self.window} need "
                    f"{self.window + self.step}; use --window {fits} or less, or leave this person out"
                )

    def check_model(self, model: GroupModel) -> None:
        """Raise if a parameter differs from that of a learned model, which is applied without changes."""
        for name, value in model.parameters.items():
            if getattr(self, name) != value:
                raise ModelFileError(
                    f"{name}={getattr(self, name)} differs from {value} of the model; leave it out, because the model "
                    "is applied as it was learned"
                )


@dataclass(frozen=True, kw_only=True)
class BrainOptions(TaskOptions):
    """Options of `psmt brain` that determine how scans are read as series."""

    frames: Annotated[int, Option("--frames", "Read at most this many volumes of each person.")] = 10_000
    atlas: Annotated[Path | None, Option("--atlas", "NIfTI image of regions: labels (3-D) or maps (4-D).")] = None
    labels: Annotated[
        Path | None,
        Option(
            "--labels",
            "Table with the columns index, name and, if known, network of each region; or a text with a name per line.",
            default="the .tsv file beside the atlas that has its name, if there is one",
        ),
    ] = None
    model: Annotated[Path | None, Option("--model", "group.psmt of an earlier run, to apply without learning.")] = None
    participants: Annotated[
        Path | None,
        Option(
            "--participants",
            "Table with the columns participant_id, group and covariates: groups are compared.",
            default="participants.tsv of a BIDS folder, if there is one",
        ),
    ] = None
    group: Annotated[str, Option("--group", "Column of the participants' table that has the groups.")] = "group"
    covariates: Annotated[
        str | None,
        Option(
            "--covariates",
            "Columns that group comparisons adjust for, separated by commas.",
            default="age, sex and framewise displacement, where they are known",
        ),
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
    low_pass: Annotated[float | None, Option("--low-pass", "Hz above which scans are filtered on reading.")] = None
    smoothing: Annotated[float | None, Option("--smoothing", "mm: full width at half maximum of smoothing.")] = None

    SOURCE_HELP: ClassVar[str] = (
        "Scans of one or several people: .nii or .nii.gz files, a BIDS derivatives folder, tables (.npy, .npz, .csv, "
        ".tsv, .mat) of time by regions, or builtin:bold, simulated scans with known states."
    )
    SOURCE_NAME: ClassVar[str] = "FILES"
    SEVERAL_SOURCES: ClassVar[bool] = True
    DEFAULT_SOURCE: ClassVar[Any] = ("builtin:bold",)

    def open(self, spec: Sequence[str], /) -> People:  # type: ignore[override]  # people are several sources
        """Return the people in these files, and the model to apply. The method `read` reads the scans later."""
        from psmt.experiments.brain.subjects import find_people

        return find_people(spec, self.model, self.participants)

    def defaults_for(self, source: People, /) -> dict[str, Any]:
        """Return the parameters of the model that is applied, or {} if a model is to be learned."""
        return {} if source.model is None else source.model.parameters

    def read(self, source: People, progress: Progress, /) -> Study:
        """Read the scans. Return the series of all people, in those regions that all of them have."""
        from psmt.data.readers.scans import Parcels
        from psmt.experiments.brain.subjects import read_study

        names = ("atlas", "mask", "confounds", "tr", "low_pass", "smoothing")
        parcels = Parcels(**{name: getattr(self, name) for name in names})
        columns = None if self.covariates is None else [own.strip() for own in self.covariates.split(",") if own]
        how: Any = {"group": self.group, "covariates": columns, "labels": self.labels}
        return read_study(source, parcels, stop=self.frames, progress=progress, **how)


COMMAND = Command(
    name="brain",
    help="""Find the dynamic networks and states of some people's brains, and measure how reliable they are.

Writes report.html, summary.json, group.psmt (the learned model), pictures, and tables that pandas and R read: \
networks, states, their connectivity, occupancy and transitions, the trajectory of each person, components of the \
graph of atoms, and errors of predictions. With an atlas, networks and states are also NIfTI images. With \
participants.tsv, groups are compared. Compares with principal components, sliding-window correlations, a Gaussian \
HMM, linear autoregressions and dynamic modes, and with surrogates that have no dynamics. Without files, scans are \
simulated. Scans and the HMM need: pip install 'psmt[brain]'.""",
    settings=BrainSettings,
    options=BrainOptions,
    group=USE,
)
