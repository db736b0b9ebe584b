"""Tasks: independent pieces of an experiment, each with its result in a separate file.

A finished task is never computed again: the name of its file is a hash of everything that the result depends on. So a
killed run continues where it stopped, and changed settings never find old results. Two runs in the same folder may
compute a result twice, which does no harm. No lock is needed, because files appear complete or not at all.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cached_property
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np

from psmt.errors import PSMTError
from psmt.pipeline.cache import hash_code, hash_values, load_result, save_result
from psmt.pipeline.executors import SerialExecutor, worker_count
from psmt.types import Progress, Result, silent
from psmt.utils.disk_series import IN_MEMORY, DiskSeries
from psmt.utils.files import clear_stale
from psmt.utils.threads import one_thread

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")

_IN_FLIGHT = 2
"""Number of tasks per worker that are submitted ahead. It is enough to keep workers busy, but needs little memory."""

_ATTEMPTS = 2  # number of attempts at a task whose process dies


class TaskError(PSMTError, RuntimeError):
    """A task has failed."""


@dataclass(frozen=True, eq=False)
class Task:
    """One unit of work. It does not depend on other tasks, and its result is stored in a file."""

    name: str
    """Readable name that suits a file, such as ``sweep-M0512-H01024-w003``."""
    compute: Callable[..., Result]
    """A function at the top level of an importable module. It is called with copies of the inputs as keywords and
    returns a dict of arrays that depends on nothing else."""
    inputs: Mapping[str, Any]
    """Arrays and plain values (None, bool, int, float, str, and lists, tuples or dicts of these). Views cost nothing,
    so that several tasks can share one film. A large `DiskSeries` stays on disk."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name={self.name!r} does not suit a file; use up to 100 letters, digits and _ . + -, the first a "
                "letter or digit"
            )
        if "<" in getattr(self.compute, "__qualname__", "<"):
            raise TypeError(f"compute={self.compute!r} cannot be sent to a worker; use one at a module's top level")

    @cached_property
    def key(self) -> str:
        """Return a hash of the name of `compute`, the code that it uses and the inputs, as 64 hex digits."""
        function = f"{self.compute.__module__}.{self.compute.__qualname__}"
        inputs = hash_values(self.inputs, where=f"{self.name}: input")
        return hash_values({"function": function, "code": hash_code(self.compute), "inputs": inputs}, where=self.name)

    def path(self, folder: str | os.PathLike[str]) -> Path:
        """Return the path of the result file if results are stored in `folder`."""
        return Path(folder) / "tasks" / f"{self.name}-{self.key[:16]}.npz"


def on_device(device: str) -> dict[str, str]:
    """Return the task inputs that select a device. The CPU needs none, so its task keys do not contain a device."""
    return {} if device == "cpu" else {"device": device}


@one_thread()  # also limits tasks that run in threads of this process
def run_tasks(
    tasks: Iterable[Task],
    folder: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    progress: Progress = silent,
    stage: str = "tasks",
) -> list[Result]:
    """Return the results of the tasks, in order. Results on disk are read; the others are computed and stored.

    Parameters
    ----------
    tasks : iterable of Task
        Tasks are taken one by one as workers become free. If inputs are large, give a generator.
    folder : path
        Results are kept in ``folder/tasks``.
    executor : Executor, optional
        Anything with the interface of `concurrent.futures`; see `psmt.pipeline.executors.open_executor`. None computes
        in this process.
    progress : callable, optional
        Called as ``progress(stage, done, total)``. For a generator, `total` is the number of tasks yielded so far.
    stage : str
        Name of this stage for `progress`.

    Raises
    ------
    TaskError
        If a task fails. No further tasks are started. Running tasks are completed and their results are kept.

    Notes
    -----
    BLAS and numba have one thread inside a task, so that its result is the same, byte for byte, wherever it runs.
    """
    run = _TaskRun(SerialExecutor() if executor is None else executor, Path(folder), stage, progress)
    run.total = length_hint(tasks)
    target = Path(folder) / "tasks"
    target.mkdir(parents=True, exist_ok=True)
    clear_stale(target)
    progress(stage, 0, run.total)
    try:
        for index, task in enumerate(tasks):
            run.total = max(run.total, index + 1)
            found = load_result(task.path(folder), task.key)
            if found is None:
                run.submit(index, task)
            else:
                run.finish([index], found)
            if run.failure:
                break
        run.collect(0)
    except BaseException:
        for future in run.submitted:
            future.cancel()
        raise
    if run.failure:
        name, error = run.failure
        raise TaskError(f"task {name} failed ({type(error).__name__}: {error}); finished tasks are kept") from error
    return [run.results[index] for index in range(len(run.results))]


