"""Checks of environment variables and limits with which libraries fail, often while they are imported.

Their messages name neither the variable nor the way out, so these checks come before any of them is imported.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping

from psmt.errors import PSMTError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]


_LAYERS = ("default", "safe", "threadsafe", "forksafe", "tbb", "omp", "workqueue")

_CHECKED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "NUMBA_NUM_THREADS": (lambda value: int(value) >= 1, "a whole number of threads, at least 1"),
    "NUMBA_THREADING_LAYER": (lambda value: value in _LAYERS, f"one of {', '.join(_LAYERS)}"),
    "SOURCE_DATE_EPOCH": (
        lambda value: int(value) >= 0 and bool(time.gmtime(int(value))),
        "a time in whole seconds since 1970",
    ),
}
"""Check of a variable, and what it must be; NumPy reads the last one, numba the others."""

_LEAST_SPACE = 800 << 20
"""Bytes of address space that Python, the libraries and compiled code need before any work; measured on Linux."""

_FEWEST_FILES = 32
"""Files that are open at once while libraries are imported and results written."""

_MOST_CORES = 16
"""Cores that count for the threads of libraries, at most."""


def settle_environment() -> None:
    """Raise `PSMTError` for variables and limits with which nothing works; set those that no command uses."""
    _check_limits()
    _check_threads()
    _check_folder()
    # Figures are drawn into files: the setting for a screen does not matter, and may be wrong.
    os.environ["MPLBACKEND"] = "agg"
    for name, (is_good, wanted) in _CHECKED.items():
        value = os.environ.get(name)
        # Numba ignores empty ones.
        if value is None or (not value and name.startswith("NUMBA_")):
            continue
        try:
            good = is_good(value)
        except (ValueError, OverflowError, OSError):
            good = False
        if not good:
            raise PSMTError(
                f"the environment has {name}={value!r:.80}, which is not {wanted}; correct it, or unset {name}"
            )


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise PSMTError("the current folder no longer exists; go to another one first") from None


def _check_threads() -> None:
    """Start as many threads as libraries, kernels and two workers may need: a user or a container may have a limit.

    OpenBLAS interrupts the process as Ctrl-C does if it cannot start one, without a useful message.
    """
    wanted = 8 + 4 * min(os.cpu_count() or 1, _MOST_CORES)
    over = threading.Event()
    begun: list[threading.Thread] = []
    try:
        while len(begun) < wanted:
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            begun.append(thread)
    except RuntimeError:
        raise PSMTError(
            f"psmt and its libraries may need {wanted} threads, and this process could start {len(begun)}; raise the "
            "limit (ulimit -u, or that of the container), or end other programs"
        ) from None
    finally:
        over.set()
        for thread in begun:
            thread.join()


def _check_limits() -> None:
    if resource is None:
        return
    for kind, least, told in (
        (resource.RLIMIT_AS, _LEAST_SPACE, f"{_LEAST_SPACE >> 20} MiB of memory for addresses (ulimit -v)"),
        (resource.RLIMIT_NOFILE, _FEWEST_FILES, f"{_FEWEST_FILES} open files (ulimit -n)"),
    ):
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY and limit < least:
            given = f"{limit >> 20} MiB" if kind == resource.RLIMIT_AS else str(limit)
            raise PSMTError(f"psmt needs {told}, and this process may have {given}; raise the limit")
