"""Results of tasks in files, and the keys that name them.

A key is a hash of everything that a result depends on: the inputs and the code. Code counts as its text. Parsed code
would not change with its comments, but it would change with the version of Python, and machines would disagree.

A result is a .npz file with equal bytes for equal content. It ends with the key of its task and a hash of what it
holds, so that no result is mistaken for another and a damaged file counts as missing.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import struct
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from psmt.persistence.zip_archive import Archive, ArchiveError
from psmt.types import Result
from psmt.utils.disk_series import blocks
from psmt.utils.files import writing

_PACKAGE = Path(__file__).parents[1]

_COMMENT = re.compile(r"#.*")
_IMPORT = re.compile(r"(?:^|[:;])[ \t]*((?:from|import)\b(?:[^\n(\\]|\\\n)*(?:\([^)]*\))?)", re.MULTILINE)
"""What looks like an import statement. Parsing only these takes milliseconds; parsing all modules, half a second."""

_NAMED = re.compile(r"""["'](\w+(?:\.\w+)+)["']""")
"""What looks like the name of a module in a string, for modules that are imported by name."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of all members of a file, the earliest that a zip can hold."""


# Keys


def hash_values(values: Mapping[str, object], *, where: str) -> str:
    """Hash of arrays and plain values by name, as 64 hex digits; errors name the value after `where`."""
    digest = hashlib.sha256()
    for name in sorted(values):
        _feed(digest, name, where)
        _feed(digest, values[name], f"{where} {name}")
    return digest.hexdigest()


def _feed(digest: Any, value: object, where: str) -> None:
    """Feed a value to a hash so that different values never give the same bytes: kind, size, content."""
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
            _feed(digest, value[name], where)
    elif value is None or isinstance(value, bool | int | float | str):
        # repr() of a float is exact.
        content = f"{type(value).__name__} {value!r}".encode()
        digest.update(b"p" + struct.pack("<q", len(content)) + content)
    else:
        raise TypeError(f"{where} is a {type(value).__name__}; tasks take arrays and plain values")


def hash_code(function: Callable[..., object]) -> str:
    """Hash of the module of a function and of every module of psmt that it reaches by imports, as 64 hex digits.

    Imports inside functions count too: they are found in the text, without importing anything. Of packages other than
    psmt, only the module of the function counts. Each file is read once per process.
    """
    name = function.__module__
    if name.partition(".")[0] == _PACKAGE.name:
        return hash_modules(frozenset({name}))
    file = getattr(sys.modules[name], "__file__", None)
    text = inspect.getsource(function) if file is None else _read(Path(file))
    reached = hash_modules(_imports(text, name.rpartition(".")[0]))
    return hash_values({"module": text, "reached": reached}, where=name)


@cache
def hash_modules(names: frozenset[str], package: Path = _PACKAGE) -> str:
    """Hash of these modules of the package in a folder, and of all its modules that they reach.

    Names that are not modules of the package are skipped.
    """
    texts: dict[str, str] = {}
    pending = set(names)
    while pending:
        name = pending.pop()
        top, *parts = name.split(".")
        base = package.joinpath(*parts)
        files = (base / "__init__.py", base.with_suffix(".py"))
        path = next((file for file in files if top == package.name and file.is_file()), None)
        if path is None or name in texts:
            continue
        texts[name] = _read(path)
        pending |= _imports(texts[name], name if path.name == "__init__.py" else name.rpartition(".")[0])
        if "iter_modules(__path__)" in texts[name]:  # a package that imports all modules of its folder
            pending |= {f"{name}.{module.stem}" for module in path.parent.glob("*.py")}
        # No import statement names the CUDA kernels beside a module.
        texts |= {kernel.relative_to(package).as_posix(): _read(kernel) for kernel in path.parent.glob("*.cu")}
    # The package's own file only names what its modules hold, and has its version.
    texts.pop(package.name, None)
    return hash_values(texts, where="code of")


@cache
def _read(path: Path) -> str:
    """Return the text of a file, with the same newlines on every machine."""
    return path.read_text(encoding="utf-8")


def _imports(text: str, parent: str) -> frozenset[str]:
    """Names that may be modules: all that a module in the package `parent` imports, or names in a string."""
    names: set[str] = set(_NAMED.findall(text))
    for found in _IMPORT.findall(_COMMENT.sub("", text)):
        # Prose may begin with the same words.
        with suppress(SyntaxError):
            for statement in ast.parse(found).body:
                if isinstance(statement, ast.Import):
                    names |= {alias.name for alias in statement.names}
                elif isinstance(statement, ast.ImportFrom):
                    above = parent.rsplit(".", statement.level - 1)[0] if statement.level else ""
                    module = ".".join(filter(None, (above, statement.module)))
                    names |= {module, *(f"{module}.{alias.name}" for alias in statement.names)}
    return frozenset(names)


# Files


def save_result(path: Path, key: str, result: Result) -> None:
    """Write a result as .npz with equal bytes for equal content, which `numpy.savez` does not promise."""
    # Another machine that shares the folder may take our temporary file for a stale one, see clear_stale.
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
    """Return the result in a file; None if the file is missing or damaged, or has another key."""
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
    """Hash of all that a result holds, as 64 hex digits."""
    digest = hashlib.sha256()
    for name, array in result.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
