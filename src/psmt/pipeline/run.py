"""`Run`: the folder, executor, device and progress of an experiment; and `StageClock`, which times its stages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from psmt.pipeline.tasks import Task, run_tasks
from psmt.types import Progress, Result, silent
from psmt.utils.files import writing

_SAVE_SECONDS = 1.0
"""Time between two writes of a `StageClock`, so the most that it loses when the run is killed."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Where an experiment runs. An experiment takes its settings and a run, which it may pass on with a field changed.

    Parameters
    ----------
    folder : Path
        Results of tasks are kept in ``folder/tasks``.
    executor : Executor, optional
        See `psmt.pipeline.executors.open_executor`; None computes in this process.
    progress : callable
        Called as ``progress(stage, done, total)``.
    force : bool
        Compute all tasks anew, even if the folder has their results.
    device : str
        Where tasks compute, see `psmt.engines.engine_for`.
    name : str
        Name of the experiment, which is put before the name of each stage.
    picture_shape : (int, int), optional
        Height and width of the pictures whose pixels are the features, for figures; None if features are not pixels.
    """

    folder: Path
    executor: Executor | None = None
    progress: Progress = silent
    force: bool = False
    device: str = "cpu"
    name: str = ""
    picture_shape: tuple[int, int] | None = None

    def tasks(self, tasks: Iterable[Task], stage: str) -> list[Result]:
        """Results of the tasks, in order; see `psmt.pipeline.tasks.run_tasks`, which may raise `TaskError`."""
        return run_tasks(
            tasks,
            self.folder,
            executor=self.executor,
            progress=self.progress,
            force=self.force,
            stage=f"{self.name}: {stage}" if self.name else stage,
        )


class StageClock:
    """Progress callback that adds up the time of each stage in a file, over all runs that were needed.

    Time counts for the stage that was last reported, so that all of it is counted. Results never depend on this file:
    durations differ from run to run.

    Parameters
    ----------
    path : path
        JSON file; times that it holds for the same `key` are continued.
    key : str
        What is being timed. A file of another key is overwritten.
    progress : callable
        Called in turn.
    """

    def __init__(self, path: str | os.PathLike[str], key: str, progress: Progress = silent) -> None:
        self._path, self._key, self._progress = Path(path), key, progress
        self.seconds: dict[str, float] = {}
        try:
            content = json.loads(self._path.read_bytes())
            if content["key"] == key:
                self.seconds = {str(stage): float(value) for stage, value in content["seconds"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass  # no such file, or a damaged one
        self._stage: str | None = None
        self._counted = self._saved = perf_counter()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Count the time since the last call for the stage of that call."""
        changed = stage != self._stage
        self._count()
        self._stage = stage
        self.seconds.setdefault(stage, 0.0)
        if changed or perf_counter() - self._saved > _SAVE_SECONDS:
            self.save()
        self._progress(stage, done, total)

    def add(self, stage: str, seconds: float) -> None:
        """Count time that was spent on a stage before the clock was started."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def save(self) -> None:
        """Write the file."""
        self._count()
        with writing(self._path) as file:
            file.write(json.dumps({"key": self._key, "seconds": self.seconds}, indent=2).encode() + b"\n")
        self._saved = perf_counter()

    def _count(self) -> None:
        now = perf_counter()
        if self._stage is not None:
            self.seconds[self._stage] += now - self._counted
        self._counted = now
