"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster.

All three have the interface of `concurrent.futures`, and all give the same results, byte for byte.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from psmt.errors import CacheWarning
from psmt.pipeline.dask_cluster import ClusterError, ClusterExecutor
from psmt.utils.validation import check_count

__all__ = [
    "ClusterError",
    "ClusterExecutor",
    "ProcessExecutor",
    "SerialExecutor",
    "cpu_count",
    "open_executor",
    "worker_count",
]

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
"""What numerical libraries read, once, when they are first imported."""

_ATTEMPTS = 2
"""How often a call is tried when the process that it runs in dies."""


@contextmanager
def open_executor(workers: int | None = None, cluster: str | None = None) -> Iterator[Executor]:
    """Executor for `run_tasks`, closed at the end; leaving by an exception stops what is still running.

    Parameters
    ----------
    workers : int, optional
        Processes on this machine, one thread each; None is one per CPU. With 1, all runs in this process.
    cluster : str, optional
        Address of a Dask scheduler, such as ``tcp://host:8786``, whose workers are used instead.

    Raises
    ------
    ClusterError
        When dask.distributed is missing, the scheduler does not answer, or it has no workers.

    Examples
    --------
    >>> with open_executor(workers=1) as executor:
    ...     executor.submit(max, 2, 3).result()
    3
    """
    executor: SerialExecutor | ProcessExecutor | ClusterExecutor
    if cluster is not None:
        if workers is not None:
            raise ValueError(
                f"workers={workers} has no meaning with cluster={cluster!r}, which has its own; leave out one of them"
            )
        executor = ClusterExecutor(cluster)
    elif (count := cpu_count() if workers is None else check_count("workers", workers)) == 1:
        executor = SerialExecutor()
    else:
        executor = ProcessExecutor(count)
    try:
        yield executor
    except BaseException:
        executor.stop()
        raise
    executor.shutdown()


def worker_count(executor: Executor) -> int:
    """How many calls an executor runs at once; for one that does not tell, the CPUs of this machine."""
    workers = getattr(executor, "workers", None) or getattr(executor, "_max_workers", None)
    return int(workers) if workers else cpu_count()


class SerialExecutor(Executor):
    """Runs each call in this process, at once."""

    workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Finished future of the call."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def stop(self) -> None:
        """Nothing runs on."""


class ProcessExecutor(Executor):
    """Runs calls in processes of this machine, and runs those again whose process died.

    A process that dies (killed, out of memory) breaks the whole pool of `concurrent.futures`. Here the calls that were
    under way move to a fresh pool, once.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._closed = False
        self._context = _PinnedContext()
        self._pool = self._fresh_pool()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Future of the call."""
        if self._closed:
            raise RuntimeError("the executor is closed; open a new one")
        outer: Future[Any] = Future()
        self._start(outer, partial(fn, *args, **kwargs), 1)
        return outer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let what was submitted end, and close."""
        self._closed = True
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def stop(self) -> None:
        """Close at once: what is running is lost."""
        self._closed = True
        self._context.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _fresh_pool(self) -> ProcessPoolExecutor:
        with _out_of_reach():  # of the process that multiprocessing keeps its books by, and starts here
            return ProcessPoolExecutor(self.workers, mp_context=self._context, initializer=_settle_in)

    def _start(self, outer: Future[Any], call: Callable[[], Any], attempt: int) -> None:
        while True:
            pool = self._pool
            try:
                inner = pool.submit(call)
                break
            except BrokenProcessPool:
                self._replace(pool)
        inner.add_done_callback(partial(self._finish, outer, call, attempt, pool))

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        # The lock is never held while a pool is called, which may be calling us from under a lock of its own.
        with self._lock:
            if self._pool is broken:
                self._pool = self._fresh_pool()

    def _finish(
        self,
        outer: Future[Any],
        call: Callable[[], Any],
        attempt: int,
        pool: ProcessPoolExecutor,
        inner: Future[Any],
    ) -> None:
        if inner.cancelled():
            outer.cancel()
            outer.set_running_or_notify_cancel()
            return
        error = inner.exception()
        if isinstance(error, BrokenProcessPool):
            if attempt < _ATTEMPTS and not self._closed and not outer.cancelled():
                self._replace(pool)
                self._start(outer, call, attempt + 1)
                return
            error = BrokenProcessPool(
                f"its worker process died in {attempt} of {_ATTEMPTS} attempts (killed, or out of memory?); "
                f"use fewer workers than {self.workers}, or smaller tasks"
            )
        if not outer.set_running_or_notify_cancel():
            return
        if error is None:
            outer.set_result(inner.result())
        else:
            outer.set_exception(error)


@contextmanager
def _out_of_reach() -> Iterator[None]:
    """Processes that are started meanwhile do not get what a terminal sends to all at once, from their first moment on.

    Ctrl-C, and the hang-up of a terminal that is closed, are for this process, which ends its children.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _PinnedProcess(SpawnProcess):
    """Process whose numerical libraries find one thread each when they are imported."""

    _starting = threading.Lock()

    def start(self) -> None:
        # A child inherits the environment at its start; an initializer would come after the imports.
        with self._starting:
            before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
            os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
            try:
                with _out_of_reach():
                    super().start()
            finally:
                for name, value in before.items():
                    if value is None:
                        del os.environ[name]
                    else:
                        os.environ[name] = value


class _PinnedContext(SpawnContext):
    """Fresh interpreters (no fork: threads of BLAS and numba do not survive one), remembered to be stopped."""

    def __init__(self) -> None:
        super().__init__()
        self._started: list[SpawnProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]
        process = _PinnedProcess(*args, **kwargs)
        self._started.append(process)
        return process

    def terminate(self) -> None:
        for process in self._started:
            if process.pid is not None and process.is_alive():
                process.terminate()


def _settle_in() -> None:
    """Make a worker leave Ctrl-C to its parent, as well as what was said once, and follow it when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", category=CacheWarning)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    # A parent that was killed says no farewell, and workers would wait for their next call for ever.
    wait_for([sentinel])
    os._exit(1)


def cpu_count() -> int:
    """How many CPUs this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
