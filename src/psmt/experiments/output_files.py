"""Results as files: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from psmt.utils.files import clear_stale, writing


def write_files(folder: str | os.PathLike[str], files: Mapping[str, bytes | Iterable[bytes]]) -> None:
    """Write all files, whole or in parts, into the folder, or none; and remove half-written files of killed runs."""
    with ExitStack() as stack:
        # Files have temporary names until all are on disk, and get their own when the stack unwinds.
        for name, content in files.items():
            clear_stale(folder, name)
            stack.enter_context(writing(Path(folder) / name)).writelines(
                [content] if isinstance(content, bytes) else content
            )
