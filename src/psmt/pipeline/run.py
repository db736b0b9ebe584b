"""`Run`: the folder, executor, device and progress of an experiment."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from psmt.data import SeriesSource
from psmt.pipeline.tasks import Task, run_tasks
from psmt.types import Levels, Progress, Result, silent


@dataclass(frozen=True, kw_only=True)
class Run:
    """Where and how an experiment runs: folder, executor, device and progress."""

    folder: Path
    """Results of tasks are kept in ``folder/tasks``."""
    executor: Executor | None = None
    """See `psmt.pipeline.executors.open_executor`. None computes in this process."""
    progress: Progress = silent
    """Called as ``progress(stage, done, total)``."""
    device: str = "cpu"
    """Device on which tasks compute, see `psmt.engines.engine_for`."""
    name: str = ""
    """Name of the experiment, which is put before the name of each stage."""
    picture_shape: tuple[int, int] | None = None
    """Height and width of the pictures whose pixels are the features, or None if features are not pixels."""
    surroundings: Callable[..., list[tuple[Levels, list[int]]]] | None = None
    """Function that reads the pixels around the patch in stretches of the film, see
    `psmt.data.patches.read_surroundings`. It is None if there is no film."""
    series: SeriesSource | None = None
    """The series as it was read, or None for a film."""

    def tasks(self, tasks: Iterable[Task], stage: str) -> list[Result]:
        """Return the results of the tasks in order (see `run_tasks`). Raise `TaskError` if one fails."""
        stage = f"{self.name}: {stage}" if self.name else stage
        return run_tasks(tasks, self.folder, executor=self.executor, progress=self.progress, stage=stage)
