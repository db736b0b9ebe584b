"""Saved models: a zip of plain arrays and one JSON header, readable without running anything in it.

Models give and take their own state; here it becomes a file, whole or not at all. Loading is validation: a model
declares its parameters' constraints and a schema of its state, and a file is held against both before a number of it is
used. docs/how-to/model-files.md has the format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.errors import ModelFileError
from psmt.persistence.schema import Layout, Schema, check_layouts, check_state
from psmt.persistence.zip_archive import Archive, ArchiveError
from psmt.utils.files import writing

_FORMAT = "psmt-model"
_VERSION = 1
_HEADER = "header"
_LONGEST_HEADER = 1 << 24
"""Bytes of a header at the most. Those that are written have some thousands."""

Header = dict[str, Any]
"""What JSON holds."""


SchemaOf = Callable[[Header, Mapping[str, Layout]], Schema]
"""Called with a header and the layouts of all arrays, it raises unless the header is right, and gives the schema."""


def write_container(
    path: str | PathLike[str], kind: str, header: Header, arrays: Mapping[str, NDArray[Any]], schema: Schema
) -> None:
    """Write a header and arrays to `path`, as a file of the class named `kind`.

    What its schema would refuse is refused here: a file that is written can be read.
    """
    check_state(schema, arrays)
    text = json.dumps({"format": _FORMAT, "version": _VERSION, "class": kind, **header}, default=np.generic.item)
    with writing(path) as file:
        np.savez_compressed(file, allow_pickle=False, header=np.array(text), **arrays)


def read_container(path: str | PathLike[str], kind: str, schema: SchemaOf) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Header, without what names the format, and arrays of a file that holds a `kind`, in the layout of its schema.

    Whether the numbers are in range is asked where the model takes them.

    Raises
    ------
    ModelFileError
        When it is damaged, foreign, of another class, from a newer version, or not as its schema says.
    """
    name = fspath(path)
    try:
        with Archive.open(path) as archive:
            header = _header(archive)
            _check_origin(header, name, kind)
            own = {key: value for key, value in header.items() if key not in ("format", "version", "class")}
            parts = [part for part in archive.names if part != _HEADER]
            with damage_named(path):
                if archive.others:
                    raise ValueError(f"{archive.others[0]} is no array")
                layouts = {part: archive.layout(part) for part in parts}
                declared = schema(own, layouts)
                check_layouts(declared, layouts)
                arrays = {part: _native(archive.read(part)) for part in parts}
            return own, arrays
    except (ArchiveError, IsADirectoryError) as error:
        raise ModelFileError(f"{name} is not a saved model, or is damaged ({error}); save the model again") from error


def _header(archive: Archive) -> Header:
    if _HEADER not in archive.names:
        raise ArchiveError("it has no header")
    layout = archive.layout(_HEADER)
    if layout.dtype.kind != "U" or layout.shape or layout.n_bytes > _LONGEST_HEADER:
        raise ArchiveError(f"its header is {layout.dtype} {layout.shape}, no text")
    try:
        header = json.loads(str(archive.read(_HEADER)))
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"its header is no JSON: {error}") from error
    return header if isinstance(header, dict) else {}


def _check_origin(header: Header, name: str, kind: str) -> None:
    if header.get("format") != _FORMAT:
        raise ModelFileError(f"{name} is not a saved PSMT model; {kind}.save writes such files")
    if header.get("version") != _VERSION:
        raise ModelFileError(
            f"{name} has format version {header.get('version')!r}, but this psmt reads version {_VERSION}; "
            "load it with the psmt that wrote it, or upgrade psmt"
        )
    stored = header.get("class")
    if not isinstance(stored, str) or not stored.isidentifier():
        raise ModelFileError(f"{name} holds {stored!r:.80}, not a {kind}; {kind}.save writes such files")
    if stored != kind:
        raise ModelFileError(f"{name} holds a {stored}, not a {kind}; use {stored}.load")


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """A copy in the byte order of this machine; rows and columns lie as they did, or rounding would differ."""
    return array.astype(array.dtype.newbyteorder("="), order="K")


@contextmanager
def damage_named(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever does not fit together inside is the fault of the file."""
    try:
        yield
    except (ArchiveError, ModelFileError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        text = str(error) if isinstance(error, ValueError) else repr(error)
        raise ModelFileError(
            f"{fspath(path)} is damaged: its parts do not fit together ({text}); save the model again"
        ) from error


def check_prediction(predict: Callable[[], NDArray[Any]]) -> None:
    """Raise unless a model that was put together again predicts finite numbers: the last of all checks."""
    with np.errstate(all="ignore"):
        if not np.isfinite(predict()).all():
            raise ValueError("it predicts no finite numbers")


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, without it.

    >>> part({"moments.total": np.zeros(1), "rest": np.zeros(1)}, "moments.")
    {'total': array([0.])}
    """
    return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}


def plain(parameters: Mapping[str, Any]) -> Header:
    """Parameters as JSON holds them, but for where to compute. A generator object is state, and is left out as well."""
    values = {}
    for key, value in parameters.items():
        if key in ("device", "dtype"):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        values[key] = value if value is None or isinstance(value, bool | int | float | str) else None
    return values
