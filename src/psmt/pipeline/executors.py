"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster.

All three executors have the interface of `concurrent.futures` and give the same results, byte for byte.
"""

import logging
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend import resource_tracker

from psmt.errors import CacheWarning, PSMTError
from psmt.utils.constraints import check_count
from psmt.utils.files import shown

_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP", "NUMBA")}
"""Environment variables that numerical libraries read once, when they are first imported."""

_CONNECT_SECONDS = 5.0  # seconds that a scheduler may take to answer one request

_WORKER_SECONDS = 20.0
"""Seconds that a scheduler may be without any worker. A Dask nanny restarts a worker in a few seconds."""

_SILENT_SECONDS = 15.0  # seconds that a scheduler may give no answer while tasks are running

_WATCH_SECONDS = 1.0  # seconds between two requests

_MOST_DEATHS = 3
"""Number of workers that may die of one task. psmt counts them, because the limit of Dask (one more by default) is a
setting of the whole scheduler, which others may use too."""

_CLOSE_SECONDS = 3.0  # seconds that disconnecting may take, because a dead scheduler does not answer

_LOGGERS = ("distributed", "distributed.client", "distributed.core", "distributed.comm", "tornado", "asyncio")
"""Loggers that would print long tracebacks for what a `ClusterError` says in one sentence."""


@contextmanager
def open_executor(workers: int | None = None, cluster: str | None = None) -> Iterator[Executor]:
    """Yield an executor for `run_tasks`, and close it at the end. After an exception, running calls are stopped.

    Parameters
    ----------
    workers : int, optional
        Number of processes on this machine, with one thread each. None starts one per CPU. With 1, everything runs in
        this process.
    cluster : str, optional
        Address of a Dask scheduler, such as ``tcp://host:8786``. Its workers are used instead of processes.

    Raises
    ------
    ClusterError
        If dask.distributed is missing, the scheduler does not answer, or it has no workers.

    Examples
    --------
    >>> with open_executor(workers=1) as executor:
    ...     executor.submit(max, 2, 3).result()
    3
    """
    executor: Executor
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
        executor.shutdown(cancel_futures=True)
        raise
    executor.shutdown()


def worker_count(executor: Executor) -> int:
    """Return the number of calls that an executor runs in parallel, or the number of CPUs if it is not known."""
    workers = getattr(executor, "workers", None) or getattr(executor, "_max_workers", None)
    return int(workers) if workers else int(cpu_count())


class SerialExecutor(Executor):
    """Executor that runs each call immediately, in this process."""

    workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the call and return its future, which is already finished."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class ProcessExecutor(Executor):
    """Executor that runs calls in a loky pool of processes on this machine, each with one thread.

    If a worker dies (killed, out of memory), the pool breaks, and all running calls fail with `BrokenProcessPool`. The
    next call starts a new pool, and `run_tasks` submits the failed calls again.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        # Ignore warnings about a worker that loky replaces because it has grown, and about a missing pgrep.
        warnings.filterwarnings("ignore", "A worker stopped|Failed to kill", UserWarning)
        self._pool = self._new_pool()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future of the call."""
        with _terminal_signals_blocked():
            try:
                future: Future[Any] = self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self._pool = self._new_pool()
                future = self._pool.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the submitted calls, or stop them if `cancel_futures` is True. Then close the pool."""
        self._pool.shutdown(wait=wait, kill_workers=cancel_futures)

    def _new_pool(self) -> Any:
        _start_resource_trackers()
        with _terminal_signals_blocked():
            return ProcessPoolExecutor(
                self.workers, initializer=_prepare_worker, initargs=(os.getpid(),), env=_ONE_THREAD
            )


def _start_resource_trackers() -> None:
    """Start the processes of loky and multiprocessing that remove semaphores.

    They start before the workers, because starting them unblocks signals. After Ctrl-C they may find semaphores of
    stopped workers, which they remove without a warning.
    """
    option = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(option)  # the new processes get these options as arguments
    try:
        resource_tracker.ensure_running()
        if sys.platform != "win32":
            multiprocessing.resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(option)


@contextmanager
def _terminal_signals_blocked() -> Iterator[None]:
    """Context that blocks Ctrl-C and hang-up, also in workers that start in it. This process ends the workers."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker(parent: int) -> None:
    """Set up a worker process: ignore Ctrl-C and each `CacheWarning`, and exit when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", category=CacheWarning)

    def end_with_parent() -> None:
        # A loky worker would wait forever for its next call after its parent was killed.
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


class ClusterError(PSMTError, OSError):
    """A cluster cannot be used: Dask is not installed, or the scheduler or its workers are missing or lost."""


