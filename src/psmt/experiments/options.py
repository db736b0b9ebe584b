"""Options that commands share: each means the same in all that have it. Free of heavy imports.

Here and in each ``command.py`` annotations are values, not strings: cyclopts reads those of a base class in the module
of its subclass, which has not imported their names.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from cyclopts import Parameter

from psmt.errors import PSMTError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from psmt.departures import Departures
    from psmt.experiments.record import FilmRecord
    from psmt.experiments.still import Still
    from psmt.patches import PatchCutter
    from psmt.regime import Regime
    from psmt.sources import Film, FrameSource, SeriesSource
    from psmt.types import Array, Progress

T = TypeVar("T")

QUICK_FRAMES = 2000
"""Frames that --quick looks at, at the most."""

MEMORY = 3.2
"""GiB that worker processes may take together by default; the run itself needs the rest of 4."""

PATCH_ALPHA, PATCH_SIDE = 1.0, 16
"""α of a standardised patch of 16 x 16, on which a series' own is measured: a frame of n features is as long as √n."""

DEFAULT_LAM = 0.1
"""λ of the sweep and the reconstruction, where no past can be held against a future to choose it."""

AUTO: dict[str, Any] = {"show_choices": False}
"""Of an option that takes a word as well as a number."""


def unless_auto(value: T | Literal["auto"], otherwise: Any) -> Any:
    """The value of an option, or what 'auto' stands for."""
    return otherwise if value == "auto" else value


def _row_column(_type: Any, tokens: Sequence[Any]) -> tuple[int, int]:
    try:
        row, column = map(int, tokens[0].value.split(","))
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not ROW,COLUMN; write two whole numbers, as in 92,92") from None
    return row, column


QuarterComponents = Annotated[
    Literal["auto"] | int,
    Parameter(help="f: dimension of the embedding; auto is a quarter of the atoms.", metavar="auto|INT", **AUTO),
]
FixedLam = Annotated[
    Literal["auto"] | float,
    Parameter(help=f"λ: price of activity in step 7, recovery; auto is {DEFAULT_LAM}.", metavar="auto|FLOAT", **AUTO),
]
Solver = Annotated[
    Literal["closed", "sgd"],
    Parameter(help="Step 5: the closed form, or mini-batch descent (on the CPU) that goes on from window to window."),
]
Start = Annotated[
    tuple[int, ...],
    Parameter(
        help="T: frame to start from; may be repeated. Left out: a calm and a lively phase are searched.",
        metavar="INT",
        negative=(),
        show_default=False,
    ),
]
Search = Annotated[
    Literal["segment", "film"],
    Parameter(help="Where the phases are looked for: inside the segment of least error, or in the whole film."),
]
NStarts = Annotated[
    int | None,
    Parameter(
        help="Starts over which claims are judged, phases among them; fewer where the film has less room. Left out: "
        "20, or 8 with --quick.",
        metavar="INT",
        show_default=False,
    ),
]
Atoms = Annotated[
    int | None, Parameter(help="M: atoms in the dictionary. Left out: 512.", metavar="INT", show_default=False)
]
Horizon = Annotated[int, Parameter(help="K: how many frames are predicted after each start.")]
Window = Annotated[
    int | None,
    Parameter(
        help="H: how many codes the embedding is made from. Left out: 3 times M.", metavar="INT", show_default=False
    ),
]


ExtrapolationName = Annotated[
    Literal["linear", "hold", "gain", "phase", "dynamics"],
    Parameter(
        help="Step 6: how PSMT continues the embedding. linear is the paper's straight line; dynamics learns a matrix "
        "from the window (docs/explanation/dynamics.md)."
    ),
]


@dataclass(frozen=True, kw_only=True)
class EmbeddingFlags:
    """How an embedding departs from the paper. What is left out is as the paper has it with --literal, else as ours."""

    literal: Annotated[
        bool,
        Parameter(
            help="The paper to the letter, without any departure but those asked for (docs/explanation/departures.md).",
            negative=(),
            show_default=False,
        ),
    ] = False
    half_stencils: Annotated[
        bool | None, Parameter(help="D is H x H, with half stencils at both ends, as in the paper.", show_default=False)
    ] = None
    centred: Annotated[
        bool | None, Parameter(help="V is the covariance, as in the paper, or taken about zero.", show_default=False)
    ] = None
    rank_tol: Annotated[
        float | None,
        Parameter(
            help="Noise, relative to the atoms' variance, that V is seen through. 0, as in the paper: none.",
            metavar="FLOAT",
            show_default=False,
        ),
    ] = None

    def settings(self) -> "Departures":
        """As the library takes them."""
        from psmt.departures import Departures

        flags = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "literal"}
        given: dict[str, Any] = {
            name: None if value == "none" else value for name, value in flags.items() if value is not None
        }
        return replace(Departures.literal() if self.literal else Departures(), **given)


