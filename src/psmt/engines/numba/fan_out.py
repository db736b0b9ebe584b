"""Work in threads: kernels, BLAS and FFTs release the GIL, so plain Python threads are enough.

Numba's own threads would make compiling slower, and not every threading layer of numba may be entered from two threads
at once, as two models in one process would do.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from numba import get_num_threads

from psmt.utils.threads import one_blas_thread

T = TypeVar("T")


def in_threads(work: Callable[[slice], None], size: int, chunk: int) -> None:
    """Call `work` with slices of at most `chunk` out of `size` items, in as many threads as numba may use.

    The slices, and so the results, do not depend on the number of threads. An idle thread takes the next slice, so a
    thread that other programs delay does not delay the rest. Work may call `in_threads` itself: idle threads then help.
    BLAS is limited to one thread in each, because its threads would compete with ours for the cores.
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
    first = take()  # a helper may start late, so the caller has the first chunk, which should be the longest
    helpers = [_pool(os.getpid(), n_threads - 1).submit(lambda: do_chunks(take())) for _ in range(n_helpers)]
    try:
        do_chunks(first)
    finally:
        # No thread works on when this returns. Helpers that are still waiting for a thread are cancelled, so calls
        # inside of calls cannot block each other.
        started = [helper for helper in helpers if not helper.cancel()]
        wait(started)
    for helper in started:
        helper.result()


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
def _pool(_process: int, n_threads: int | None = None) -> ThreadPoolExecutor:
    """Waiting threads of a process, because starting threads takes longer than most work. A fork has none of them."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="psmt-kernels")
