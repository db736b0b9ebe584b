"""Lines of a table that grows with the film: they lie in a file, and are read again one by one."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, NamedTuple, Self, TypeVar, get_type_hints
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from psmt.errors import PSMTError
from psmt.report import csv_lines
from psmt.types import Result

Row = TypeVar("Row", bound=NamedTuple)

_WAITING = 1000
"""Lines that are held until they are written."""

_PIECE = 1 << 16
"""Bytes that are read at a time."""


class Lines(Generic[Row]):
    """Lines of one kind in the order in which they came: those of a CSV file without its head.

    How many bytes of the file count is known here and not there. So what a run that was killed wrote after its last
    checkpoint does no harm: the one that goes on writes over it, and two runs at once write the same to the same place.

    Parameters
    ----------
    kind : type
        Of the lines: a named tuple of int, float and str.
    path : path, optional
        Left out: a file that goes when nobody holds the lines.
    """

    def __init__(self, kind: type[Row], path: str | os.PathLike[str] | None = None) -> None:
        self._kind = kind
        self._folder = None
        if path is None:
            self._folder = TemporaryDirectory(prefix="psmt-")
            path = Path(self._folder.name) / "lines.csv"
        self._path = Path(path)
        self._size = self._checksum = 0
        self._waiting: list[Row] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Put some more at the end."""
        self._waiting += rows
        if len(self._waiting) >= _WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what was only held so far."""
        if not self._waiting:
            return
        text = csv_lines(self._waiting)
        # Neither "ab", which would write after what does not count, nor "wb", which would clear what does.
        with open(os.open(self._path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "wb") as file:
            file.seek(self._size)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._size, self._checksum, self._waiting = self._size + len(text), crc32(text, self._checksum), []

    def __iter__(self) -> Iterator[Row]:
        kinds = get_type_hints(self._kind).values()
        convert = [kind if kind in (int, float) else str for kind in kinds]
        for part in self._parts():
            for fields in csv.reader(part.decode().splitlines()):
                yield self._kind._make(make(field) for make, field in zip(convert, fields, strict=True))

    def table(self) -> Iterator[bytes]:
        """Yield the CSV file with its head, in parts."""
        yield csv_lines([self._kind._fields])
        yield from self._parts()

    def get_state(self) -> Result:
        """What counts of the file, where all of it is written now."""
        self.flush()
        return {"size": np.array(self._size), "checksum": np.array(self._checksum)}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Go on as the one that gave this state, if the file is as that one left it; ValueError if not."""
        self._size, self._checksum, self._waiting = int(state["size"]), int(state["checksum"]), []
        for _ in self._parts():
            pass
        return self

    def _parts(self) -> Iterator[bytes]:
        """Yield whole lines as they are in the file."""
        self.flush()
        left, checksum = self._size, 0
        if not left:
            return
        try:
            with open(self._path, "rb") as file:
                while left:
                    part = file.read(min(_PIECE, left))
                    part += file.readline(left - len(part)) if left > len(part) else b""
                    if not part:
                        break
                    left, checksum = left - len(part), crc32(part, checksum)
                    yield part
        except FileNotFoundError:
            pass
        if left or checksum != self._checksum:
            raise LinesError(f"{self._path} was changed by somebody else meanwhile; run the same command again")


class LinesError(PSMTError, ValueError):
    """Lines that are not as they were written."""


def to_columns(name: str, kind: type[Row], rows: Iterable[Row]) -> Result:
    """Return a few rows as an array per field."""
    rows = list(rows)
    return {f"{name}/{field}": np.array([row[k] for row in rows]) for k, field in enumerate(kind._fields)}


def from_columns(name: str, kind: type[Row], state: Mapping[str, NDArray[Any]]) -> list[Row]:
    """Return the rows that `to_columns` took apart."""
    columns = [state[f"{name}/{field}"].tolist() for field in kind._fields]
    return [kind(*values) for values in zip(*columns, strict=True)]
