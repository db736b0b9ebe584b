"""Work that is shared out to threads: kernels, BLAS and FFTs release the GIL, so plain threads serve.

Numba's own threads would add to the time that compiling takes, and not every threading layer of numba may be entered
from two threads at once, as two models in one process do.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from numba import get_num_threads

from psmt.utils.threads import one_blas_thread

T = TypeVar("T")


class _Job:
    """Chunks of one piece of work, which whoever is idle takes from."""

    def __init__(self, work: Callable[[slice], None], chunks: deque[slice]) -> None:
        self.work, self.chunks = work, chunks
        self.under_way = 0
        self.failure: BaseException | None = None


class _Crew:
    """Threads that share what one of them was asked to do, and all that this is shared out into in turn."""

    def __init__(self) -> None:
        self.jobs: list[_Job] = []
        # Nobody is woken without a reason: to wake a thread takes as long as a small chunk.
        self.lock = threading.Lock()
        self.more, self.done = threading.Condition(self.lock), threading.Condition(self.lock)
        self.over = False

    def do(self, job: _Job) -> None:
        """Take chunks of a job until there are none left, and wait for those that others have taken."""
        with self.lock:
            self.jobs.append(job)
            self.more.notify(len(job.chunks) - 1)
        while self._do_next(job):
            pass
        with self.lock:
            self.done.wait_for(lambda: not job.under_way)
            self.jobs.remove(job)
        if job.failure is not None:
            raise job.failure

    def help_out(self) -> None:
        """Take chunks of any job, the latest first, until all is done."""
        _here.crew = self
        try:
            with one_blas_thread():
                while True:
                    with self.lock:
                        self.more.wait_for(lambda: self.over or any(job.chunks for job in self.jobs))
                        if self.over:
                            return
                        job = next(job for job in reversed(self.jobs) if job.chunks)
                    self._do_next(job)
        finally:
            _here.crew = None

    def end(self) -> None:
        """Send everybody home."""
        with self.lock:
            self.over = True
            self.more.notify_all()

    def _do_next(self, job: _Job) -> bool:
        """Do the next chunk of a job; whether there was one."""
        with self.lock:
            if not job.chunks:
                return False
            part = job.chunks.popleft()
            job.under_way += 1
        try:
            job.work(part)
        except BaseException as error:  # whoever asked for it is told
            job.failure = job.failure or error
            job.chunks.clear()
        finally:
            with self.lock:
                job.under_way -= 1
                if not job.under_way and not job.chunks:
                    self.done.notify_all()
        return True


class _Here(threading.local):
    """What a thread knows of those it shares its work with."""

    crew: _Crew | None = None


_here = _Here()


def in_threads(work: Callable[[slice], None], size: int, chunk: int) -> None:
    """Call `work` with each chunk of `size` things, in this thread and, as far as numba may have them, others.

    Chunks do not depend on the number of threads, nor does, so, any result. Whoever comes first takes the next: a
    thread that is held up by other programs holds up nobody else. Work may share out in turn what it does: whoever is
    idle by then, or later, helps. BLAS has one thread in each: its own would compete with ours for the cores.

    Parameters
    ----------
    work : callable
        Called with slices of at most `chunk` things.
    size : int
        Of all that there is to do.
    chunk : int
        Of what is done in one call.
    """
    chunks = deque(slice(first, min(first + chunk, size)) for first in range(0, size, chunk))
    n_threads = get_num_threads()
    with one_blas_thread():
        if len(chunks) < 2 or n_threads < 2:
            for part in chunks:
                work(part)
        elif _here.crew is not None:
            _here.crew.do(_Job(work, chunks))
        else:
            crew = _here.crew = _Crew()
            others = [_pool(os.getpid()).submit(crew.help_out) for _ in range(n_threads - 1)]
            try:
                crew.do(_Job(work, chunks))
            finally:
                _here.crew = None
                crew.end()
                for other in others:
                    # Nobody is at work any more when this returns; who has not begun need not.
                    if not other.cancel():
                        other.result()


def together(*works: Callable[[], Any]) -> list[Any]:
    """What each of several independent pieces of work returns, done side by side; the longest should come first."""
    results: list[Any] = [None] * len(works)

    def do(which: slice) -> None:
        results[which.start] = works[which.start]()

    in_threads(do, len(works), 1)
    return results


def in_background(work: Callable[[], T]) -> Future[T]:
    """What the work will return, done in another thread meanwhile, with one thread of BLAS."""

    def limited() -> T:
        with one_blas_thread():
            return work()

    return _pool(os.getpid()).submit(limited)


@cache
def _pool(_process: int) -> ThreadPoolExecutor:
    """Threads of a process that wait for work: to start new ones takes longer than most of it. A fork has none."""
    return ThreadPoolExecutor(thread_name_prefix="psmt-kernels")
