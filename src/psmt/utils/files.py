"""Files that are written whole or not at all, and what is left of them when a process dies on the way."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from platform import node
from time import time
from typing import BinaryIO

_MARK = "on-"
"""Begins the word for the machine in the name of a temporary file; files of earlier versions have none."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of a disk that takes no more."""

_DAY = 86_400.0
"""Seconds."""


def never_ends(path: str | os.PathLike[str]) -> bool:
    """Whether reading may wait or go on for ever: a pipe, a socket or a device, and no file."""
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def temporary_name(path: Path) -> Path:
    """The name of a file beside `path` that this process writes; `clear_stale` knows whose it is."""
    return path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.tmp")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Binary file under a temporary name, renamed to `path` at the end; removed if anything goes wrong before.

    An earlier file of that name stays until the new one is complete and on disk. A folder, a device or a pipe of that
    name is an error: who may, would put a file in the place of ``/dev/null``.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder; give the name of a file", str(path))
    if never_ends(path):
        raise FileExistsError(errno.EEXIST, "a device or a pipe; give the name of a file", str(path))
    temporary = temporary_name(path)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        # What fails in writing does not say where, and what fails in opening names a file that nobody knows.
        if (error.errno in _FULL and error.filename is None) or error.filename == str(temporary):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # not there any more, or never was
            temporary.unlink()


def clear_stale(folder: str | os.PathLike[str], pattern: str = "*.npz") -> None:
    """Remove what killed runs left half written in `folder`: temporary files for names like `pattern`.

    Those of runs of this machine that are still alive stay. Nobody can tell whether a process of another machine lives,
    where folders are shared: its files stay until nothing was written to them for a day.
    """
    for path in Path(folder).glob(f".{pattern}.*.tmp"):
        *_, machine, pid, _ = path.name.split(".")
        # Windows keeps files that are open; somebody else may be clearing too.
        with suppress(OSError):
            if pid.isdecimal() and _is_stale(path, machine, int(pid)):
                path.unlink()


def _is_stale(path: Path, machine: str, pid: int) -> bool:
    if machine.startswith(_MARK) and machine != _machine():
        return time() - path.stat().st_mtime > _DAY
    return pid == os.getpid() or not _alive(pid)


@cache
def _machine() -> str:
    """A short word for this machine, which has no dots as its name may have."""
    return _MARK + sha256(node().encode(errors="surrogateescape")).hexdigest()[:8]


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        # There a signal would end the process; files that it holds open cannot be removed anyway.
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
