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

from psmt.threads import one_blas_thread

T = TypeVar("T")


class _Here(threading.local):
    """What a thread knows of those it shares its work with."""

    idle: deque[None] | None = None
    """One entry for each thread that may still be taken; None where nothing is shared out."""


_here = _Here()


def in_threads(work: Callable[[slice], None], size: int, chunk: int) -> None:
    """Call `work` with each chunk of `size` things, in this thread and, as far as numba may have them, others.

    Chunks do not depend on the number of threads, nor does, so, any result. Whoever comes first takes the next: a
    thread that is held up by other programs holds up nobody else. Work may share out in turn what it does: it gets the
    threads that are idle by then. BLAS has one thread in each: its own would compete with ours for the cores.

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
    outermost = _here.idle is None
    idle = deque([None] * (get_num_threads() - 1)) if _here.idle is None else _here.idle

    def take() -> None:
        with one_blas_thread():
            while True:
                try:
                    part = chunks.popleft()
                except IndexError:
                    return
                work(part)

    def help_out() -> None:
        _here.idle = idle
        try:
            take()
        finally:
            _here.idle = None
            idle.append(None)

    others: list[Future[None]] = []
    _here.idle = idle
    try:
        for _ in range(len(chunks) - 1):
            try:
                idle.pop()
            except IndexError:
                break
            others.append(_pool(os.getpid()).submit(help_out))
        take()
    finally:
        if outermost:
            _here.idle = None
        failures = []
        for other in others:
            # One that has not begun finds nothing left to do: to wait for it could be to wait for oneself.
            if other.cancel():
                idle.append(None)
            else:
                failures.append(other.exception())
        # Nobody is at work any more when an error is raised.
        for failure in filter(None, failures):
            raise failure


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
