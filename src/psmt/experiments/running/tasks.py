"""Tasks: independent pieces of an experiment, each with its result in a file of its own.

A finished task is never computed again, whoever asks for it: its file is named after the content of everything that
the result depends on. So a run that was killed goes on where it was, changed settings find no old results, and two
runs at once only do work twice. Nothing is locked; files appear whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
import sys
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import length_hint
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

import psmt
from psmt.errors import PSMTError
from psmt.experiments.running.executors import SerialExecutor, worker_count
from psmt.files import writing
from psmt.types import Progress, Result, silent

__all__ = ["TASK_VERSION", "Result", "RunStage", "Task", "TaskError", "clear_stale", "on_device", "run_tasks", "stages"]


TASK_VERSION = 4
"""Part of every key: a new number when the same inputs come to mean another result."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")
_IN_FLIGHT = 2
"""Tasks per worker that are submitted ahead: enough to keep it busy, few enough to hold in memory."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of all members of a file, the earliest that a zip can hold: equal content makes equal bytes."""


class TaskError(PSMTError, RuntimeError):
    """A task that could not be computed."""


@dataclass(frozen=True, eq=False)
class Task:
    """One unit of work: independent, idempotent, its result a file.

    Parameters
    ----------
    name : str
        For people and file systems, such as ``sweep-M0512-H01024-w003``.
    compute : callable
        A function at the top level of an importable module. Called with the inputs as keywords, on arrays of its own,
        it returns a dict of arrays that depends on nothing else.
    inputs : mapping
        Arrays and plain values (None, bool, int, float, str, and lists, tuples or dicts of these). Views cost nothing:
        many tasks may share one film.

    Attributes
    ----------
    key : str
        Hash of `compute`'s name, the inputs, `TASK_VERSION` and psmt's version, as 64 hex digits.
    """

    name: str
    compute: Callable[..., Result]
    inputs: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name={self.name!r} does not suit a file; use up to 100 letters, digits and _ . + -, the first a "
                "letter or digit"
            )
        if "<" in getattr(self.compute, "__qualname__", "<"):
            raise TypeError(f"compute={self.compute!r} cannot travel; use a function at the top level of a module")

    @cached_property
    def key(self) -> str:
        digest = hashlib.sha256()
        function = f"{self.compute.__module__}.{self.compute.__qualname__}"
        _feed(digest, (TASK_VERSION, psmt.__version__, function), self.name)
        for name in sorted(self.inputs):
            _feed(digest, name, self.name)
            _feed(digest, self.inputs[name], f"{self.name}: input {name}")
        return digest.hexdigest()

    def path(self, folder: str | os.PathLike[str]) -> Path:
        """File of the result when tasks are kept in `folder`."""
        return Path(folder) / "tasks" / f"{self.name}-{self.key[:16]}.npz"


def on_device(device: str) -> dict[str, str]:
    """Inputs that tell a task where to compute; none for the CPU, where results agree byte for byte."""
    return {} if device == "cpu" else {"device": device}


def run_tasks(
    tasks: Iterable[Task],
    folder: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    progress: Progress = silent,
    force: bool = False,
    stage: str = "tasks",
) -> list[Result]:
    """Results of the tasks, in order; those that are on disk are read, the others computed and written.

    Parameters
    ----------
    tasks : iterable of Task
        Taken one by one as there is room: where inputs are large, give a generator.
    folder : path
        Results are kept in ``folder/tasks``.
    executor : Executor, optional
        Anything with the interface of `concurrent.futures`, see `running.executors.open_executor`. None
        computes in this process.
    progress : callable, optional
        Called as ``progress(stage, done, total)``; for a generator, `total` is what has come out of it so far.
    force : bool
        Compute all tasks anew, and overwrite their files.

    Raises
    ------
    TaskError
        When a task fails. No further ones are begun; those under way are completed and kept.

    Notes
    -----
    BLAS and numba have one thread inside a task, so that its result is the same, byte for byte, wherever it runs.
    """
    run = _Run(SerialExecutor() if executor is None else executor, stage=stage, progress=progress)
    run.total = length_hint(tasks)
    target = Path(folder) / "tasks"
    target.mkdir(parents=True, exist_ok=True)
    clear_stale(target)
    progress(stage, 0, run.total)
    try:
        for index, task in enumerate(tasks):
            run.total = max(run.total, index + 1)
            found = None if force else _load(task.path(folder), task.key)
            if found is None:
                run.submit(index, task, task.path(folder))
            else:
                run.finish([index], found)
            if run.failure:
                break
        run.land(0)
    except BaseException:
        for future in run.flying:
            future.cancel()
        raise
    if run.failure:
        name, error = run.failure
        raise TaskError(f"task {name} failed ({type(error).__name__}: {error}); the finished ones are kept") from error
    return [run.results[index] for index in range(len(run.results))]


RunStage = Callable[[Iterable[Task], str], list[Result]]
"""Computes the tasks of a stage, given by its name."""


def stages(experiment: str, folder: str | os.PathLike[str], **run: Any) -> RunStage:
    """`run_tasks` for an experiment, whose name stands before that of each stage; `run` is passed on."""

    def run_stage(tasks: Iterable[Task], stage: str) -> list[Result]:
        return run_tasks(tasks, folder, stage=f"{experiment}: {stage}", **run)

    return run_stage


def clear_stale(folder: str | os.PathLike[str], pattern: str = "*.npz") -> None:
    """Remove what killed runs left half written in `folder`: temporary files for names like `pattern`.

    Those of runs that are still alive stay. On a folder that machines share, nobody can tell whether a process of
    another machine lives: there a writer may lose its file, and writes it again.
    """
    for path in Path(folder).glob(f".{pattern}.*.tmp"):
        pid = path.name.split(".")[-2]
        if pid.isdecimal() and (int(pid) == os.getpid() or not _alive(int(pid))):
            # Windows keeps files that are open.
            with suppress(OSError):
                path.unlink()


