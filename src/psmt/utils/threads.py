"""Limits on the threads of BLAS and numba, for work that is too small for threads or runs in parallel itself.

OpenBLAS built on pthreads, as in the wheels of NumPy and SciPy, has one number of threads for the whole process. Even
its `openblas_set_num_threads_local` changes this number. Therefore the threads that need a limit are counted: the first
that enters sets the limit, and the last that leaves restores the former number. Other BLAS libraries are not limited.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import numba
import scipy.linalg  # noqa: F401  its own BLAS, beside NumPy's, must be loaded to be found
from threadpoolctl import ThreadpoolController, threadpool_limits


@cache
def _libraries() -> list[Any]:
    """Return functions `get` and `set` of the number of threads, for NumPy's and SciPy's OpenBLAS. The search is slow.

    The functions of threadpoolctl are not used, because only the first thread that ever set a limit may change it.
    """
    found = ThreadpoolController().select(internal_api="openblas").lib_controllers
    return [
        SimpleNamespace(**{verb: _symbol(own.dynlib, f"openblas_{verb}_num_threads") for verb in ("get", "set")})
        for own in found
        if own.threading_layer != "openmp"
    ]


def _symbol(library: Any, name: str) -> Callable[..., int]:
    """Return an OpenBLAS function by its name, to which wheels may add a prefix or a suffix."""
    names = (f"{before}{name}{after}" for before, after in product(("", "scipy_"), ("", "64_", "_64")))
    function: Callable[..., int] = next(getattr(library, known) for known in names if hasattr(library, known))
    return function


class _Holders:
    """The threads that limit BLAS at present, and the thread counts of BLAS before the first limit."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.threads: set[int] = set()
        self.before: list[int] = []
        self.own = threading.local()
        if hasattr(os, "register_at_fork"):
            own = self.lock
            os.register_at_fork(before=own.acquire, after_in_parent=own.release, after_in_child=self._inherit)

    def locked(self, work: Callable[[], None]) -> None:
        """Call `work` with the lock held. After an interrupt, a ``with`` statement might not release the lock."""
        try:
            try:
                self.lock.acquire()
                work()
            finally:
                self._unlock()
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self.lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001  as in threading.Condition
            self.lock.release()

    def enter(self) -> None:
        """Limit BLAS to one thread on behalf of the calling thread. The first limit stores the former thread counts."""
        if not self.threads:
            self.before = [library.get() for library in _libraries()]
        self.threads.add(threading.get_ident())
        for library in _libraries():
            library.set(1)

    def leave(self) -> None:
        """End the limit of the calling thread. The last thread that leaves restores the former thread counts."""
        if self.threads == {threading.get_ident()}:
            self.lift()
        self.threads.discard(threading.get_ident())

    @property
    def depth(self) -> int:
        """Return how many limits the calling thread has entered and not yet left.

        Limits that are left in the wrong order can make the stored number too large. So 0 is returned if the thread
        holds no limit.
        """
        return getattr(self.own, "depth", 0) if threading.get_ident() in self.threads else 0

    def lift(self) -> None:
        """Restore the former thread counts, except where other code has changed a count in the meantime."""
        for library, before in zip(_libraries(), self.before, strict=True):
            if library.get() == 1:
                library.set(before)

    def _inherit(self) -> None:
        # A fork copies all holders, but only the thread that forked lives on in the child.
        self.lock.release()
        held = bool(self.threads)
        self.threads = {threading.get_ident()} if self.depth else set()
        if held and not self.threads:
            self.lift()


_holders = _Holders()


class one_blas_thread(AbstractContextManager[None]):
    """A context that limits BLAS to one thread. It can be nested, and many threads may enter it.

    Former thread counts are restored after errors, in whatever order threads leave, and in a forked child. `leave` ends
    the limit and may be called repeatedly. Calling it again in an outer ``finally`` ensures that the limit ends even if
    an interrupt arrives during the first call.
    """

    def __init__(self) -> None:
        self._outer = _holders.depth

    def __enter__(self) -> None:
        # Only the first time in each thread costs anything.
        if not self._outer:
            _libraries()
            _holders.locked(_holders.enter)
        _holders.own.depth = self._outer + 1

    def __exit__(self, *exception: object) -> None:
        self.leave()

    def leave(self) -> None:
        """End this limit, unless it has ended. The end of the outermost limit restores the former thread counts."""
        if not self._outer and threading.get_ident() in _holders.threads:
            _holders.locked(_holders.leave)
        _holders.own.depth = self._outer


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS (in all threads), OpenMP and numba (in this thread) to one thread each. Contexts can be nested."""
    threads = numba.get_num_threads()
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
        numba.set_num_threads(1)
        try:
            yield
        finally:
            numba.set_num_threads(threads)
