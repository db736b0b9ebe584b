"""Options of a command that are not parameters of its experiment: the source, the device, processes and the folder."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
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
    from psmt.report import Picture
    from psmt.types import Array, Progress

MEMORY = 3.2
"""GiB that worker processes may use together by default; the run itself needs the rest of 4."""

QUICK_FRAMES = 2000
"""Frames that --quick reads at most."""

PATCH_SIDE = 16
"""Side of the patch for which α = 1. A standardised frame of n features has length √n, and α is scaled by it."""

_reading = count()
"""Numbers the films of one command."""


@dataclass(frozen=True, kw_only=True)
class FilmOptions(Declared, ABC):
    """Options of all commands: the device, the part of the film, and the folder of results."""

    device: Device = "cpu"
    dtype: Annotated[Literal["float64", "float32"], Option("--dtype", "Precision; float32 on a GPU only.")] = "float64"
    frames: Annotated[int, Option("--frames", "Read at most this many frames of the film.")] = 10_000
    force: Annotated[bool, Option("--force", "Start over: remove finished tasks from the folder first.")] = False
    json: Annotated[bool, Option("--json", "Print summary.json, in one line per film, and nothing else on stdout.")] = (
        False
    )
    out: Annotated[Path, Option("--out", "Folder for the files; created if it does not exist.")] = Path("psmt-out")

    SOURCE_HELP: ClassVar[str] = "Video, folder of images, .tif stack, .npy, .npz, .csv, .tsv, .mat, or builtin:glide."
    SOURCE_NAME: ClassVar[str] = "FILM"
    """What help calls the source."""
    SEVERAL_SOURCES: ClassVar[bool] = False
    """Whether one run takes several sources together."""
    DEFAULT_SOURCE: ClassVar[Any] = None
    """Source if none is given; None requires one."""

    @abstractmethod
    def open(self, spec: Any, /) -> FrameSource | SeriesSource:
        """Open the source that was named on the command line."""

    @abstractmethod
    def read(self, source: Any, progress: Progress, /) -> Any:
        """Read what the experiment works on; its `remarks`, if it has some, are printed before the results."""

    def check(self, settings: Iterable[Settings], /) -> None:
        """Raise for values that are wrong for every film, before any work is done."""
        if self.engine != "cpu":
            from psmt.engines import engine_for

            engine_for(self.engine)
        if any(getattr(own, "solver", "closed") != "closed" for own in settings):
            from psmt.embedding.stochastic import check_solver

            check_solver("sgd", device=self.device)

    def defaults_for(self, _source: Any, /) -> dict[str, Any]:
        """Parameters whose defaults depend on the source."""
        return {}

    def record(self, source: Any, _material: Any, /, *, motion: bool = False) -> FilmRecord:  # noqa: ARG002
        """What reports say about the source; with speed and noise if `motion`, and if they can be measured."""
        from psmt.experiments.film_report import FilmRecord

        checksum = source.checksum() if getattr(source, "repeatable", False) else None
        return FilmRecord(name=source.name, checksum=checksum, n_frames=source.n_frames)

    def still(self, _source: Any, _film: FilmRecord, /) -> Picture | None:
        """A picture of the source for the first screen of its report."""
        return None

    def executor(self, _n_atoms: int, /) -> AbstractContextManager[Executor | None]:
        """Where tasks run: in this process."""
        return nullcontext()

    @property
    def engine(self) -> str:
        """Device and precision in one word."""
        from psmt.engines import engine_name

        return engine_name(self.device, self.dtype)


@dataclass(frozen=True, kw_only=True)
class TaskOptions(FilmOptions):
    """Options of commands whose work is split into tasks."""

    workers: Annotated[
        int | None,
        Option("--workers", "Number of processes.", default="one per CPU, as many as fit into 4 GiB of memory"),
    ] = None
    cluster: Annotated[
        str | None,
        Option(
            "--cluster",
            "Address of a Dask scheduler whose workers are used instead, see docs/how-to/cluster.md.",
            metavar="ADDRESS",
        ),
    ] = None

    def check(self, settings: Iterable[Settings], /) -> None:
        """As for all commands; and not both processes and a cluster."""
        super().check(settings)
        if self.workers is not None and self.cluster is not None:
            raise PSMTError(f"--workers {self.workers} has no meaning with --cluster; leave out one of them")

    def executor(self, n_atoms: int, /) -> AbstractContextManager[Executor | None]:
        """Processes of this machine, or those of a cluster."""
        from joblib import cpu_count

        from psmt.pipeline.executors import open_executor

        workers = self.workers
        if workers is None and self.cluster is None:
            # One process keeps a GPU busy; torch and CUDA graphs do not work in several threads.
            workers = workers_for(n_atoms, cpu_count()) if self.device == "cpu" else 1
        return open_executor(workers, self.cluster)


def workers_for(n_atoms: int, n_cpus: int) -> int:
    """Number of processes for tasks of up to `n_atoms`: one per CPU, as many as fit into 4 GiB of memory.

    A worker takes 0.2 GiB, and 0.8 GiB at M = 2048, most of it for matrices of M x M.

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
    """Options of commands that work on one patch of each frame, or on a series in its place."""

    frame_size: Annotated[int, Option("--size", "Side of the frame in pixels, after its centred square is shrunk.")] = (
        200
    )
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
    quick: Annotated[
        bool, Option("--quick", f"A small version: at most 128 atoms and the first {QUICK_FRAMES:,} frames.")
    ] = False

    def check(self, settings: Iterable[Settings], /) -> None:
        """Check the options that all commands share, and that the patch lies inside the frame."""
        super().check(settings)
        self.cutter()

    def defaults_for(self, source: Any, /) -> dict[str, Any]:
        """Of a series: the penalty α that fits the length of its frames."""
        n_features = getattr(source, "n_features", None) if _is_series(source) else None
        return {} if n_features is None else {"series": True, "alpha": n_features**0.5 / PATCH_SIDE}

    def record(self, source: Film | SeriesSource, values: Array, /, *, motion: bool = False) -> FilmRecord:
        """With the place of the patch, or the names of the features."""
        from psmt.data.speed_and_noise import measure_regime

        record = replace(super().record(source, values), n_frames=len(values))
        if _is_series(source):
            names = source.feature_names or tuple(map(str, range(source.n_features)))  # type: ignore[union-attr]
            return replace(record, features=names)
        return replace(
            record,
            patch_size=self.patch_size,
            frame_size=self.frame_size,
            position=self.position,
            regime=measure_regime(values) if motion else None,
        )

    def cutter(self) -> PatchCutter:
        """What cuts the patch out of each frame; raises if it does not lie in the frame."""
        from psmt.data.patches import PatchCutter

        return PatchCutter(frame_size=self.frame_size, patch_size=self.patch_size, position=self.position)

    def open(self, spec: str, /) -> Film | SeriesSource:
        """A film or a series that can be read again after an interruption."""
        from psmt.data import open_repeatable

        n_frames = min(self.frames, QUICK_FRAMES) if self.quick else self.frames
        return open_repeatable(spec, stop=n_frames, wanted_by="this command")

    def read(self, source: Film | SeriesSource, progress: Progress, /) -> Array:
        """Standardised patches of a film, or a series with standardised features: (time, n_features).

        Features have any units, and would outweigh each other. Experiments that predict standardise a series again by
        its past, so that the future is not used. Patches of a long film are in a file in the folder of results until
        the end.
        """
        from psmt.data.patches import read_values
        from psmt.series import Scaling
        from psmt.utils.files import temporary_name

        values = read_values(
            source,
            frame_size=self.frame_size,
            patch_size=self.patch_size,
            position=self.position,
            progress=lambda done, total: progress("read frames", done, max(total or 0, done + 1)),
            store=temporary_name(self.out / f"patches-{next(_reading)}") if self.out.is_dir() else None,
        )
        progress("read frames", len(values), len(values))
        return Scaling.of(values).standardise(values) if _is_series(source) else values

    def still(self, source: Any, film: FilmRecord, /) -> Picture | None:
        """A frame of the film with the place of the patch; a series has none."""
        from psmt.experiments.film_report import marked_frame

        return None if _is_series(source) else marked_frame(source, self.cutter(), film)


def _is_series(source: Any) -> bool:
    from psmt.data import SeriesSource

    return isinstance(source, SeriesSource)
