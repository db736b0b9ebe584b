"""Threads of BLAS and numba: held to one while the work at hand is shared out otherwise, or too small to share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache

import numba
import scipy.linalg  # noqa: F401  which has a BLAS of its own, beside NumPy's: the controller knows what is loaded
from threadpoolctl import ThreadpoolController, threadpool_limits


@lru_cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread, from now on or, in a ``with`` statement, until its end.

    It counts for all threads of the process or for the one that calls, as BLAS was built.
    """
    limits: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limits


_lock = threading.Lock()
_holders = 0
_limits: threadpool_limits | None = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS and numba to one thread each, until the end of the ``with`` statement.

    It nests. The limit of BLAS is one for the whole process: where several threads hold it, the first sets it and the
    last lifts it. threadpoolctl obeys one thread only, the first that ever set a limit, as long as that lives: who has
    work done in other threads holds the limit too, from before they begin until after they end.
    """
    global _holders, _limits
    with _lock:
        _holders += 1
        if _holders == 1:
            _limits = threadpool_limits(1)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)
        with _lock:
            _holders -= 1
            if _holders == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None
