"""Safe reading of arrays from untrusted ``.npy`` and ``.npz`` files.

Sizes in a file are checked before memory is allocated: the header of an array is parsed first, and a member of an
archive cannot unpack to more than its compressed bytes allow. Compression methods that NumPy never writes (bzip2, lzma)
are refused. All errors of zipfile, zlib and NumPy become one `ArchiveError`. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import sys
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from typing import IO, Any, NamedTuple, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from psmt.utils.files import reading, shown

_SUFFIX = ".npy"

_STRETCH = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
"""Largest number of bytes that one compressed byte can unpack to. Deflate needs at least 2 bits for 258 equal bytes."""

_NAMES = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "lzma"}
"""Compression methods that NumPy never writes. One compressed byte can unpack to millions."""

_SLACK = 1 << 16  # number of bytes that any member may unpack to, because this little memory is harmless
_BLOCK = 1 << 20

_MOST_AXES = 32


class ArchiveError(ValueError):
    """A file is not an archive of arrays, or an array in it cannot be read."""


class ArrayLayout(NamedTuple):
    """Dtype, shape and order of an array, from the header of a ``.npy`` stream."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool = False

    @property
    def n_bytes(self) -> int:
        """Return the size of the array in bytes."""
        return prod(self.shape) * self.dtype.itemsize


@contextmanager
def trouble_named(what: str, kind: type[ValueError] = ArchiveError) -> Iterator[None]:
    """Context that turns errors into the class `kind`, with a one-line message that begins with `what`.

    `FileNotFoundError` and `PermissionError` are passed on unchanged. Warnings are ignored.
    """
    filters = warnings.filters
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (kind, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        cause = shown(" ".join(str(error).split()), 400) or type(error).__name__
        raise kind(f"{what}: {cause}") from error
    finally:
        warnings.filters = filters  # an interrupt may have struck where the ``with`` statement ends


def read_layout(file: IO[bytes], what: str = "the array") -> ArrayLayout:
    """Return the layout in the header of a ``.npy`` stream, and move to the first number. Errors name `what`."""
    with trouble_named(what):
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran_order, dtype = read(file)
    if dtype.hasobject:
        raise ArchiveError(f"{what} holds Python objects, and nothing is ever unpickled (allow_pickle=False)")
    if len(shape) > _MOST_AXES or any(length < 0 for length in shape) or prod(max(length, 1) for length in shape) >> 60:
        raise ArchiveError(f"{what} has the shape {shape}, which no array has")
    return ArrayLayout(tuple(map(int, shape)), dtype, bool(fortran_order))


class Archive:
    """The arrays of a ``.npz`` file, by name. `Archive.open` opens a file as a context."""

    def __init__(self, file: zipfile.ZipFile, size: int) -> None:
        self._file = file
        self._members = {info.filename.removesuffix(_SUFFIX): info for info in file.infolist()}
        if len(self._members) < len(file.infolist()):
            raise ArchiveError("two members of the archive have one name")
        if odd := next((name for name in self._members if not name.isprintable()), None):
            raise ArchiveError(f"a member has the name {shown(repr(odd))}, which cannot be printed")
        packed = sum(info.compress_size for info in self._members.values())
        if packed > size:
            raise ArchiveError(f"its members take {packed:,} bytes, but the file has {size:,}")

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Yield the archive in a file. The file stays open inside the context."""
        with ExitStack() as stack:
            with trouble_named("no archive"):
                file = stack.enter_context(reading(path, ArchiveError))
                archive = cls(stack.enter_context(zipfile.ZipFile(file)), os.fstat(file.fileno()).st_size)
            yield archive

    @property
    def comment(self) -> bytes:
        """Return the comment at the end of the zip file."""
        return self._file.comment

    @property
    def names(self) -> list[str]:
        """Return the names of the members that are arrays, in the order of the file."""
        return [name for name, info in self._members.items() if info.filename.endswith(_SUFFIX)]

    @property
    def others(self) -> list[str]:
        """Return the names of the members that are not arrays."""
        return [name for name, info in self._members.items() if not info.filename.endswith(_SUFFIX)]

    @contextmanager
    def stream(self, name: str) -> Iterator[tuple[ArrayLayout, IO[bytes]]]:
        """Yield the layout of an array and a stream of its bytes."""
        info = self._members[name]
        if info.compress_type not in _STRETCH:
            packed = _NAMES.get(info.compress_type, f"method {info.compress_type}")
            raise ArchiveError(f"{name} is packed by {packed}, but arrays are stored plain or deflated; save it again")
        with trouble_named(name):
            # Encrypted members raise here.
            member = self._file.open(info)
        with member:
            layout = read_layout(member, name)
            most = _STRETCH[info.compress_type] * info.compress_size + _SLACK
            if layout.n_bytes > min(info.file_size, most):
                raise ArchiveError(
                    f"{name} says that it is {layout.dtype} {layout.shape}, which is {layout.n_bytes:,} bytes, but the "
                    f"file cannot hold more than {min(info.file_size, most):,} of it"
                )
            yield layout, member

    def layout(self, name: str) -> ArrayLayout:
        """Return the layout of an array, after checking that the file has enough bytes for it."""
        with self.stream(name) as (layout, _):
            return layout

    def read(self, name: str) -> NDArray[Any]:
        """Return a whole array, after verifying its checksum."""
        with self.stream(name) as (layout, member), trouble_named(name):
            # Memory grows with the bytes that are read, not with the size that the header claims.
            numbers = bytearray()
            while block := member.read(_BLOCK):
                numbers += block
                if len(numbers) > layout.n_bytes:
                    break
            if len(numbers) != layout.n_bytes:
                raise ArchiveError(f"{name} has {'more' if block else 'fewer'} numbers than its shape {layout.shape}")
            array = np.frombuffer(numbers, dtype=layout.dtype)
            if array.dtype.kind == "U" and (array.view(f"{array.dtype.byteorder}u4") > sys.maxunicode).any():
                raise ArchiveError(f"{name} is a text with characters that Unicode does not have")
            return array.reshape(layout.shape, order="F" if layout.fortran_order else "C")
