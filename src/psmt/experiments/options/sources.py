"""Options of a command that are not parameters of its experiment: source, device, processes, folder of results."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from psmt.errors import PSMTError
from psmt.experiments.options.declaration import Declared, Option, Settings
from psmt.experiments.options.parameters import Device, PatchSize

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from psmt.data import Film, FrameSource, SeriesSource
    from psmt.data.patches import PatchCutter
    from psmt.experiments.film_report import FilmRecord
    from psmt.types import Array, Levels, Progress

MEMORY = 3.2
"""GiB of memory that all worker processes together may use by default. Of 4 GiB, the rest is for the main process."""

QUICK_FRAMES = 2000
"""Largest number of frames that --quick reads."""

PATCH_SIDE = 16
"""Side of the patch for which α = 1. The penalty α is proportional to the norm of a frame, √n for n features."""

_reading = count()  # numbers the temporary files of patches, so that their names differ


@dataclass(frozen=True, kw_only=True)
class FilmOptions(Declared, ABC):
    """Base of the options of a command. All commands have these: device, part of the film, folder of results."""

    device: Device = "cpu"
    dtype: Annotated[Literal["float64", "float32"], Option("--dtype", "Precision; float32 on a GPU only.")] = "float64"
    frames: Annotated[int, Option("--frames", "Read at most this many frames of the film.")] = 10_000
    json: Annotated[bool, Option("--json", "Print summary.json in one line, and nothing else on stdout.")] = False
    out: Annotated[Path, Option("--out", "Folder for the files; created if it does not exist.")] = Path("psmt-out")

    SOURCE_HELP: ClassVar[str] = "Video, folder of images, .tif stack, .npy, .npz, .csv, .tsv, .mat, or builtin:glide."
    SOURCE_NAME: ClassVar[str] = "FILM"
    """Name of the source in help texts."""
    SEVERAL_SOURCES: ClassVar[bool] = False
    """Whether one run uses several sources together."""
    DEFAULT_SOURCE: ClassVar[Any] = None
    """Source that is used if none is given, or None if a source must be given."""

    @abstractmethod
    def open(self, spec: Any, /) -> FrameSource | SeriesSource:
        """Open the source `spec` that was given on the command line. The method `read` reads its data later."""

    @abstractmethod
    def read(self, source: Any, progress: Progress, /) -> Any:
        """Read the data that the experiment takes. If they have an attribute `remarks`, the command prints it."""

    def check(self, _settings: Iterable[Settings], /) -> None:
        """Raise if an option is invalid for every film, before any work is done."""
        if self.engine != "cpu":
            from psmt.engines import engine_for

            engine_for(self.engine)

    def defaults_for(self, _source: Any, /) -> dict[str, Any]:
        """Return the parameters whose default depends on the source, with these defaults."""
        return {}

    def record(self, source: Any, _material: Any, /) -> FilmRecord:
        """Return the name, checksum and length of the source, for reports."""
        from psmt.experiments.film_report import FilmRecord

        checksum = source.checksum() if getattr(source, "repeatable", False) else None
        return FilmRecord(name=source.name, checksum=checksum, n_frames=source.n_frames)

    def surroundings(self, _source: Any, /) -> Callable[..., list[tuple[Levels, list[int]]]] | None:
        """Return a function for `Run` that reads the pixels around the patch. Here it is None: there is no patch."""
        return None

    def executor(self, _n_atoms: int, /) -> AbstractContextManager[Executor | None]:
        """Return a context manager that yields the executor of tasks. Here it is None: tasks run in this process."""
        return nullcontext()

    @property
    def engine(self) -> str:
        """Name of the engine for this device and precision, see `engine_for`."""
        from psmt.engines import engine_name

        return engine_name(self.device, self.dtype)


@dataclass(frozen=True, kw_only=True)
class TaskOptions(FilmOptions):
    """Options of commands that run tasks. The tasks can run in several processes or on a cluster."""

    workers: Annotated[
        int | None, Option("--workers", "Number of processes.", default="one per CPU, as many as fit into 4 GiB")
    ] = None
    cluster: Annotated[
        str | None, Option("--cluster", "Address of a Dask scheduler, see docs/how-to/cluster.md.", metavar="ADDRESS")
    ] = None

    def executor(self, n_atoms: int, /) -> AbstractContextManager[Executor | None]:
        """Return a context manager that yields an executor: processes of this machine, or a cluster."""
        from joblib import cpu_count

        from psmt.pipeline.executors import open_executor

        workers = self.workers
        if workers is None and self.cluster is None:
            # One process keeps a GPU busy, and torch and CUDA graphs do not work in several threads.
            workers = workers_for(n_atoms, cpu_count()) if self.device == "cpu" else 1
        return open_executor(workers, self.cluster)


def workers_for(n_atoms: int, n_cpus: int) -> int:
    """Return the number of worker processes: one per CPU, or as many as fit into `MEMORY`.

    A process is assumed to need 0.25 GiB for few atoms. For 2048 atoms, matrices (n_atoms, n_atoms) make it 0.9 GiB.

    >>> [workers_for(2048, 64), workers_for(512, 64), workers_for(64, 4)]
    [3, 11, 4]
    """
    each = 0.25 + 0.65 * (n_atoms / 2048) ** 2
    return max(1, min(n_cpus, int(MEMORY / each)))


def _row_column(text: str) -> tuple[int, int]:
    if not re.fullmatch(r"\s*[+-]?\d+\s*,\s*[+-]?\d+\s*", text):
        raise ValueError(f"{text!r} is not ROW,COLUMN; write two whole numbers, as in 92,92")
    row, column = map(int, text.split(","))
    return row, column


@dataclass(frozen=True, kw_only=True)
class PatchOptions(TaskOptions):
    """Options of commands that use one patch of each frame of a film, or a series."""

    frame_size: Annotated[int, Option("--size", "Side in pixels to which the frame's centred square is shrunk.")] = 200
    patch_size: PatchSize = 16
    position: Annotated[
        tuple[int, int] | None,
        Option(
            "--position",
            "Top left corner ROW,COLUMN of the patch in the frame.",
            default="the centre",
            metavar="ROW,COLUMN",
            parse=_row_column,
        ),
    ] = None
    columns: Annotated[
        tuple[str, ...] | None,
        Option(
            "--columns",
            "Columns of a table to use, by name.",
            default="all but an index column",
            metavar="NAME,NAME",
            parse=lambda text: tuple(name.strip() for name in text.split(",")),
        ),
    ] = None
    quick: Annotated[bool, Option("--quick", f"Small: at most 128 atoms, the first {QUICK_FRAMES:,} frames.")] = False

    def check(self, settings: Iterable[Settings], /) -> None:
        """Raise if an option that all commands share is invalid, or if the patch does not lie inside the frame."""
        super().check(settings)
        self.cutter()

    def defaults_for(self, source: Any, /) -> dict[str, Any]:
        """Return the length of a series and the penalty α for its number of features. Return {} for a film."""
        if not _is_series(source):
            return {}
        return {"series": True, "alpha": source.n_features**0.5 / PATCH_SIDE, "n_rows": source.n_frames}

    def record(self, source: Film | SeriesSource, values: Array, /) -> FilmRecord:
        """Return name, checksum and length of the source. Add the position of the patch, or the names of features."""
        record = replace(super().record(source, values), n_frames=len(values))
        if _is_series(source):
            names = source.feature_names or tuple(map(str, range(source.n_features)))  # type: ignore[union-attr]
            return replace(record, features=names)
        return replace(record, **{name: getattr(self, name) for name in ("patch_size", "frame_size", "position")})

    def cutter(self) -> PatchCutter:
        """Return the object that cuts patches out of frames. Raise if the patch does not lie inside the frame."""
        from psmt.data.patches import PatchCutter

        return PatchCutter(frame_size=self.frame_size, patch_size=self.patch_size, position=self.position)

    def open(self, spec: str, /) -> Film | SeriesSource:
        """Open a film or a series. Refuse streams, because an interrupted run could not read them again."""
        from psmt.data import open_repeatable
        from psmt.utils.validation import warn_of_mistakes

        n_frames = min(self.frames, QUICK_FRAMES) if self.quick else self.frames
        source: Any = open_repeatable(spec, stop=n_frames, wanted_by="this command")
        if _is_series(source):
            source = source if self.columns is None else source.select(self.columns)
            warn_of_mistakes(source, source.values)
        elif self.columns is not None:
            raise PSMTError(f"--columns {','.join(self.columns)}: {source.name} is a film, which has no columns")
        return source  # type: ignore[no-any-return]

    def read(self, source: Film | SeriesSource, progress: Progress, /) -> Array:
        """Return an array (time, n_features): the standardised patches of a film, or a series.

        Each feature of a series is standardised, because units may differ. `psmt predict` standardises it again by its
        past, so that no information comes from the future. Patches of a long film are kept in a temporary file in the
        folder of results.
        """
        from psmt.data.patches import read_values
        from psmt.series import Scaling
        from psmt.utils.files import temporary_name

        stage = "read rows" if _is_series(source) else "read frames"
        values = read_values(
            source,
            frame_size=self.frame_size,
            patch_size=self.patch_size,
            position=self.position,
            progress=lambda done, total: progress(stage, done, max(total or 0, done + 1)),
            store=temporary_name(self.out / f"patches-{next(_reading)}") if self.out.is_dir() else None,
        )
        progress(stage, len(values), len(values))
        return Scaling.of(values).standardise(values) if _is_series(source) else values

    def surroundings(self, source: Any, /) -> Callable[..., list[tuple[Levels, list[int]]]] | None:
        """Return a function that reads the pixels around the patch, or None for a series or for small frames."""
        import numpy as np

        from psmt.data.patches import read_surroundings
        from psmt.video.frames import SMALLEST

        around, _ = self.cutter().surroundings(np.zeros((self.frame_size, self.frame_size)))
        if _is_series(source) or min(around.shape) < SMALLEST:
            return None
        return partial(read_surroundings, source, self.cutter())


def _is_series(source: Any) -> bool:
    from psmt.data import SeriesSource

    return isinstance(source, SeriesSource)
