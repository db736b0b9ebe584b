"""Run work in Python threads. These suffice, because kernels, BLAS and FFTs release the GIL.

Numba's own threads would make compiling slower. Some of numba's threading layers also forbid simultaneous calls
from two threads, but two models in one process may make such calls.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import Any

from numba import get_num_threads

from psmt.utils.threads import one_blas_thread


def in_threads(work: Callable[[slice], None], size: int, chunk: int) -> None:
    """Call `work` for all items ``range(size)``, in slices of `chunk` items and in as many threads as numba may use.

    The slices, and so the results, do not depend on the number of threads. Whichever thread is free takes the next
    slice, so one slow thread does not delay the rest. `work` may itself call `in_threads`. Each thread uses one BLAS
    thread, because more would compete for the cores.
    """
    chunks = deque(slice(first, min(first + chunk, size)) for first in range(0, size, chunk))
    n_threads = get_num_threads()

    def take() -> slice | None:
        with suppress(IndexError):
            return chunks.popleft()
        return None

    def do_chunks(part: slice | None) -> None:
        try:
            with one_blas_thread():
                while part is not None:
                    work(part)
                    part = take()
        finally:
            chunks.clear()  # after a failure, the other threads stop too

    n_helpers = min(n_threads, len(chunks)) - 1
    first = take()  # the caller takes the first chunk, which should be the longest, because helpers may start late
    helpers: list[Future[None]] = []

    def finish() -> None:
        # No thread is still working when this returns. Helpers that are still waiting for a thread are cancelled, so
        # that nested calls cannot block each other.
        wait([helper for helper in helpers if not helper.cancel()])

    # `finish` is called twice, because an interrupt may hit the start of the first call.
    try:
        try:
            for _ in range(n_helpers):
                helpers.append(_pool(os.getpid(), n_threads - 1).submit(lambda: do_chunks(take())))
            do_chunks(first)
        finally:
            finish()
    except BaseException:
        finish()
        raise
    for helper in helpers:
        if not helper.cancelled():
            helper.result()


def together(*works: Callable[[], Any]) -> list[Any]:
    """Call independent functions in parallel and return their results, in the order of the functions."""
    results: list[Any] = [None] * len(works)

    def do(which: slice) -> None:
        results[which.start] = works[which.start]()

    in_threads(do, len(works), 1)
    return results


@cache
def _pool(_process: int, n_threads: int | None = None) -> ThreadPoolExecutor:
    """Return the thread pool of a process. The cache is keyed by process id, because a fork inherits no threads."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="psmt-kernels")