@dataclass(eq=False)
class _Submitted:
    """A submitted task, and the indices of its result in the list of results."""

    task: Task
    indices: list[int]
    attempts: int = 0


@dataclass(eq=False)
class _TaskRun:
    """State of one call of `run_tasks`."""

    executor: Executor
    folder: Path
    stage: str
    progress: Progress
    total: int = 0
    results: dict[int, Result] = field(default_factory=dict)
    submitted: dict[Future[Result], _Submitted] = field(default_factory=dict)
    failure: tuple[str, BaseException] | None = None

    def submit(self, index: int, task: Task) -> None:
        for other in self.submitted.values():
            if other.task.path(self.folder) == task.path(self.folder):
                other.indices.append(index)
                return
        self._start(_Submitted(task, [index]))
        self.collect(_IN_FLIGHT * worker_count(self.executor) - 1)

    def _start(self, item: _Submitted) -> None:
        task, item.attempts = item.task, item.attempts + 1
        try:
            inputs = dict(task.inputs)
            if not getattr(self.executor, "shares_disk", True):
                inputs = {name: np.array(x) if isinstance(x, DiskSeries) else x for name, x in inputs.items()}
            future = self.executor.submit(_evaluate, task.compute, inputs, _version(), hash_code(task.compute))
        except Exception as error:
            self._fail(item, error)
        else:
            self.submitted[future] = item

    def collect(self, room: int) -> None:
        """Store the results that are ready, and wait until at most `room` tasks are running."""
        lost_calls = getattr(self.executor, "lost_calls", None)
        while self.submitted:
            full = len(self.submitted) > room
            seconds = 0 if not full else None if lost_calls is None else 1
            done, under_way = wait(self.submitted, timeout=seconds, return_when=FIRST_COMPLETED)
            for future in done:
                self._land(future, self.submitted.pop(future))
            for future, error in lost_calls(under_way).items() if lost_calls is not None else ():
                future.cancel()
                self._fail(self.submitted.pop(future), error)
            if not done and not full:
                return

    def _land(self, future: Future[Result], item: _Submitted) -> None:
        try:
            result = future.result()
            save_result(item.task.path(self.folder), item.task.key, result)
        except BrokenProcessPool:
            if item.attempts < _ATTEMPTS:
                self._start(item)
                return
            died = f"its worker process died in {item.attempts} of {_ATTEMPTS} attempts (killed, or out of memory?)"
            way_out = f"use fewer workers than {worker_count(self.executor)}, or smaller tasks"
            self._fail(item, BrokenProcessPool(f"{died}; {way_out}"))
        except Exception as error:
            self._fail(item, getattr(self.executor, "explain", lambda error: error)(error))
        else:
            self.finish(item.indices, result)

    def _fail(self, item: _Submitted, error: BaseException) -> None:
        self.failure = self.failure or (item.task.name, error)

    def finish(self, indices: list[int], result: Result) -> None:
        for index in indices:
            self.results[index] = result
            self.progress(self.stage, len(self.results), self.total)


def _evaluate(compute: Callable[..., Result], inputs: dict[str, Any], version: str, code: str) -> Result:
    """Compute one task, in the worker, and return its result with arrays in C order.

    `version` and `code` are psmt's version and the hash of the code on the machine that started the run.
    """
    if version != _version():
        raise PSMTError(
            f"the worker has psmt {_version()}, but the run was started by psmt {version}; "
            "install the same version on all machines"
        )
    if code != (own := hash_code(compute)):
        raise PSMTError(
            f"the worker has other source code behind {compute.__module__} (hash {own[:8]}) than the machine that "
            f"started the run (hash {code[:8]}), though both call it psmt {version}; "
            "install the same source on all machines, and restart the workers"
        )
    with one_thread():
        result = compute(**{name: _own_copy(value) for name, value in inputs.items()})
    if not isinstance(result, dict) or not all(isinstance(name, str) for name in result):
        raise TypeError(f"{compute.__qualname__} returned {type(result).__name__}; a task returns a dict of arrays")
    arrays = {name: np.asarray(result[name], order="C") for name in sorted(result)}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{compute.__qualname__} returned {name!r} as objects; a task returns arrays of numbers")
    return arrays


def _own_copy(value: Any) -> Any:
    """Return a writable copy of an array, or of the arrays in a dict. A large `DiskSeries` stays on disk."""
    if isinstance(value, dict):
        return {name: _own_copy(own) for name, own in value.items()}
    large = isinstance(value, DiskSeries) and value.nbytes > IN_MEMORY
    return np.array(value, order="C") if isinstance(value, np.ndarray) and not large else value


def _version() -> str:
    # Not imported, because imports of this module are part of the keys, and a new version alone is not new code.
    return str(sys.modules["psmt"].__version__)