class ClusterExecutor(Executor):
    """Executor that runs calls on the workers of a Dask cluster. Dask repeats calls whose worker died.

    Dask waits forever for a lost scheduler, and for workers that never return. So `run_tasks` calls `lost_calls` while
    it waits. This method asks the scheduler every second, and gives up after some time.
    """

    shares_disk = False
    """False, because workers may be on other machines: a `DiskSeries` is sent as an array, inside the task."""

    def __init__(self, address: str) -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            raise ClusterError(
                f"cluster={address!r} needs dask.distributed, which is not installed; pip install 'psmt[cluster]'"
            ) from error
        self._address = address
        self._levels = {name: logging.getLogger(name).level for name in _LOGGERS}
        _set_levels(dict.fromkeys(_LOGGERS, logging.CRITICAL + 1))
        try:
            self._client = self._connect(distributed.Client)
        except BaseException:
            _set_levels(self._levels)
            raise
        # Inputs are sent inside the task, which is therefore large, so that Dask can send it again when a worker dies.
        self._config: Any = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
        # Not pure, because tasks have unique names, and Dask need not hash their inputs again.
        self._executor = self._client.get_executor(pure=False)
        self._keys: WeakKeyDictionary[Future[Any], str] = WeakKeyDictionary()
        """Name of each call, by which the scheduler knows it."""
        self._asked = self._answered = self._worked = monotonic()
        self._is_lost = False

    def _connect(self, client_class: Any) -> Any:
        address = self._address
        # Made before it is initialised, because Dask's finalizer waits for a client whose __init__ has failed.
        client = client_class.__new__(client_class)
        failed: list[Exception] = []

        def connect() -> None:
            try:
                client.__init__(address, timeout=_CONNECT_SECONDS, set_as_default=False)
            except Exception as error:  # Dask raises various errors for servers that are not schedulers
                failed.append(error)

        # In a thread, because Dask waits forever for a server that accepts a connection and says nothing.
        connecting = threading.Thread(target=connect, daemon=True)
        connecting.start()
        connecting.join(2 * _CONNECT_SECONDS)
        if failed or connecting.is_alive():
            client.status = "closed"
            raise ClusterError(
                f"no Dask scheduler answers at cluster={shown(address)!r} within {_CONNECT_SECONDS:.0f} s; start one "
                "with 'dask scheduler' and give the address that it prints, such as tcp://host:8786"
            ) from (failed[0] if failed else None)
        try:
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
            self._n_threads: int = sum(client.nthreads().values())
        except BaseException as error:
            client.close()
            if not isinstance(error, TimeoutError):
                raise
            raise self._no_workers() from error
        return client

    @property
    def workers(self) -> int:
        """Number of threads of all workers, according to the last answer of the scheduler."""
        return max(1, self._n_threads)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future of the call."""
        key = f"psmt-{uuid4().hex}"
        try:
            future: Future[Any] = self._executor.submit(fn, *args, key=key, **kwargs)
        except Exception as error:
            raise self._no_scheduler() from error
        self._keys[future] = key
        self._answered = self._worked = monotonic()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect from the cluster, which keeps running. If `cancel_futures` is True, do not wait for calls."""
        if wait and not cancel_futures and not self._is_lost:
            self._executor.shutdown(wait=True)

        def close() -> None:
            self._executor.shutdown(wait=False)
            self._client.close(timeout=_CLOSE_SECONDS)

        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
        self._config.__exit__(None, None, None)
        if not closing.is_alive():
            _set_levels(self._levels)

    def lost_calls(self, futures: Iterable[Future[Any]]) -> dict[Future[Any], ClusterError]:
        """Return the calls that will never end, each with the error to raise.

        All calls are lost if the scheduler or the last worker is lost. A single call is lost if it has killed too many
        workers. The scheduler is asked at most once a second. Between two requests, the result is empty.
        """
        if monotonic() - self._asked < _WATCH_SECONDS:
            return {}
        calls = {self._keys[future]: future for future in futures}
        keys = list(calls)

        def state(dask_scheduler: Any) -> tuple[int, dict[str, int]]:  # sent by value: the scheduler need not have psmt
            tasks = dask_scheduler.tasks
            deaths = {key: tasks[key].suspicious for key in keys if key in tasks}
            return sum(worker.nthreads for worker in dask_scheduler.workers.values()), deaths

        deaths: dict[str, int] = {}
        # Dask raises a different error for each state of a connection.
        with suppress(Exception):
            self._n_threads, deaths = self._client.run_on_scheduler(state, callback_timeout=_CONNECT_SECONDS)
            self._answered = monotonic()
            if self._n_threads:
                self._worked = self._answered
        self._asked = now = monotonic()
        silent = now - self._answered > _SILENT_SECONDS
        if silent or now - self._worked > _WORKER_SECONDS:
            self._is_lost = True
            return dict.fromkeys(calls.values(), self._no_scheduler() if silent else self._no_workers())
        return {calls[key]: self._deadly(times) for key, times in deaths.items() if times >= _MOST_DEATHS}

    def explain(self, error: Exception) -> Exception:
        """Return the error of a call, or a `ClusterError` if the cluster ended the call."""
        if type(error).__name__ == "KilledWorker":  # the scheduler allows fewer deaths than `_MOST_DEATHS`
            return self._deadly(getattr(error, "allowed_failures", 2) + 1)
        return self._no_scheduler() if isinstance(error, CancelledError) else error

    def _deadly(self, times: int) -> ClusterError:
        return ClusterError(
            f"its worker died {times} times (killed, or out of memory?); give the workers of "
            f"cluster={self._address!r} more memory, or make the tasks smaller"
        )

    def _no_scheduler(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at cluster={self._address!r} is gone, or does not answer any more; start it and its "
            "workers again, and give the same command"
        )

    def _no_workers(self) -> ClusterError:
        return ClusterError(
            f"the scheduler at cluster={self._address!r} has had no worker for {_WORKER_SECONDS:.0f} s; "
            f"start some with 'dask worker {self._address} --nthreads 1', and give the same command"
        )


def _set_levels(levels: dict[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
