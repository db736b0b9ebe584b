"""`Run`: where an experiment runs, and who watches it. Handed on as one thing, never in parts."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from psmt.pipeline.tasks import Task, run_tasks
from psmt.types import Progress, Result, silent


@dataclass(frozen=True, kw_only=True)
class Run:
    """A folder for results, an executor for tasks, a device, and a listener.

    An experiment takes its settings and a run. What it hands to another is the same run, or one with a field changed:
    ``dataclasses.replace(run, name="sweep")``.

    Parameters
    ----------
    folder : Path
        Results of tasks are kept in ``folder/tasks``.
    executor : Executor, optional
        See `psmt.pipeline.executors.open_executor`; None computes in this process.
    progress : callable
        Called as ``progress(stage, done, total)``.
    force : bool
        Compute all anew, whatever is kept in the folder.
    device : str
        Where tasks compute, see `psmt.engines.engine_for`.
    name : str
        Of the experiment: stands before the name of each stage.
    picture_shape : (int, int), optional
        Height and width of the picture that features are the pixels of, as the source says; None where they are no
        pixels. Figures are drawn by it.
    """

    folder: Path
    executor: Executor | None = None
    progress: Progress = silent
    force: bool = False
    device: str = "cpu"
    name: str = ""
    picture_shape: tuple[int, int] | None = None

    def tasks(self, tasks: Iterable[Task], stage: str) -> list[Result]:
        """Results of the tasks, in order; those that are on disk are read, the others computed and kept.

        Raises
        ------
        TaskError
            When a task fails. No further ones are begun; those under way are completed and kept.
        """
        return run_tasks(
            tasks,
            self.folder,
            executor=self.executor,
            progress=self.progress,
            force=self.force,
            stage=f"{self.name}: {stage}" if self.name else stage,
        )
