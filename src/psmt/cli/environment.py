"""Variables of the environment, and limits, that libraries below us stumble over, often while they are imported.

What they say then names neither the variable nor the way out, so it is looked at before any of them is imported.
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


def _threads(value: str) -> bool:
    return int(value) >= 1


def _time(value: str) -> bool:
    return int(value) >= 0 and bool(time.gmtime(int(value)))


def _layer(value: str) -> bool:
    return value in ("default", "safe", "threadsafe", "forksafe", "tbb", "omp", "workqueue")


_CHECKED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "NUMBA_NUM_THREADS": (_threads, "a whole number of threads, at least 1"),
    "NUMBA_THREADING_LAYER": (_layer, "one of default, safe, threadsafe, forksafe, tbb, omp, workqueue"),
    "SOURCE_DATE_EPOCH": (_time, "a time in whole seconds since 1970"),
}
"""What a variable must be for it, and how that is said; NumPy reads the last one, numba the others."""


_LEAST_SPACE = 800 << 20
"""Bytes of addresses that Python, the libraries and compiled code take before any work; measured on Linux."""

_FEWEST_FILES = 32
"""Files that are open at once while libraries are imported and results written."""


_MOST_CORES = 16
"""Cores that count for the threads of libraries, at the most."""


def settle_environment() -> None:
    """Raise `PSMTError` for variables and limits that nothing would work with; set what no command has a use for."""
    _check_limits()
    _check_threads()
    _check_folder()
    # Figures are drawn into files: where a screen is to show them is no matter of ours, and need not be right.
    os.environ["MPLBACKEND"] = "agg"
    for name, (is_good, wanted) in _CHECKED.items():
        value = os.environ.get(name)
        # Numba takes an empty one for nothing said.
        if value is None or (not value and name.startswith("NUMBA_")):
            continue
        try:
            good = is_good(value)
        except (ValueError, OverflowError, OSError):
            good = False
        if not good:
            raise PSMTError(
                f"the environment has {name}={value!r:.80}, which is not {wanted}; set it so, or unset {name}"
            )


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise PSMTError("the folder that this was started in is not there any more; go to another one first") from None


def _check_threads() -> None:
    """Start as many threads as libraries, kernels and two workers may: they may be limited for a user or a container.

    OpenBLAS, which is refused one, interrupts the process as Ctrl-C does, and says nothing of use.
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
