"""Files that are written completely or not at all, and the removal of what killed processes left."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from platform import node
from time import time
from typing import BinaryIO

_MARK = "on-"
"""Begins the name of the machine in a temporary file's name; files of earlier versions do not have it."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of a disk that cannot be written to."""

_DAY = 86_400.0
"""Seconds."""


def never_ends(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pipe, a socket or a device, whose reading may never end."""
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def temporary_name(path: Path) -> Path:
    """The name of a temporary file beside `path`; it names this process, for `clear_stale`."""
    return path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.tmp")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Binary file under a temporary name, renamed to `path` at the end; removed after an error.

    An earlier file of that name stays until the new one is complete and on disk. A folder, a device or a pipe of that
    name is an error: root would replace ``/dev/null`` by a file.
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
        # Errors of writing do not name the file, and errors of opening name the temporary one.
        if (error.errno in _FULL and error.filename is None) or error.filename == str(temporary):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # renamed, or never created
            temporary.unlink()


def write_files(folder: str | os.PathLike[str], files: Mapping[str, bytes | Iterable[bytes]]) -> None:
    """Write all files, whole or in parts, into the folder, or none; and remove half-written files of killed runs."""
    with ExitStack() as stack:
        # Files have temporary names until all are on disk, and get their own when the stack unwinds.
        for name, content in files.items():
            clear_stale(folder, name)
            file = stack.enter_context(writing(Path(folder) / name))
            file.writelines([content] if isinstance(content, bytes) else content)


def clear_stale(folder: str | os.PathLike[str], pattern: str = "*.npz") -> None:
    """Remove temporary files of killed runs in `folder`, for names like `pattern`.

    Files of processes that are alive on this machine stay. Files of another machine, in a shared folder, stay until
    nothing was written to them for a day.
    """
    for path in Path(folder).glob(f".{pattern}.*.tmp"):
        *_, machine, pid, _ = path.name.split(".")
        # Windows does not remove open files, and another process may be clearing too.
        with suppress(OSError):
            if pid.isdecimal() and _is_stale(path, machine, int(pid)):
                path.unlink()


def _is_stale(path: Path, machine: str, pid: int) -> bool:
    if machine.startswith(_MARK) and machine != _machine():
        return time() - path.stat().st_mtime > _DAY
    return pid == os.getpid() or not _alive(pid)


@cache
def _machine() -> str:
    """A short name of this machine, without dots."""
    return _MARK + sha256(node().encode(errors="surrogateescape")).hexdigest()[:8]


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        # A signal would end the process there; files that it holds open cannot be removed anyway.
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
