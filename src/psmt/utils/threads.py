"""Threads of BLAS and numba: held to one while the work at hand is shared out otherwise, or too small to share.

OpenBLAS with threads of its own (pthreads, as in the wheels of NumPy and SciPy) has one number of threads for the whole
process: its `openblas_set_num_threads_local` sets that one too. So the limit is counted: the first thread that comes in
sets it, the last one out restores what was there, whatever happened between. MKL, and OpenBLAS on OpenMP, have a number
per thread; there each thread sets and restores its own. Any other BLAS is left alone: a limit that may stay is worse
than none.
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
import scipy.linalg  # noqa: F401  which has a BLAS of its own, beside NumPy's: it must be loaded to be found
from threadpoolctl import ThreadpoolController, threadpool_limits


class _Library(NamedTuple):
    """A BLAS: how many threads it has, and how to say so."""

    get: Callable[[], int]
    set: Callable[[int], object]


class _Libraries(NamedTuple):
    """The BLAS that are loaded, by whom their number of threads belongs to."""

    of_process: list[_Library]
    of_thread: list[_Library]


@cache
def _libraries() -> _Libraries:
    """What NumPy and SciPy compute with; found once, as a search takes milliseconds."""
    found = _Libraries([], [])
    for known in ThreadpoolController().select(user_api="blas").lib_controllers:
        if known.internal_api == "mkl":
            local = known.dynlib.MKL_Set_Num_Threads_Local
            # It gives what was set before, 0 for nothing; there is no other way to ask for that.
            found.of_thread.append(_Library(lambda local=local: local(1), local))  # type: ignore[misc]
        elif known.internal_api == "openblas" and known.threading_layer == "openmp":
            found.of_thread.append(_Library(known.get_num_threads, known.set_num_threads))
        elif known.internal_api == "openblas":
            # Not by threadpoolctl, which obeys one thread only: the first that ever set a limit, while that lives.
            get, put = (_symbol(known.dynlib, f"openblas_{verb}_num_threads") for verb in ("get", "set"))
            found.of_process.append(_Library(get, put))
    return found


def _symbol(library: Any, name: str) -> Callable[..., int]:
    """A function of OpenBLAS, which wheels give other names than it has at home."""
    names = (f"{before}{name}{after}" for before, after in product(("", "scipy_"), ("", "64_", "_64")))
    function: Callable[..., int] = next(getattr(library, known) for known in names if hasattr(library, known))
    return function


class _Limit:
    """The limit of BLAS to one thread, and who holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        """Threads that hold it."""
        self._before: list[int] = []
        """What the libraries of the process had before the first came."""
        self._own = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._inherit
            )

    def hold(self) -> None:
        """Come in; only the first time in each thread costs anything."""
        depth = getattr(self._own, "depth", 0)
        if not depth:
            libraries = _libraries()
            with self._lock:
                if not self._holders:
                    self._before = _limited(libraries.of_process)
                self._holders += 1
            self._own.before = _limited(libraries.of_thread)
        self._own.depth = depth + 1

    def leave(self) -> None:
        """Go out; the last one restores what was there."""
        self._own.depth -= 1
        if not self._own.depth:
            libraries = _libraries()
            for library, before in zip(libraries.of_thread, self._own.before, strict=True):
                library.set(before)
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._lift(libraries)

    def _lift(self, libraries: _Libraries) -> None:
        for library, before in zip(libraries.of_process, self._before, strict=True):
            # Somebody who has set another number meanwhile wants that one.
            if library.get() == 1:
                library.set(before)

    def _inherit(self) -> None:
        # A fork copies the count of all threads, of which the one that forked alone lives on in the child.
        self._lock.release()
        held = self._holders
        self._holders = 1 if getattr(self._own, "depth", 0) else 0
        if held and not self._holders:
            self._lift(_libraries())


def _limited(libraries: list[_Library]) -> list[int]:
    """Set all to one thread; return how many each had."""
    before = [library.get() for library in libraries]
    for library in libraries:
        library.set(1)
    return before


_limit = _Limit()


class _Held(AbstractContextManager[None]):
    """A stretch of work with one BLAS thread. It holds nothing itself, so that one serves all."""

    def __enter__(self) -> None:
        _limit.hold()

    def __exit__(self, *exception: object) -> None:
        _limit.leave()


_held = _Held()


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread until the end of the ``with`` statement; it nests, and many threads may hold it at once.

    While any thread holds it, a BLAS whose number of threads belongs to the process has one thread for all of them.
    Nothing stays changed: not after an error, not in any order of threads, not in a child that was forked meanwhile. A
    thread that is started inside holds it for itself, if its work is to be limited on every kind of BLAS.
    """
    return _held


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS, OpenMP and numba to one thread each, until the end of the ``with`` statement; it nests.

    The numbers of OpenMP and numba belong to the thread that calls.
    """
    threads = numba.get_num_threads()
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
        numba.set_num_threads(1)
        try:
            yield
        finally:
            numba.set_num_threads(threads)