@dataclass(eq=False)
class _Flight:
    """A task that was submitted, and the places in the results that wait for it."""

    task: str
    key: str
    path: Path
    indices: list[int]


@dataclass(eq=False)
class _Run:
    """State of one `run_tasks`."""

    executor: Executor
    stage: str
    progress: Progress
    total: int = 0
    results: dict[int, Result] = field(default_factory=dict)
    flying: dict[Future[Result], _Flight] = field(default_factory=dict)
    failure: tuple[str, BaseException] | None = None

    def submit(self, index: int, task: Task, path: Path) -> None:
        for flight in self.flying.values():
            if flight.path == path:
                flight.indices.append(index)
                return
        flight = _Flight(task.name, task.key, path, [index])
        try:
            future = self.executor.submit(_evaluate, task.compute, dict(task.inputs), psmt.__version__)
            room = _IN_FLIGHT * worker_count(self.executor)
        except Exception as error:
            self.failure = self.failure or (task.name, error)
            return
        self.flying[future] = flight
        self.land(room - 1)

    def land(self, room: int) -> None:
        """Write what is done, and wait until at most `room` tasks are under way."""
        while self.flying:
            timeout = None if len(self.flying) > room else 0
            done, _ = wait(self.flying, timeout=timeout, return_when=FIRST_COMPLETED)
            if not done:
                return
            for future in done:
                flight = self.flying.pop(future)
                try:
                    result = future.result()
                    _save(flight.path, flight.key, result)
                except Exception as error:
                    self.failure = self.failure or (flight.task, error)
                else:
                    self.finish(flight.indices, result)

    def finish(self, indices: list[int], result: Result) -> None:
        for index in indices:
            self.results[index] = result
            self.progress(self.stage, len(self.results), self.total)


# Inside a task


def _evaluate(compute: Callable[..., Result], inputs: dict[str, Any], version: str) -> Result:
    """Result of one task, with its arrays in C order; this is what travels to a worker."""
    if version != psmt.__version__:
        raise PSMTError(
            f"the worker has psmt {psmt.__version__}, but the run was started by psmt {version}; "
            "install the same version on all machines"
        )
    # Arrays of its own: wherever it runs, a task may write into them, and finds them laid out alike.
    private = {
        name: np.array(value, order="C") if isinstance(value, np.ndarray) else value for name, value in inputs.items()
    }
    with _one_thread():
        result = compute(**private)
    if not isinstance(result, dict) or not all(isinstance(name, str) for name in result):
        raise TypeError(f"{compute.__qualname__} returned {type(result).__name__}; a task returns a dict of arrays")
    arrays = {name: np.asarray(result[name], order="C") for name in sorted(result)}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{compute.__qualname__} returned {name!r} as objects; a task returns arrays of numbers")
    return arrays


_pins = 0
_pinning = threading.Lock()
_limits: threadpool_limits | None = None


@contextmanager
def _one_thread() -> Iterator[None]:
    """BLAS and numba with one thread each, as before at the end.

    The limit of BLAS is one for the whole process. Where tasks run in threads, the first sets it and the last lifts it.
    """
    global _pins, _limits
    with _pinning:
        _pins += 1
        if _pins == 1:
            _limits = threadpool_limits(1)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)
        with _pinning:
            _pins -= 1
            if _pins == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


# Keys and files


def _feed(digest: Any, value: object, where: str) -> None:
    """Feed a value to a hash so that different values never give the same bytes: kind, size, content."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"{where} is an array of objects; tasks take arrays of numbers")
        described = f"{np.lib.format.dtype_to_descr(value.dtype)!r}{value.shape}".encode()
        digest.update(b"a" + struct.pack("<q", len(described)) + described)
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8) if value.size else b"")
    elif isinstance(value, list | tuple):
        digest.update(b"l" + struct.pack("<q", len(value)))
        for item in value:
            _feed(digest, item, where)
    elif isinstance(value, dict):
        digest.update(b"d" + struct.pack("<q", len(value)))
        for name in sorted(value):
            _feed(digest, name, where)
            _feed(digest, value[name], where)
    elif value is None or isinstance(value, bool | int | float | str):
        # repr() of a float is exact.
        content = f"{type(value).__name__} {value!r}".encode()
        digest.update(b"p" + struct.pack("<q", len(content)) + content)
    else:
        raise TypeError(f"{where} is a {type(value).__name__}; tasks take arrays and plain values")


def _save(path: Path, key: str, result: Result) -> None:
    """Write a result as .npz with equal bytes for equal content, which `numpy.savez` does not promise."""
    # Somebody on another machine may take our temporary file for a stale one, see clear_stale.
    for last in (False, False, True):
        try:
            with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.comment = key.encode()
                for name, array in result.items():
                    member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                    member.create_system = 3
                    with archive.open(member, "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, array, allow_pickle=False)
            return
        except FileNotFoundError:
            if last or not path.parent.is_dir():
                raise


def _load(path: Path, key: str) -> Result | None:
    """The result in a file, or None where there is none, or a damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.comment != key.encode():
                return None
            # Reading a member whole checks its sum before anything in it is believed.
            return {
                member.filename.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(archive.read(member)), allow_pickle=False
                )
                for member in archive.infolist()
            }
    except Exception:
        # One flipped bit can make zipfile look for a password, for LZMA or for a terabyte of memory.
        return None


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        # There a signal would end the process; files that it holds open cannot be removed anyway.
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
