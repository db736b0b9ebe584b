"""Results of tasks in files, and the keys that name them.

A key is a hash of everything that a result depends on: the inputs and the source code. The text of the code is hashed,
comments included, because parsed code depends on the Python version, and machines would disagree.

A result is an .npz file, with equal bytes for equal content. It ends with the key of its task and a hash of its
content. So a result cannot be taken for another, and a damaged file counts as missing.
"""

import hashlib
import inspect
import struct
import sys
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from psmt.persistence.zip_archive import Archive, ArchiveError
from psmt.types import Result
from psmt.utils.disk_series import blocks
from psmt.utils.files import writing

_PACKAGE = Path(__file__).parents[1]

_PRESENTATION = ("cli", "figures", "live", "plot", "report")
"""Folders of the package that only present results, so that changes in them leave all keys as they are."""

_EPOCH = (1980, 1, 1, 0, 0, 0)  # date of all members of a file, which is the earliest that a zip can hold


def hash_values(values: Mapping[str, object], *, where: str) -> str:
    """Return a hash of named arrays and plain values, as 64 hex digits. Error messages begin with `where`."""
    digest = hashlib.sha256()
    _feed(digest, dict(values), where)
    return digest.hexdigest()


def _feed(digest: Any, value: object, where: str) -> None:
    """Add a value to a hash: its kind, size and content, so that different values never give equal bytes."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"{where} is an array of objects; tasks take arrays of numbers")
        described = f"{np.lib.format.dtype_to_descr(value.dtype)!r}{value.shape}".encode()
        digest.update(b"a" + struct.pack("<q", len(described)) + described)
        for block in blocks(value):
            digest.update(np.ascontiguousarray(block).reshape(-1).view(np.uint8) if block.size else b"")
    elif isinstance(value, list | tuple):
        digest.update(b"l" + struct.pack("<q", len(value)))
        for item in value:
            _feed(digest, item, where)
    elif isinstance(value, dict):
        digest.update(b"d" + struct.pack("<q", len(value)))
        for name in sorted(value):
            _feed(digest, name, where)
            _feed(digest, value[name], f"{where} {name}")
    elif value is None or isinstance(value, bool | int | float | str):
        # repr() of a float is exact.
        content = f"{type(value).__name__} {value!r}".encode()
        digest.update(b"p" + struct.pack("<q", len(content)) + content)
    else:
        raise TypeError(f"{where} is a {type(value).__name__}; tasks take arrays and plain values")


@cache
def hash_code(function: Callable[..., object]) -> str:
    """Return 64 hex digits, a hash of psmt's source and, if the function is outside psmt, of its module."""
    name, text = function.__module__, ""
    if name.partition(".")[0] != _PACKAGE.name:
        file = getattr(sys.modules[name], "__file__", None)
        text = inspect.getsource(function) if file is None else Path(file).read_text(encoding="utf-8")
    return hash_values({"module": text, "psmt": hash_package()}, where=name)


@cache
def hash_package(package: Path = _PACKAGE) -> str:
    """Return a hash of all source files of a package, except `_PRESENTATION` and the file that has the version."""
    files = {path.relative_to(package).as_posix(): path for kind in ("*.py", "*.cu") for path in package.rglob(kind)}
    # Text is read with the same newlines on every machine.
    texts = {
        name: path.read_text(encoding="utf-8")
        for name, path in files.items()
        if name != "__init__.py" and name.partition("/")[0] not in _PRESENTATION
    }
    return hash_values(texts, where="code of")


def save_result(path: Path, key: str, result: Result) -> None:
    """Write a result to an .npz file. Unlike `numpy.savez`, it writes equal bytes for equal results."""
    # Another machine that shares the folder may remove our temporary file as stale; see clear_stale.
    for last in (False, False, True):
        try:
            with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.comment = f"{key} {_digest(result)}".encode()
                for name, array in result.items():
                    member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                    member.create_system = 3
                    with archive.open(member, "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, array, allow_pickle=False)
            return
        except FileNotFoundError:
            if last or not path.parent.is_dir():
                raise


def load_result(path: Path, key: str) -> Result | None:
    """Return the result in a file, or None if the file is missing or damaged, or has another key."""
    try:
        with Archive.open(path) as archive:
            stored, _, digest = archive.comment.decode(errors="replace").partition(" ")
            if stored != key or archive.others:
                return None
            result = {name: archive.read(name) for name in archive.names}
    except (ArchiveError, OSError):
        return None
    return result if _digest(result) == digest else None


def _digest(result: Result) -> str:
    """Return a hash of the content of a result, as 64 hex digits."""
    digest = hashlib.sha256()
    for name, array in result.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
