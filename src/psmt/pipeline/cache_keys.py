"""Keys: hashes of all that a result depends on, the inputs and the code.

Code counts as its text. A parsed module would not change with its comments, but it changes with the Python that parses
it, and then no two machines would agree.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from psmt.utils.disk_series import StoredSeries, blocks

_PACKAGE = Path(__file__).parents[1]

_COMMENT = re.compile(r"#.*")
_IMPORT = re.compile(r"(?:^|[:;])[ \t]*((?:from|import)\b(?:[^\n(\\]|\\\n)*(?:\([^)]*\))?)", re.MULTILINE)
"""What looks like an import statement. To parse these alone takes milliseconds; to parse all modules, half a second."""


_NAMED = re.compile(r"""["'](\w+(?:\.\w+)+)["']""")
"""What looks like the name of a module in a string, as those have that import modules by name."""


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
    if isinstance(value, StoredSeries):
        # As the array that it stands for.
        _describe(digest, value.dtype, value.shape)
        for block in blocks(value):
            digest.update(block.reshape(-1).view(np.uint8))
    elif isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"{where} is an array of objects; tasks take arrays of numbers")
        _describe(digest, value.dtype, value.shape)
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8) if value.size else b"")
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


def _describe(digest: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    described = f"{np.lib.format.dtype_to_descr(dtype)!r}{shape}".encode()
    digest.update(b"a" + struct.pack("<q", len(described)) + described)


def hash_code(function: Callable[..., object]) -> str:
    """Hash of the module of a function and of every module of psmt that it reaches by imports, as 64 hex digits.

    Imports inside functions count too: they are found in the text, and nothing is imported for it. Of other packages
    than psmt, the module of the function counts alone. Files are read once per process.
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
    """Hash of these modules of the package in a folder, and of all of it that they reach; other names are passed by."""
    texts: dict[str, str] = {}
    pending = set(names)
    while pending:
        name = pending.pop()
        path = _file(name, package)
        if path is None or name in texts:
            continue
        texts[name] = _read(path)
        pending |= _imports(texts[name], name if path.name == "__init__.py" else name.rpartition(".")[0])
        if "iter_modules(__path__)" in texts[name]:  # a package that imports all modules of its folder
            pending |= {f"{name}.{module.stem}" for module in path.parent.glob("*.py")}
        # Kernels are named by no import statement.
        texts |= {kernel.relative_to(package).as_posix(): _read(kernel) for kernel in path.parent.glob("*.cu")}
    # The package's own file gives names to what its modules hold, and has its version.
    texts.pop(package.name, None)
    return hash_values(texts, where="code of")


def _file(name: str, package: Path) -> Path | None:
    """Return the file of a module, if the package has it."""
    top, *parts = name.split(".")
    path = package.joinpath(*parts)
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in files if top == package.name and file.is_file()), None)


@cache
def _read(path: Path) -> str:
    """Return the text of a file, with the same newlines wherever it was checked out."""
    return path.read_text(encoding="utf-8")


def _imports(text: str, parent: str) -> frozenset[str]:
    """Names that may be modules: all that the text of a module in the package `parent` imports, or has in a string."""
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
