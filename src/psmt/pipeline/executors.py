"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster.

All three have the interface of `concurrent.futures`, and all give the same results, byte for byte.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor

from psmt.errors import CacheWarning
from psmt.pipeline.dask_cluster import ClusterError, ClusterExecutor
from psmt.utils.constraints import check_count

__all__ = ["ClusterError", "ProcessExecutor", "SerialExecutor", "cpu_count", "open_executor", "worker_count"]

_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP", "NUMBA")}
"""Environment that numerical libraries read once, when they are first imported."""


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
    """How many calls an executor runs at once; the CPUs of this machine where it does not say."""
    workers = getattr(executor, "workers", None) or getattr(executor, "_max_workers", None)
    return int(workers) if workers else int(cpu_count())


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
        """Do nothing: no call is still running."""


class ProcessExecutor(Executor):
    """Runs calls in processes of this machine, each with one thread, by a pool of loky.

    A worker that dies (killed, out of memory) breaks the pool: all calls under way end with `BrokenProcessPool`. The
    next call starts a new pool, and `run_tasks` submits the others again.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        # Of a worker that loky replaces because it has grown, and of a missing pgrep, by which it looks for children.
        warnings.filterwarnings("ignore", "A worker stopped|Failed to kill", UserWarning)
        self._pool = self._new_pool()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Future of the call."""
        with _terminal_signals_blocked():
            try:
                future: Future[Any] = self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self._pool = self._new_pool()
                future = self._pool.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the submitted calls end, or stop them with `cancel_futures`; then close."""
        self._pool.shutdown(wait=wait, kill_workers=cancel_futures)

    def stop(self) -> None:
        """Close at once: what is running is lost."""
        self.shutdown(cancel_futures=True)

    def _new_pool(self) -> Any:
        with _terminal_signals_blocked():
            # Now, because it unblocks signals when it starts.
            resource_tracker.ensure_running()
            return ProcessPoolExecutor(
                self.workers, initializer=_prepare_worker, initargs=(os.getpid(),), env=_ONE_THREAD
            )


@contextmanager
def _terminal_signals_blocked() -> Iterator[None]:
    """Block what a terminal sends to all its processes, for those that are started meanwhile too.

    Ctrl-C, and the hang-up of a closed terminal, are for this process, which ends its workers.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker(parent: int) -> None:
    """Leave Ctrl-C and warnings about the cache to the parent process, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", category=CacheWarning)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    # Workers of loky would wait for their next call for ever after their parent was killed.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
