"""Threads of BLAS: held to one while the work at hand is shared out otherwise, or too small to share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache

import scipy.linalg  # noqa: F401  which has a BLAS of its own, beside NumPy's: the controller knows what is loaded
from threadpoolctl import ThreadpoolController


@lru_cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread, from now on or, in a ``with`` statement, until its end.

    It counts for all threads of the process or for the one that calls, as BLAS was built.
    """
    limits: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limits
