"""What disks, networks and people do to files: bytes that change, go and come, and archives with odd members."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np

Rng = np.random.Generator

_NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 100_000, 1 << 30)


def damaged(content: bytes, rng: Rng) -> bytes:
    """The bytes of a file after one to three accidents."""
    for _ in range(rng.integers(1, 4)):
        content = _ACCIDENTS[rng.integers(len(_ACCIDENTS))](bytearray(content or b"\0"), rng)
    return bytes(content)


def _place(content: bytearray, rng: Rng) -> int:
    """Somewhere, and often in the first bytes, where headers are, or in the last, where directories are."""
    span = len(content)
    near = min(span, 400)
    return int([rng.integers(span), rng.integers(near), span - 1 - rng.integers(near)][rng.integers(3)])


def _flip(content: bytearray, rng: Rng) -> bytearray:
    for _ in range(rng.integers(1, 9)):
        content[_place(content, rng)] ^= 1 << int(rng.integers(8))
    return content


def _overwrite(content: bytearray, rng: Rng) -> bytearray:
    at, length = _place(content, rng), int(rng.integers(1, 64))
    fill = [bytes(length), b"\xff" * length, rng.bytes(length)][rng.integers(3)]
    content[at : at + length] = fill
    return content


def _number(content: bytearray, rng: Rng) -> bytearray:
    at, number = _place(content, rng), _NUMBERS[rng.integers(len(_NUMBERS))]
    content[at : at + 4] = struct.pack("<I" if rng.integers(2) else ">I", number)
    return content


def _truncate(content: bytearray, rng: Rng) -> bytearray:
    return content[: int(rng.integers(len(content)))]


def _drop(content: bytearray, rng: Rng) -> bytearray:
    at = _place(content, rng)
    del content[at : at + int(rng.integers(1, max(len(content) // 4, 2)))]
    return content


def _double(content: bytearray, rng: Rng) -> bytearray:
    at, length = _place(content, rng), int(rng.integers(1, 2000))
    content[at:at] = content[at : at + length]
    return content


def _insert(content: bytearray, rng: Rng) -> bytearray:
    at = _place(content, rng)
    content[at:at] = rng.bytes(int(rng.integers(1, 200)))
    return content


_ACCIDENTS = (_flip, _overwrite, _number, _truncate, _drop, _double, _insert)

NPY_HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (20000, 20000, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 4, 4), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4, 4), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True, True), }",
    "{'descr': '<f8', 'fortran_order': 1, 'shape': (2, 2), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (5, 4, 6), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (3, 4, 4), }",
    "{'descr': '<U99999999', 'fortran_order': False, 'shape': (3, 4, 4), }",
    "{'descr': [('a', '<f8'), ('b', '|O')], 'fortran_order': False, 'shape': (3, 4), }",
    "{'descr': ('<f8', (100000, 100000)), 'fortran_order': False, 'shape': (3, 4), }",
    "{'descr': 'no such dtype', 'fortran_order': False, 'shape': (3, 4), }",
    "{'descr': '<f8', 'shape': (3, 4), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), 'x': 1}",
    "__import__('os').system('touch /tmp/psmt-fuzz-was-executed')",
    "(" * 3000,
    "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 200 + ")" * 200 + "}",
    "'''",
    "",
    "\x00" * 50,
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 60 + ")}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1.5, 2)}",
    "[1, 2]",
)
"""Headers of arrays that say more, or other things, than is there."""


def with_header(content: bytes, header: str, *, version: int = 1) -> bytes:
    """The numbers of a ``.npy`` file behind another header."""
    text = header.encode("latin1")
    length = struct.pack("<H", len(text)) if version == 1 else struct.pack("<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + content[128:]


def odd_archive(content: bytes, rng: Rng) -> bytes:
    """The archive with an oddity that its checksums know of, or that its directory lies about."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    names = list(members)
    name = names[rng.integers(len(names))]
    method, oddity = zipfile.ZIP_DEFLATED, int(rng.integers(10))
    if oddity == 0:
        version = int(rng.integers(1, 4))
        members[name] = with_header(members[name], NPY_HEADERS[rng.integers(len(NPY_HEADERS))], version=version)
    elif oddity == 1:
        members[name] = damaged(members[name], rng)
    elif oddity == 2:
        members[f"{name}/../../x.npy"] = members.pop(name)
    elif oddity == 3:
        del members[name]
    elif oddity == 4:
        members["notes.txt"] = b"hello"
    elif oddity == 5:
        members[name] = members[names[rng.integers(len(names))]]
    elif oddity in (6, 7):
        method = zipfile.ZIP_LZMA if oddity == 6 else zipfile.ZIP_BZIP2
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    data = bytearray(written.getvalue())
    if oddity in (6, 7) and rng.integers(2):
        return damaged(bytes(data), rng)
    if oddity == 8:  # a password, where there is none
        _patch(data, flags=1)
    elif oddity == 9:  # a compression that nobody knows
        _patch(data, method=int(rng.choice([1, 6, 9, 12, 14, 93, 98, 99, 65535])))
    return bytes(data)


def _patch(data: bytearray, *, flags: int = 0, method: int | None = None) -> None:
    """Change all headers of members, at their data and in the directory."""
    for mark, at_flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + at_flags] |= flags
            if method is not None:
                data[at + at_flags + 2 : at + at_flags + 4] = struct.pack("<H", method)
            at = data.find(mark, at + 4)
