"""Limits on the threads of BLAS and numba, for work that is parallel at another level or too small to share.

OpenBLAS with threads of its own (pthreads, as in the wheels of NumPy and SciPy) has one number of threads for the whole
process: its `openblas_set_num_threads_local` sets that one too. So callers are counted: the first thread that enters
sets the limit, and the last one that leaves restores the former number. MKL, and OpenBLAS on OpenMP, have a number per
thread, which each thread sets and restores for itself. Any other BLAS is left alone, as its limit might stay.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numba
import scipy.linalg  # noqa: F401  its own BLAS, beside NumPy's, must be loaded to be found
from threadpoolctl import ThreadpoolController, threadpool_limits


class _Library(NamedTuple):
    """A BLAS, by the functions that get and set its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], object]

    def limit(self) -> int:
        """Set one thread; return the former number."""
        before = self.get()
        self.set(1)
        return before


class _Libraries(NamedTuple):
    """The BLAS that are loaded, by whether their number of threads belongs to the process or to each thread."""

    of_process: list[_Library]
    of_thread: list[_Library]


@cache
def _libraries() -> _Libraries:
    """Find the BLAS of NumPy and SciPy, once: the search takes milliseconds."""
    found = _Libraries([], [])
    for known in ThreadpoolController().select(user_api="blas").lib_controllers:
        if known.internal_api == "mkl":
            local = known.dynlib.MKL_Set_Num_Threads_Local
            # It returns the former number, 0 for none; there is no other way to get that.
            found.of_thread.append(_Library(lambda local=local: local(1), local))  # type: ignore[misc]
        elif known.internal_api == "openblas" and known.threading_layer == "openmp":
            found.of_thread.append(_Library(known.get_num_threads, known.set_num_threads))
        elif known.internal_api == "openblas":
            # Not by threadpoolctl, which obeys one thread only: the first that ever set a limit, while that lives.
            get, put = (_symbol(known.dynlib, f"openblas_{verb}_num_threads") for verb in ("get", "set"))
            found.of_process.append(_Library(get, put))
    return found


def _symbol(library: Any, name: str) -> Callable[..., int]:
    """Return a function of OpenBLAS, whose name has a prefix or suffix in wheels."""
    names = (f"{before}{name}{after}" for before, after in product(("", "scipy_"), ("", "64_", "_64")))
    function: Callable[..., int] = next(getattr(library, known) for known in names if hasattr(library, known))
    return function


class _Limit(AbstractContextManager[None]):
    """The limit of BLAS to one thread, as a context that nests and that many threads may enter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        """Threads that are inside."""
        self._before: list[int] = []
        """Numbers of threads of the process's libraries before the first thread entered."""
        self._own = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._inherit
            )

    def __enter__(self) -> None:
        # Only the first time in each thread costs anything.
        depth = getattr(self._own, "depth", 0)
        if not depth:
            libraries = _libraries()
            with self._lock:
                if not self._holders:
                    self._before = [library.limit() for library in libraries.of_process]
                self._holders += 1
            self._own.before = [library.limit() for library in libraries.of_thread]
        self._own.depth = depth + 1

    def __exit__(self, *exception: object) -> None:
        self._own.depth -= 1
        if not self._own.depth:
            for library, before in zip(_libraries().of_thread, self._own.before, strict=True):
                library.set(before)
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._lift()

    def _lift(self) -> None:
        for library, before in zip(_libraries().of_process, self._before, strict=True):
            # A number that somebody else has set meanwhile stays.
            if library.get() == 1:
                library.set(before)

    def _inherit(self) -> None:
        # A fork copies the count of all threads, but only the one that forked lives on in the child.
        self._lock.release()
        held = self._holders
        self._holders = 1 if getattr(self._own, "depth", 0) else 0
        if held and not self._holders:
            self._lift()


_limit = _Limit()


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread until the end of the ``with`` statement; it nests, and many threads may hold it at once.

    While any thread holds it, a BLAS whose number of threads belongs to the process has one thread for all of them.
    The former numbers are restored after errors, in any order of threads, and in a child that was forked meanwhile. A
    thread that is started inside must hold the limit itself, if its work is to be limited on every kind of BLAS.
    """
    return _limit


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and numba to one thread each, until the end of the ``with`` statement; it nests.

    The numbers of OpenMP and numba belong to the calling thread.
    """
    threads = numba.get_num_threads()
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
        numba.set_num_threads(1)
        try:
            yield
        finally:
            numba.set_num_threads(threads)
