"""Saved models: a zip of plain arrays and one JSON header, readable without running anything in it.

Models give and take their own state; here it becomes a file, whole or not at all, and a file's damage gets a name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.errors import ModelFileError
from psmt.files import writing

_FORMAT = "psmt-model"
_VERSION = 1

Header = dict[str, Any]
"""What JSON holds."""


def write_container(
    path: str | PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a header and arrays to `path`, as a file of the class named `kind`."""
    text = json.dumps({"format": _FORMAT, "version": _VERSION, "class": kind, **header}, default=np.generic.item)
    with writing(path) as file:
        np.savez_compressed(file, allow_pickle=False, header=np.array(text), **arrays)


def read_container(path: str | PathLike[str], kind: str) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Header and arrays, all of finite numbers, of a file that holds a `kind`.

    Raises
    ------
    ModelFileError
        When it is damaged, foreign, of another class, or from a newer version.
    """
    name = fspath(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        header = json.loads(str(arrays.pop("header")))
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # numpy, zipfile and zlib have a dozen ways to say that a file is not theirs
        raise ModelFileError(f"{name} is not a saved model, or is damaged ({error}); save the model again") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ModelFileError(f"{name} is not a saved PSMT model; {kind}.save writes such files")
    if header.get("version") != _VERSION:
        raise ModelFileError(
            f"{name} has format version {header.get('version')}, but this psmt reads version {_VERSION}; "
            "load it with the psmt that wrote it, or upgrade psmt"
        )
    stored = header.get("class")
    if stored != kind:
        raise ModelFileError(f"{name} holds a {stored}, not a {kind}; use {stored}.load")
    with damage_named(path):
        for key, array in arrays.items():
            if array.dtype.kind not in "ifc" or not np.isfinite(array).all():
                raise ValueError(f"{key} holds something else than finite numbers")
    return header, arrays


@contextmanager
def damage_named(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever does not fit together inside is the fault of the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{fspath(path)} is damaged: its parts do not fit together ({error!r})") from error


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
