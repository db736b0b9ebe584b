"""Work in threads: kernels, BLAS and FFTs release the GIL, so plain Python threads are enough.

Numba's own threads would make compiling slower, and not every threading layer of numba may be entered from two threads
at once, as two models in one process would do.
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
    """Chunks of one piece of work, taken by any idle thread."""

    def __init__(self, work: Callable[[slice], None], chunks: deque[slice]) -> None:
        self.work, self.chunks = work, chunks
        self.under_way = 0
        self.failure: BaseException | None = None


class _Crew:
    """Threads that share the work of one call of `in_threads`, and of all calls inside it."""

    def __init__(self) -> None:
        self.jobs: list[_Job] = []
        # Two conditions, because waking a thread without need takes as long as a small chunk.
        self.lock = threading.Lock()
        self.more, self.done = threading.Condition(self.lock), threading.Condition(self.lock)
        self.over = False

    def do(self, job: _Job) -> None:
        """Do chunks of a job until none are left, and wait for those that other threads have taken."""
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
        """Do chunks of any job, the latest first, until `end` is called."""
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
        """Tell all threads to return."""
        with self.lock:
            self.over = True
            self.more.notify_all()

    def _do_next(self, job: _Job) -> bool:
        """Do the next chunk of a job; return whether there was one."""
        with self.lock:
            if not job.chunks:
                return False
            part = job.chunks.popleft()
            job.under_way += 1
        try:
            job.work(part)
        except BaseException as error:  # raised again in the thread that called
            job.failure = job.failure or error
            job.chunks.clear()
        finally:
            with self.lock:
                job.under_way -= 1
                if not job.under_way and not job.chunks:
                    self.done.notify_all()
        return True


class _Here(threading.local):
    crew: _Crew | None = None  # the crew that this thread belongs to


_here = _Here()


def in_threads(work: Callable[[slice], None], size: int, chunk: int) -> None:
    """Call `work` with slices of at most `chunk` out of `size` items, in as many threads as numba may use.

    The slices, and so the results, do not depend on the number of threads. An idle thread takes the next slice, so a
    thread that other programs delay does not delay the rest. Work may call `in_threads` itself: idle threads then help.
    BLAS is limited to one thread in each, because its threads would compete with ours for the cores.
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
                    # All threads have ended when this returns; those that have not started are cancelled.
                    if not other.cancel():
                        other.result()


def together(*works: Callable[[], Any]) -> list[Any]:
    """See `FrameKernels.together`."""
    results: list[Any] = [None] * len(works)

    def do(which: slice) -> None:
        results[which.start] = works[which.start]()

    in_threads(do, len(works), 1)
    return results


def in_background(work: Callable[[], T]) -> Future[T]:
    """Start the work in another thread, with one BLAS thread, and return its future."""

    def limited() -> T:
        with one_blas_thread():
            return work()

    return _pool(os.getpid()).submit(limited)


@cache
def _pool(_process: int) -> ThreadPoolExecutor:
    """Waiting threads of a process, because starting threads takes longer than most work. A fork has none of them."""
    return ThreadPoolExecutor(thread_name_prefix="psmt-kernels")
