"""Reading files that users name, writing files completely or not at all, and locking folders."""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from platform import node
from time import sleep, time
from typing import BinaryIO

from psmt.errors import FrameSourceError, MissingSourceError, PSMTError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_MARK = "on-"  # prefix of the machine's name in the name of a temporary file. Files of earlier versions lack it.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Error numbers that mean that a disk cannot be written to."""

_PAUSE = 0.2  # seconds between two attempts to lock a folder
_DAY = 86_400.0  # number of seconds in a day


def shown(name: object, most: int = 200) -> str:
    r"""Return a file name for messages, with control characters escaped and the middle of a long name left out.

    >>> shown("\x1b[31mfilm.mp4"), shown("x" * 50 + ".mp4", most=20)
    ('\\x1b[31mfilm.mp4', 'xxxxxxxx..xxxxxx.mp4')
    """
    # Bytes above 0x9f of a name that is not UTF-8 are letters of another encoding, and stay.
    text = "".join(c if c.isprintable() or "\udca0" <= c <= "\udcff" else ascii(c)[1:-1] for c in str(name))
    return text if len(text) <= most else f"{text[: most // 2 - 2]}..{text[-(most // 2) :]}"


def shown_names(names: Iterable[object]) -> str:
    """Return the first few names for a message, and how many others there are."""
    first, *others = [*names] or ["none"]
    few = [shown(name, 40) for name in (first, *others[:7])]
    return ", ".join(few) + (f" and {len(others) - 7:,} more" if len(others) > 7 else "")


@contextmanager
def reading(path: str | os.PathLike[str], error: type[Exception] = FrameSourceError) -> Iterator[BinaryIO]:
    """Open a file that a user named, for reading. All such files are opened by this function.

    Pipes, sockets and devices are refused, because reading them may never end or may have side effects. The check is
    made on the opened file, because the name may point to another file a moment later. A missing file raises
    `MissingSourceError`. Any other failure, inside the context too, raises `error` with the name of the file.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise error(f"{shown(path)} is a pipe or a device, not a file; copy its content into a file")
            yield file
    except (PSMTError, error):
        raise
    except FileNotFoundError as missing:
        raise MissingSourceError(f"{shown(path)} does not exist; check the path") from missing
    except OSError as trouble:
        way_out = "check its permissions" if isinstance(trouble, PermissionError) else "check the file and its disk"
        raise error(f"{shown(path)} cannot be read ({trouble.strerror or trouble}); {way_out}") from trouble


def _without_waiting(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe waits for its writer. Windows has neither flag.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0), 0o666)


def _without_links(path: str, flags: int) -> int:
    return _without_waiting(path, flags | getattr(os, "O_NOFOLLOW", 0))


def temporary_name(path: Path) -> Path:
    """Return a temporary name beside `path`. It contains machine and process id, by which `clear_stale` finds it."""
    return path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.tmp")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file under a temporary name. Rename it to `path` at the end, or remove it after an error.

    An earlier file at `path` stays until the new one is complete and on disk. An error is raised if `path` is a folder,
    a device or a pipe, because root could otherwise replace ``/dev/null`` by a file.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder; give the name of a file", str(path))
    if path.exists() and not path.is_file():
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


@contextmanager
def locked(folder: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Lock a folder of results for this process, after waiting until no other process holds the lock.

    While it waits, `report` is called once with a sentence that names the other process. The lock is an flock on a file
    in the folder. The system releases it when the process ends. Where flock is missing (Windows), nothing is locked.
    """
    path, reported = folder / ".psmt-lock", False
    while (file := _try_lock(path)) is None:
        if not reported:
            with suppress(PSMTError), reading(path) as held:
                holder = shown(held.read(1000).decode(errors="replace")) or "another process"
                report(f"{shown(folder)} is in use by {holder}; waiting for its end (or give another folder)")
                reported = True
        sleep(_PAUSE)
    with file:
        try:
            file.truncate(0)
            file.write(f"process {os.getpid()} ({' '.join(sys.argv)})".encode(errors="replace"))
            file.flush()
            yield
        finally:
            path.unlink(missing_ok=True)


def _try_lock(path: Path) -> BinaryIO | None:
    """Return the opened and locked file, or None if another process has locked or just removed it."""
    file = open(path, "ab", opener=_without_links)  # noqa: SIM115
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # the content of another file would be lost
        file.close()
        raise FileExistsError(errno.EEXIST, "not a lock of psmt; remove it, or give another folder", str(path))
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours = os.path.samestat(found, path.stat())
    except (BlockingIOError, FileNotFoundError):
        ours = False
    except OSError:  # this disk has no locks
        ours = True
    if ours:
        return file
    file.close()
    return None


def write_files(folder: str | os.PathLike[str], files: Mapping[str, bytes | Iterable[bytes]]) -> None:
    """Write all files (bytes or iterables of bytes, by name) into the folder, or none. Remove stale temporary files."""
    with ExitStack() as stack:
        # Files have temporary names until all are on disk. They get their final names when the stack unwinds.
        for name, content in files.items():
            clear_stale(folder, name)
            file = stack.enter_context(writing(Path(folder) / name))
            file.writelines([content] if isinstance(content, bytes) else content)


def clear_stale(folder: str | os.PathLike[str], pattern: str = "*.npz") -> None:
    """Remove temporary files that killed runs left in `folder`. `pattern` matches the names of the final files.

    Files of processes that still run on this machine are kept. Files of other machines that share the folder are
    removed if they have not changed for a day.
    """
    for path in Path(folder).glob(f".{pattern}.*.tmp"):
        *_, machine, pid, _ = path.name.split(".")
        # Windows does not remove open files, and another process may be removing the same file.
        with suppress(OSError):
            if pid.isdecimal() and _is_stale(path, machine, int(pid)):
                path.unlink()


def _is_stale(path: Path, machine: str, pid: int) -> bool:
    if machine.startswith(_MARK) and machine != _machine():
        return time() - path.stat().st_mtime > _DAY
    return pid == os.getpid() or not _alive(pid)


@cache
def _machine() -> str:
    """Return a short name of this machine, without dots."""
    return _MARK + sha256(node().encode(errors="surrogateescape")).hexdigest()[:8]


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        # A signal would end the process on Windows. Files that it holds open cannot be removed there anyway.
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # a process of another user
        pass
    return True
