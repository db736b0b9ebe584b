"""`Run`: the folder, executor, device and progress of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from psmt.pipeline.tasks import Task, run_tasks
from psmt.series import Scaling
from psmt.types import Levels, Progress, Result, silent


@dataclass(frozen=True, kw_only=True)
class Run:
    """Where and how an experiment runs: folder, executor, device and progress.

    Parameters
    ----------
    folder : Path
        Results of tasks are kept in ``folder/tasks``.
    executor : Executor, optional
        See `psmt.pipeline.executors.open_executor`. None computes in this process.
    progress : callable
        Called as ``progress(stage, done, total)``.
    device : str
        Device on which tasks compute; see `psmt.engines.engine_for`.
    name : str
        Name of the experiment, which is put before the name of each stage.
    picture_shape : (int, int), optional
        Height and width of the pictures whose pixels are the features, for figures; None if features are not pixels.
    surroundings : callable, optional
        Returns the surroundings of the patch in stretches of the film, see `psmt.data.patches.read_surroundings`; None
        if there is no film to read them from.
    features, scaling : tuple of str, Scaling, optional
        Names of a series' features, and what converts standardised values to their units.
    """

    folder: Path
    executor: Executor | None = None
    progress: Progress = silent
    device: str = "cpu"
    name: str = ""
    picture_shape: tuple[int, int] | None = None
    surroundings: Callable[..., list[tuple[Levels, list[int]]]] | None = None
    features: tuple[str, ...] | None = None
    scaling: Scaling | None = None

    def tasks(self, tasks: Iterable[Task], stage: str) -> list[Result]:
        """Return the results of the tasks in order (see `run_tasks`). Raise `TaskError` if one fails."""
        return run_tasks(
            tasks,
            self.folder,
            executor=self.executor,
            progress=self.progress,
            stage=f"{self.name}: {stage}" if self.name else stage,
        )
