"""Files that are written whole or not at all, and what is left of them when a process dies on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Binary file under a temporary name, renamed to `path` at the end; removed if anything goes wrong before.

    An earlier file of that name stays until the new one is complete and on disk.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def clear_stale(folder: str | os.PathLike[str], pattern: str = "*.npz") -> None:
    """Remove what killed runs left half written in `folder`: temporary files for names like `pattern`.

    Those of runs that are still alive stay. On a folder that machines share, nobody can tell whether a process of
    another machine lives: there a writer may lose its file, and writes it again.
    """
    for path in Path(folder).glob(f".{pattern}.*.tmp"):
        pid = path.name.split(".")[-2]
        if pid.isdecimal() and (int(pid) == os.getpid() or not _alive(int(pid))):
            # Windows keeps files that are open.
            with suppress(OSError):
                path.unlink()


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
