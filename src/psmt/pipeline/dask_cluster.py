"""Tasks on a Dask cluster, and how it is told when the cluster fails.

Dask waits: for a scheduler that is gone, and for workers that never come back. So somebody watches, asks the scheduler
every second who is there, and ends what is under way with a sentence when nobody has answered, or worked, for a while.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from time import monotonic
from typing import Any
from uuid import uuid4

from psmt.errors import PSMTError

__all__ = ["ClusterError", "ClusterExecutor"]

_CONNECT_SECONDS = 5.0
"""How long a scheduler may take to answer at first."""

_WORKER_SECONDS = 20.0
"""How long a scheduler may be without any worker. A nanny starts one anew in a few seconds."""

_SILENT_SECONDS = 15.0
"""How long a scheduler may give no answer while tasks are under way."""

_WATCH_SECONDS = 1.0
"""From one question to the next."""

_MOST_DEATHS = 3
"""Workers that a task may take with it. Dask has a number of its own, by default one more, for the whole scheduler,
which others may use too; so we count for ourselves."""

_FAREWELL_SECONDS = 3.0
"""How long leaving may take: a scheduler that is gone says no farewell."""

_LOGGERS = ("distributed", "distributed.client", "distributed.core", "distributed.comm", "tornado", "asyncio")
"""Who would report at length, with tracebacks, what is told in a sentence here."""


class ClusterError(PSMTError, OSError):
    """A cluster that cannot be used: not installed, not there, without workers, or lost."""


class ClusterExecutor(Executor):
    """Runs calls on the workers of a Dask cluster, which by itself runs those again whose worker died.

    Raises
    ------
    ClusterError
        When dask.distributed is missing, the scheduler does not answer, or it has no workers. Later the same ends the
        calls that are under way.
    """

    shares_disk = False
    """Workers may be on other machines: a stored series travels as an array, inside the task."""

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
        self._set_levels(dict.fromkeys(_LOGGERS, logging.CRITICAL + 1))
        try:
            self._client = self._connect(distributed.Client)
        except BaseException:
            self._set_levels(self._levels)
            raise
        # Inputs travel inside the task, so that it can be sent again when a worker dies. Dask would warn of their size.
        self._quiet: Any = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
        # Not pure: tasks have names of their own, and Dask need not hash their inputs once more.
        self._executor = self._client.get_executor(pure=False)
        self._lock = threading.Lock()
        self._under_way: dict[Future[Any], str] = {}
        """What was asked for, and its name on the scheduler."""
        self._failure: ClusterError | None = None
        self._leaving = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def workers(self) -> int:
        """Threads of all workers that were there when the scheduler last told."""
        return max(1, self._n_threads)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Future of the call."""
        outer: Future[Any] = Future()
        key = f"psmt-{uuid4().hex}"
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._under_way[outer] = key
        try:
            inner: Future[Any] = self._executor.submit(fn, *args, key=key, **kwargs)
        except Exception as error:
            with self._lock:
                self._under_way.pop(outer, None)
            raise self._failure or self._lost() from error
        # Whoever has ended it, by cancelling or by an error, wants no more of it.
        outer.add_done_callback(lambda _: inner.cancel())
        inner.add_done_callback(partial(self._finish, outer))
        return outer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which goes on."""
        if wait and not cancel_futures and self._failure is None:
            self._executor.shutdown(wait=True)
        self._leaving.set()
        leaving = threading.Thread(target=self._leave, daemon=True)
        leaving.start()
        leaving.join(_FAREWELL_SECONDS)
        self._quiet.__exit__(None, None, None)
        if not leaving.is_alive():
            self._set_levels(self._levels)

    def stop(self) -> None:
        """Leave at once: what has not begun is cancelled."""
        self.shutdown(wait=False)

    def _connect(self, client_class: Any) -> Any:  # which is not typed
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
            raise self._deserted() from error
        return client

    def _leave(self) -> None:
        self._executor.shutdown(wait=False)
        self._client.close(timeout=_FAREWELL_SECONDS)

    def _finish(self, outer: Future[Any], inner: Future[Any]) -> None:
        error: BaseException | None = self._lost() if inner.cancelled() else inner.exception()
        if type(error).__name__ == "KilledWorker":  # a scheduler that allows fewer deaths than we do
            error = self._deadly(getattr(error, "allowed_failures", 2) + 1)
        with self._lock:
            self._under_way.pop(outer, None)
        if outer.done() or not outer.set_running_or_notify_cancel():
            return
        if error is None:
            outer.set_result(inner.result())
        else:
            outer.set_exception(error)

    # Watching

    def _watch(self) -> None:
        """Ask who is there, until somebody leaves; end what is under way when nobody is."""
        answered = worked = monotonic()
        while not self._leaving.wait(_WATCH_SECONDS):
            found = self._ask()
            now = monotonic()
            if found is not None:
                answered, self._n_threads = now, sum(found.values())
                if self._under_way:  # a worker may come and die between two looks: only the scheduler counts all
                    self._end_deadly()
            if found or not self._under_way:
                worked = now
            silent, deserted = now - answered > _SILENT_SECONDS, now - worked > _WORKER_SECONDS
            if silent or deserted:
                self._fail(self._lost() if silent else self._deserted())
                return

    def _ask(self) -> dict[str, int] | None:
        """Threads of each worker, by its address; None where the scheduler does not answer."""
        try:
            return dict(self._client.sync(self._client.scheduler.ncores, callback_timeout=_CONNECT_SECONDS))
        except Exception:
            # Dask has errors of its own for each state that a connection may be in.
            return None

    def _count_deaths(self, keys: list[str]) -> dict[str, int]:
        """How many workers died while they had each call, by its name; nothing where the scheduler does not tell."""

        def count(dask_scheduler: Any) -> dict[str, int]:  # inside: it travels by value, the scheduler has no psmt
            tasks = dask_scheduler.tasks
            return {key: tasks[key].suspicious for key in keys if key in tasks}

        try:
            return dict(self._client.run_on_scheduler(count))
        except Exception:
            return {}

    def _end_deadly(self) -> None:
        """End the calls that too many workers have died of: no other worker should."""
        with self._lock:
            under_way = dict(self._under_way)
        deaths = self._count_deaths(list(under_way.values()))
        for outer, key in under_way.items():
            if deaths.get(key, 0) >= _MOST_DEATHS:
                with self._lock:
                    self._under_way.pop(outer, None)
                if outer.set_running_or_notify_cancel():
                    outer.set_exception(self._deadly(deaths[key]))

    def _fail(self, error: ClusterError) -> None:
        with self._lock:
            self._failure = error
            under_way, self._under_way = self._under_way, {}
        for outer in under_way:
            if outer.set_running_or_notify_cancel():
                outer.set_exception(error)

    def _deadly(self, times: int) -> ClusterError:
        return ClusterError(
            f"its worker died {times} times over (killed, or out of memory?); give the workers of "
            f"cluster={self._address!r} more memory, or make the tasks smaller"
        )

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at cluster={self._address!r} is gone, or does not answer any more; start it and its "
            "workers again, and give the same command"
        )

    def _deserted(self) -> ClusterError:
        return ClusterError(
            f"the scheduler at cluster={self._address!r} has had no worker for {_WORKER_SECONDS:.0f} s; "
            f"start some with 'dask worker {self._address} --nthreads 1', and give the same command"
        )

    @staticmethod
    def _set_levels(levels: dict[str, int]) -> None:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
