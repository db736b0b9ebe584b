"""What a process of the command line owes to its surroundings: signals, and streams that are closed, narrow or gone."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from types import FrameType
from typing import Any, TextIO

from psmt.errors import CacheWarning

_BEGIN_ANEW = ("learn", "live")
"""Commands that keep nothing half done."""


class TerminatedError(BaseException):
    """The process was told to end. Nobody catches it on the way, and all that is half done is cleared away."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number
        """As shells have it."""

    def text(self, arguments: Sequence[str]) -> str:
        """What is printed at the end of a command."""
        anew = not arguments or arguments[0] in _BEGIN_ANEW
        return f"psmt: ended by {self}" + ("" if anew else "; the same command goes on from here")


ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGXCPU") if hasattr(signal, name))
"""Signals that ask a process to end; without a handler nothing would be cleared away."""

_SOON = 0.02
"""Seconds after which the end of an object is over."""

NARROWEST, WIDEST = 20, 1000
"""Columns that a screen is taken to have: rich never comes to an end with help on one of two, nor on a billion."""


@contextmanager
def settled() -> Iterator[None]:
    """Streams that can be written to whatever happens, and signals that end the process cleanly."""
    _occupy_standard_descriptors()
    sys.stdout = _stream(sys.stdout, 1)
    sys.stderr = _stream(sys.stderr, 2)
    columns = get_terminal_size().columns
    if not NARROWEST <= columns <= WIDEST:
        os.environ["COLUMNS"] = str(NARROWEST if columns < NARROWEST else WIDEST)
    for number in ENDING:
        # What is ignored, as under nohup, stays so.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    sys.unraisablehook = _once_more
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            _empty(stream)
        # All is said and done; what is left is Python's, which would answer with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in ENDING:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    # Clearing away is not to be interrupted by a second one.
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise TerminatedError(number)


def _once_more(swallowed: sys.UnraisableHookArgs) -> None:
    """Send a signal again whose exception came where Python lets none pass, as in the end of an object."""
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


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    """Tell a warning in a line, without the place in the source if it is meant for users."""
    place = "" if issubclass(category, CacheWarning) else f"{filename}:{lineno}: {category.__name__}: "
    print(f"psmt: warning: {place}{message}", file=sys.stderr)


# Streams


def _occupy_standard_descriptors() -> None:
    """Give closed standard streams a null device: else the next file that is opened takes their place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)


def _stream(given: io.TextIOBase | Any, descriptor: int) -> Any:
    """The stream, so that it takes any text, and does not break when its reader is gone."""
    if given is not None:
        with suppress(OSError):
            given.flush()
    encoding = getattr(given, "encoding", None) or "utf-8"
    # Names of files that are no text go out as the bytes that they are; what a terminal does not have, as a question.
    errors = "surrogateescape" if encoding.lower().replace("-", "") == "utf8" else "replace"
    raw = _Enduring(descriptor, "w", closefd=False)
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding=encoding, errors=errors, line_buffering=descriptor == 2 or raw.isatty())


def _empty(stream: Any) -> None:
    """Write what is left, or throw it away: the end of the interpreter would report it once more, with a traceback."""
    try:
        stream.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


class _Enduring(io.FileIO):
    """A file that can be written to when nobody reads it any more."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return len(data)
        except OSError:
            if self.fileno() != 2:
                raise
            # Where errors inconclusive, there is nobody to tell this one either.
            return len(data)
