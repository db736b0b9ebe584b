"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster.

All three have the interface of `concurrent.futures`, and all give the same results, byte for byte.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from time import monotonic
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor

from psmt.errors import CacheWarning, PSMTError
from psmt.utils.constraints import check_count

_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP", "NUMBA")}
"""Environment that numerical libraries read once, when they are first imported."""

_CONNECT_SECONDS = 5.0
"""How long a scheduler may take to answer one question."""

_WORKER_SECONDS = 20.0
"""How long a scheduler may be without any worker. A nanny restarts one in a few seconds."""

_SILENT_SECONDS = 15.0
"""How long a scheduler may give no answer while tasks are under way."""

_WATCH_SECONDS = 1.0
"""Time between two questions."""

_MOST_DEATHS = 3
"""Workers that may die of one task. Dask's own limit, by default one more, is for the whole scheduler, which others may
use too; so we count ourselves."""

_CLOSE_SECONDS = 3.0
"""How long disconnecting may take, as a scheduler that is gone does not answer."""

_LOGGERS = ("distributed", "distributed.client", "distributed.core", "distributed.comm", "tornado", "asyncio")
"""Loggers that would report at length, with tracebacks, what a `ClusterError` says in a sentence."""


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


# Dask


class ClusterError(PSMTError, OSError):
    """A cluster that cannot be used: not installed, not there, without workers, or lost."""


class ClusterExecutor(Executor):
    """Runs calls on the workers of a Dask cluster, which itself repeats those whose worker died.

    Dask waits for ever for a scheduler that is gone, and for workers that never come back. So `run_tasks` calls
    `lost_calls` while it waits, which asks the scheduler every second and gives up after a while.

    Raises
    ------
    ClusterError
        When dask.distributed is missing, the scheduler does not answer, or it has no workers.
    """

    shares_disk = False
    """Workers may be on other machines: a `DiskSeries` is sent as an array, inside the task."""

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
        # Inputs are sent inside the task, so that Dask can send it again when a worker dies: it is large.
        self._config: Any = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
        # Not pure: tasks have names of their own, and Dask need not hash their inputs once more.
        self._executor = self._client.get_executor(pure=False)
        self._keys: WeakKeyDictionary[Future[Any], str] = WeakKeyDictionary()
        """Name of each call on the scheduler."""
        self._asked = self._answered = self._worked = monotonic()
        self._is_lost = False

    def _connect(self, client_class: Any) -> Any:
        address = self._address
        try:
            client = client_class(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at cluster={address!r} within {_CONNECT_SECONDS:.0f} s; start one with "
                "'dask scheduler' and give the address that it prints, such as tcp://host:8786"
            ) from error
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
        """Threads of all workers, when the scheduler was last asked."""
        return max(1, self._n_threads)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Future of the call."""
        key = f"psmt-{uuid4().hex}"
        try:
            future: Future[Any] = self._executor.submit(fn, *args, key=key, **kwargs)
        except Exception as error:
            raise self._no_scheduler() from error
        self._keys[future] = key
        self._answered = self._worked = monotonic()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect from the cluster, which goes on; with `cancel_futures` at once."""
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
        """Calls that will never end, each with the error to raise; empty less than a second after the last answer.

        All are lost with the scheduler or the last worker; a call also after too many workers have died of it.
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
        # Dask has its own errors for each state that a connection may be in.
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
        """The error of a call, or a `ClusterError` if the cluster has ended the call."""
        if type(error).__name__ == "KilledWorker":  # by a scheduler that allows fewer deaths than we do
            return self._deadly(getattr(error, "allowed_failures", 2) + 1)
        return self._no_scheduler() if isinstance(error, CancelledError) else error

    def _deadly(self, times: int) -> ClusterError:
        return ClusterError(
            f"its worker died {times} times over (killed, or out of memory?); give the workers of "
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
