"""Set-up of the process of the command line: signals, standard streams, and environment."""

import io
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from types import FrameType
from typing import Any

from psmt.errors import CacheWarning, PSMTError, SeriesWarning
from psmt.utils.files import shown

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_BEGIN_ANEW = ("learn", "live")
"""Commands that keep no intermediate results. After an interruption, they start from the beginning."""


class TerminatedError(BaseException):
    """Raised when the process receives a signal to end. Only `main` catches it, so all contexts are cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number
        """Exit code that shells report for a process that this signal ended."""

    def text(self, arguments: Sequence[str]) -> str:
        """Return the line to print when the process ends."""
        anew = not arguments or arguments[0] in _BEGIN_ANEW
        return f"psmt: ended by {self}" + ("" if anew else "; the same command continues from here")


ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGXCPU") if hasattr(signal, name))
"""Signals that ask a process to end. Without a handler, nothing would be cleaned up."""

_SOON = 0.02  # seconds to wait, which are enough for the finalizer of an object to end

NARROWEST, WIDEST = 20, 1000
"""Bounds on the columns of a screen, because rich hangs when it prints help on two columns or on a billion."""


@contextmanager
def settled() -> Iterator[None]:
    """Context with streams that can always be written to, and signal handlers that end the process cleanly."""
    _occupy_standard_descriptors()
    sys.stdout = _stream(sys.stdout, 1)
    sys.stderr = _stream(sys.stderr, 2)
    columns = get_terminal_size().columns
    if not NARROWEST <= columns <= WIDEST:
        os.environ["COLUMNS"] = str(NARROWEST if columns < NARROWEST else WIDEST)
    for number in ENDING:
        # Signals that are ignored, for example under nohup, stay ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    sys.unraisablehook = _once_more
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show  # type: ignore[assignment]  # it is called with positional arguments only
            yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # discard the buffer, because the interpreter would report the error again
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
        # The command is done. Python, which is still shutting down, would answer Ctrl-C with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in ENDING:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    # A second signal must not interrupt the clean-up.
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise TerminatedError(number)


def _once_more(swallowed: "sys.UnraisableHookArgs") -> None:
    """Send a signal again if Python ignored the exception that it raised, as Python does in finalizers."""
    error = swallowed.exc_value
    if isinstance(error, TerminatedError):
        number = error.exit_code - 128
        signal.signal(number, _end)
    elif isinstance(error, KeyboardInterrupt):
        number = signal.SIGINT
    else:
        sys.__unraisablehook__(swallowed)
        return
    later = threading.Timer(_SOON, os.kill, (os.getpid(), number))
    later.daemon = True
    later.start()


def _show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    """Print a warning in one line. Its place in the source comes first, unless psmt wrote the warning for users."""
    place = "" if issubclass(category, CacheWarning | SeriesWarning) else f"{filename}:{lineno}: {category.__name__}: "
    print(f"psmt: warning: {shown(place)}{shown(message, 1000)}", file=sys.stderr)


def _occupy_standard_descriptors() -> None:
    """Open the null device for each closed standard stream. Otherwise the next opened file would take its place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)


def _stream(given: io.TextIOBase | Any, descriptor: int) -> Any:
    """Return a stream that replaces `given`. It accepts any text, and does not fail if its reader is gone."""
    if given is not None:
        with suppress(OSError):
            given.flush()
    encoding = getattr(given, "encoding", None) or "utf-8"
    # Invalid characters in file names are written as their bytes. Characters that a terminal lacks become '?'.
    errors = "surrogateescape" if encoding.lower().replace("-", "") == "utf8" else "replace"
    raw = _Enduring(descriptor, "w", closefd=False)
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding=encoding, errors=errors, line_buffering=descriptor == 2 or raw.isatty())


class _Enduring(io.FileIO):
    """A file whose `write` does not fail if its reader is gone."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            # If stderr fails, this error cannot be printed either.
            if isinstance(error, BrokenPipeError) or self.fileno() == 2:
                return len(data)
            raise


# Environment: variables and limits that make libraries fail, often during their import, without being named.

_LAYERS = ("default", "safe", "threadsafe", "forksafe", "tbb", "omp", "workqueue")

_CHECKED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "NUMBA_NUM_THREADS": (lambda value: int(value) >= 1, "a whole number of threads, at least 1"),
    "NUMBA_THREADING_LAYER": (lambda value: value in _LAYERS, f"one of {', '.join(_LAYERS)}"),
    "SOURCE_DATE_EPOCH": (
        lambda value: int(value) >= 0 and bool(time.gmtime(int(value))),
        "a time in whole seconds since 1970",
    ),
}
"""For each environment variable, a check of its value and a description of valid values."""

_LEAST_SPACE = 800 << 20
"""Bytes of address space that Python, the libraries and compiled code need before any work, measured on Linux."""

_FEWEST_FILES = 32  # number of files that are open at once while libraries are imported and results are written

_MOST_CORES = 16  # largest number of cores for which libraries are assumed to start threads


def settle_environment() -> None:
    """Raise `PSMTError` if environment variables, limits or a missing working directory would make psmt fail.

    An invalid ``MPLBACKEND`` is replaced and is not an error, because psmt draws figures only into files.
    """
    _check_limits()
    _check_threads()
    try:
        os.getcwd()
    except FileNotFoundError:
        raise PSMTError("the current folder no longer exists; go to another one first") from None
    # Figures are only drawn into files, so the backend for a screen does not matter. Its setting may be wrong.
    os.environ["MPLBACKEND"] = "agg"
    # Without a home, matplotlib uses a temporary folder, and logs a paragraph about it.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    for name, (is_good, wanted) in _CHECKED.items():
        value = os.environ.get(name)
        # Numba ignores empty variables.
        if value is None or (not value and name.startswith("NUMBA_")):
            continue
        try:
            good = is_good(value)
        except (ValueError, OverflowError, OSError):
            good = False
        if not good:
            raise PSMTError(f"the environment has {name}={value!r:.80}, which is not {wanted}; correct or unset {name}")


def _check_threads() -> None:
    """Raise `PSMTError` if the process cannot start the threads that its libraries, kernels and two workers need.

    Without this check, OpenBLAS would end the process without a useful message.
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