@dataclass(frozen=True, kw_only=True)
class RecoveryFlags(EmbeddingFlags):
    """The same, with step 7."""

    activity_bound: Annotated[
        Literal["none"] | float | None,
        Parameter(
            help="Activity of a recovered code, relative to the window's peak, at the most. In the paper: none.",
            metavar="none|FLOAT",
            show_default=False,
            **AUTO,
        ),
    ] = None
    merge_parallel: Annotated[
        bool | None,
        Parameter(help="Recover atoms with parallel columns in P together; not so in the paper.", show_default=False),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ModelFlags(RecoveryFlags):
    """The same, with layer 1 of a prediction."""

    dictionary_from: Annotated[
        Literal["past", "window"] | None,
        Parameter(
            help="A prediction's dictionary is learned from all that lies before it, or as in the paper from the "
            "H frames of the window.",
            show_default=False,
        ),
    ] = None
    on_cut: Annotated[
        Literal["hold", "ignore"] | None,
        Parameter(help="After a cut the last code is held, or as in the paper nothing is done.", show_default=False),
    ] = None


EMBEDDING_FLAGS, RECOVERY_FLAGS, MODEL_FLAGS = EmbeddingFlags(), RecoveryFlags(), ModelFlags()
"""No flag given."""

EmbeddingDepartures = Annotated[EmbeddingFlags, Parameter(name="*")]
RecoveryDepartures = Annotated[RecoveryFlags, Parameter(name="*")]
ModelDepartures = Annotated[ModelFlags, Parameter(name="*")]

ChosenComponents = Annotated[
    Literal["auto"] | int,
    Parameter(
        help="f: dimension of the embedding; auto chooses by predicting the end of the past.",
        metavar="auto|INT",
        **AUTO,
    ),
]
ChosenLam = Annotated[
    Literal["auto"] | float,
    Parameter(help="λ: price of activity in step 7, recovery; auto as above.", metavar="auto|FLOAT", **AUTO),
]

Out = Annotated[Path, Parameter(help="Folder for the files; made if it is not there.")]


_reading = count()
"""Tells the films of one command apart."""


@dataclass(frozen=True, kw_only=True)
class FilmOptions(ABC):
    """What all commands take: the device, how much of the film, and where results go."""

    device: Annotated[str, Parameter(help="Where to compute: cpu, or cuda for a GPU.", metavar="cpu|cuda")] = "cpu"
    dtype: Annotated[Literal["float64", "float32"], Parameter(help="Numbers to solve with; float32 on a GPU only.")] = (
        "float64"
    )
    frames: Annotated[int, Parameter(help="Use the first so many frames of the film at the most.")] = 10_000
    force: Annotated[
        bool,
        Parameter(help="Start over: remove finished tasks from the folder first.", negative=(), show_default=False),
    ] = False
    json: Annotated[
        bool,
        Parameter(
            help="Print summary.json, in one line per film, and nothing else on stdout.",
            negative=(),
            show_default=False,
        ),
    ] = False
    out: Out = Path("psmt-out")

    film: ClassVar[str] = "Video, folder of images, .tif stack, .npy, .npz, .csv, .tsv, .mat, or builtin:glide."
    """Help on what the command works on."""
    film_type: ClassVar[Any] = str
    """What the command line reads it as: one name, or ``tuple[str, ...]`` for a command that takes several together."""
    film_name: ClassVar[str | None] = None
    """What help calls it, where it is no film."""
    default_film: ClassVar[Any] = None
    """What it works on where nothing is given; None asks for a film."""
    foretells: ClassVar[bool] = False
    """Whether it says what to expect of a film by its speed and noise."""
    alone: ClassVar[tuple[str, ...]] = ()
    """Options that mean something else in another command, and are not taken from there."""

    @classmethod
    def within(cls, given: "FilmOptions") -> Self:
        """These options as another command has them: it runs this experiment too."""
        shared: dict[str, Any] = {}
        for field in fields(cls):
            if field.name not in cls.alone and hasattr(given, field.name):
                value = getattr(given, field.name)
                if isinstance(field.default, tuple) and not isinstance(value, tuple):
                    value = () if value in (None, "auto") else (value,)
                shared[field.name] = value
        return cls(**shared)

    @abstractmethod
    def settings(self) -> Any:
        """As the library takes them."""

    @abstractmethod
    def open(self, spec: str) -> "FrameSource | SeriesSource":
        """The source of a name that was given on the command line."""

    @abstractmethod
    def read(self, source: Any, progress: "Progress") -> Any:
        """What the experiment works on."""

    def remarks(self, _source: Any, _material: Any, /) -> Sequence[str]:
        """What is said of the source before the results."""
        return ()

    def suited(self, _source: Any, /) -> Self:
        """These options for a source that was opened: what depends on its kind is settled."""
        return self

    @property
    def sizes_given(self) -> bool:
        """Whether somebody asked for M or H, so that no others may be taken for a film that is too short."""
        return bool(getattr(self, "atoms", None) or getattr(self, "window", None))

    def record(self, source: Any, _material: Any, /) -> "FilmRecord":
        """What reports tell of the source."""
        from psmt.experiments.record import FilmRecord

        return FilmRecord(
            name=source.name,
            checksum=source.checksum() if getattr(source, "repeatable", False) else None,
            n_frames=source.n_frames,
        )

    def still(self, _source: Any, /) -> "Still | None":
        """A picture of the source for the first screen of its report."""
        return None

    def picture_shape(self, _source: Any, /) -> tuple[int, int] | None:
        """Height and width of the picture that features are the pixels of; None where they are none."""
        return None

    def executor(self, _settings: Any, /) -> "AbstractContextManager[Executor | None]":
        """Where tasks run: in this process."""
        return nullcontext()

    @property
    def n_frames(self) -> int:
        """Frames that are read at the most."""
        return self.frames

    @property
    def engine(self) -> str:
        """Where to compute and with which numbers, in one word."""
        from psmt.engines import engine_name

        return engine_name(self.device, self.dtype)

    def check(self) -> None:
        """Raise for values that no film can make right, before any work is done."""
        from psmt.validation import check_count, check_real

        if self.engine != "cpu":
            from psmt.engines import engine_for

            engine_for(self.engine)
        if getattr(self, "solver", "closed") != "closed":
            from psmt.embedding.stochastic import check_solver

            check_solver("sgd", device=self.device)
        check_count("frames", self.frames)
        for name in ("atoms", "horizon"):
            values = getattr(self, name, None)
            for value in values if isinstance(values, tuple) else [values]:
                if value not in (None, "all"):
                    check_count(name, value)
        window = getattr(self, "window", None)
        if window is not None:
            check_count("window", window, minimum=3)
        components, lam = getattr(self, "components", "auto"), getattr(self, "lam", "auto")
        if components != "auto":
            check_count("components", components)
        for value in lam if isinstance(lam, tuple) else [lam]:
            if value != "auto":
                check_real("lam", value)


@dataclass(frozen=True, kw_only=True)
class ParallelOptions(FilmOptions):
    """What the commands take that code patches, and cut their work into tasks: layer 1, the seed, processes."""

    alpha: Annotated[float, Parameter(help="α: price of activity in layer 1, sparse coding.")] = 1.0
    seed: Annotated[int, Parameter(help="Seed of the dictionary's first atoms.")] = 0
    workers: Annotated[
        int | None,
        Parameter(
            help="Processes. Left out: one per CPU, as many as 4 GiB of memory hold.", metavar="INT", show_default=False
        ),
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(
            help="Address of a Dask scheduler whose workers are used instead, see docs/how-to/cluster.md.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None

    def check(self) -> None:
        """As for all commands; layer 1 and its seed; and not both processes and a cluster."""
        super().check()
        from psmt.validation import check_count, check_real

        check_count("seed", self.seed, minimum=0)
        if unless_auto(self.alpha, None) is not None:
            check_real("alpha", self.alpha, open_bound=True)
        if self.workers is not None:
            check_count("workers", self.workers)
            if self.cluster is not None:
                raise PSMTError(f"--workers {self.workers} has no meaning with --cluster; leave out one of them")

    def largest(self, settings: Any) -> int:
        """The largest M of the settings, which decides how many workers fit into memory."""
        return int(settings.largest)

    def executor(self, settings: Any, /) -> "AbstractContextManager[Executor | None]":
        """Processes of this machine, or those of a cluster."""
        from psmt.experiments.running.executors import cpu_count, open_executor

        workers = self.workers
        if workers is None and self.cluster is None:
            # A GPU is kept busy by one process; torch and CUDA graphs do not bear several threads.
            workers = workers_for(self.largest(settings), cpu_count()) if self.device == "cpu" else 1
        return open_executor(workers, self.cluster)


@dataclass(frozen=True, kw_only=True)
class PatchOptions(ParallelOptions):
    """What the commands take that look at one patch of each frame."""

    alpha: Annotated[
        Literal["auto"] | float,
        Parameter(
            help="α: price of activity in layer 1, sparse coding; auto is 1, and for a series of n features √n / 16.",
            metavar="auto|FLOAT",
            **AUTO,
        ),
    ] = "auto"  # type: ignore[assignment]  # a word is taken too; `price` is the number
    series: Annotated[bool, Parameter(parse=False)] = False
    """Whether what was opened is a series; nobody says so on the command line."""
    size: Annotated[int, Parameter(help="Side of the frame in pixels, after shrinking its centred square.")] = 200
    patch: Annotated[int, Parameter(help="Side of the patch in pixels; N is its square.")] = 16
    position: Annotated[
        tuple[int, int] | None,
        Parameter(
            help="Top left corner ROW,COLUMN of the patch in the frame. Left out: the centre.",
            metavar="ROW,COLUMN",
            negative=(),
            n_tokens=1,
            converter=_row_column,
            show_default=False,
        ),
    ] = None
    quick: Annotated[
        bool,
        Parameter(
            help=f"A small version: at most 128 atoms and the first {QUICK_FRAMES:,} frames.",
            negative=(),
            show_default=False,
        ),
    ] = False

    def check(self) -> None:
        """As for all commands; and a patch that lies in the frame."""
        super().check()
        self.cutter()

    @property
    def price(self) -> float:
        """α as a number."""
        return float(unless_auto(self.alpha, PATCH_ALPHA))

    def suited(self, source: Any, /) -> Self:
        """With the price of activity that fits the size of a series' frames."""
        from psmt.sources import SeriesSource

        if not isinstance(source, SeriesSource):
            return self
        alpha = unless_auto(self.alpha, PATCH_ALPHA * source.n_features**0.5 / PATCH_SIDE)
        return replace(self, series=True, alpha=alpha)

    def record(self, source: "Film | SeriesSource", values: "Array", /) -> "FilmRecord":
        """With the place of the patch, or the names of the features; and with speed and noise for a prediction."""
        from psmt.sources import SeriesSource

        record = replace(super().record(source, values), n_frames=len(values))
        if isinstance(source, SeriesSource):
            return replace(record, features=source.feature_names or tuple(map(str, range(source.n_features))))
        return replace(
            record,
            patch_size=self.patch,
            frame_size=self.size,
            position=self.position,
            regime=self.regime(source, values) if self.foretells else None,
        )

    def cutter(self) -> "PatchCutter":
        """What cuts the patch out of each frame; raises for one that does not lie in the frame."""
        from psmt.patches import PatchCutter

        return PatchCutter(frame_size=self.size, patch_size=self.patch, position=self.position)

    def open(self, spec: str) -> "Film | SeriesSource":
        """A film or a series: what is read once more after an interruption."""
        from psmt.sources import open_repeatable

        return open_repeatable(spec, stop=self.n_frames, wanted_by="this command")

    def read(self, source: "Film | SeriesSource", progress: "Progress") -> "Array":
        """Standardised patches of a film, or a series whose features are standardised: (time, n_features).

        Features have any units, and would outweigh each other. Experiments that predict standardise a series once more
        by its past, so that nothing of the future is known. Patches of a long film lie in a file in the folder of
        results until the end.
        """
        from psmt.files import temporary_name
        from psmt.patches import read_values
        from psmt.series import Scaling

        values = read_values(
            source,
            frame_size=self.size,
            patch_size=self.patch,
            position=self.position,
            progress=lambda done, total: progress("read frames", done, max(total or 0, done + 1)),
            store=temporary_name(self.out / f"patches-{next(_reading)}") if self.out.is_dir() else None,
        )
        progress("read frames", len(values), len(values))
        return Scaling.of(values).standardise(values) if self.series else values

    def picture_shape(self, source: "Film | SeriesSource", /) -> tuple[int, int] | None:
        """That of the patch; a series has none."""
        from psmt.sources import SeriesSource

        return None if isinstance(source, SeriesSource) else (self.patch, self.patch)

    def regime(self, source: "Film | SeriesSource", values: "Array") -> "Regime | None":
        """Speed and noise of what was read; None for a series, and where they cannot be measured."""
        from psmt.regime import measure_regime
        from psmt.sources import SeriesSource

        return None if isinstance(source, SeriesSource) else measure_regime(values)

    def still(self, source: "Film | SeriesSource") -> "Still | None":
        """A frame of the film with the patch's place; a series has none."""
        from psmt.experiments.still import read_still
        from psmt.sources import SeriesSource

        return None if isinstance(source, SeriesSource) else read_still(source, self.cutter())

    @property
    def n_frames(self) -> int:
        """Frames that are read at the most."""
        return min(self.frames, QUICK_FRAMES) if self.quick else self.frames


def workers_for(n_atoms: int, n_cpus: int) -> int:
    """Processes for tasks of up to `n_atoms`: one per CPU, but no more than 4 GiB of memory hold.

    A worker takes 0.2 GiB, and at M = 2048 0.8 GiB, most of it in matrices of M x M.

    >>> [workers_for(2048, 64), workers_for(512, 64), workers_for(64, 4)]
    [3, 11, 4]
    """
    each = 0.25 + 0.65 * (n_atoms / 2048) ** 2
    return max(1, min(n_cpus, int(MEMORY / each)))
