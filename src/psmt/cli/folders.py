"""The folder of results: made early, and unmade where nothing came."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from psmt.errors import PSMTError


@contextmanager
def folder(path: Path) -> Iterator[Path]:
    """The folder, made before any work so that a bad one is found early; if the work fails, unmade if empty."""
    if path.exists() and not path.is_dir():
        raise PSMTError(f"--out {path} is a file; give a folder")
    if path.is_symlink() and not path.exists():
        raise PSMTError(f"--out {path} is a link to a folder that is not there; make it, or give another one")
    made = [parent for parent in (path, *path.parents) if not parent.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PSMTError(f"--out {path} may not be written to; give another folder, or check its permissions")
        yield path
    except BaseException:
        for parent in (path / "tasks", *made):
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise


def sub_folders(names: Iterable[str]) -> list[str]:
    """A folder's name for each film, no two the same.

    >>> sub_folders(["a.mp4", "b c", "a.npy"])
    ['a', 'b-c', 'a-2']
    """
    taken: list[str] = []
    for name in names:
        clean = "".join(c if c.isalnum() or c in "._-" else "-" for c in Path(name).stem).strip(".-") or "film"
        number = 1
        while (chosen := clean if number == 1 else f"{clean}-{number}") in taken:
            number += 1
        taken.append(chosen)
    return taken


def start_over(target: Path) -> None:
    """Remove what an earlier run would be continued from."""
    for path in [*(target / "tasks").glob("*.*"), target / "timings.json"]:
        path.unlink(missing_ok=True)
