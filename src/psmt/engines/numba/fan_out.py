"""Work that is shared out to threads: kernels, BLAS and FFTs release the GIL, so plain threads serve.

Numba's own threads would add to the time that compiling takes, and not every threading layer of numba may be entered
from two threads at once, as two models in one process do.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from numba import get_num_threads

from psmt.threads import one_blas_thread

T = TypeVar("T")


def in_threads(work: Callable[[slice], None], size: int, chunk: int) -> None:
    """Call `work` with each chunk of `size` things, in this thread and, as far as numba may have them, others.

    Chunks do not depend on the number of threads, nor does, so, any result. Whoever comes first takes the next: a
    thread that is held up by other programs holds up nobody else. BLAS has one thread in each: its own would compete
    with ours for the cores.

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
    helpers = min(get_num_threads(), len(chunks)) - 1

    def take() -> None:
        with one_blas_thread():
            while True:
                try:
                    part = chunks.popleft()
                except IndexError:
                    return
                work(part)

    others = [_pool(os.getpid()).submit(take) for _ in range(helpers)]
    try:
        take()
    finally:
        for other in others:
            # One that has not begun finds nothing left to do: to wait for it could be to wait for oneself.
            if not other.cancel():
                other.result()


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
