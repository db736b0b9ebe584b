"""How long a film's container says it is, in bytes: the one reliable sign that a file was cut short.

libav ends quietly at the end of a shortened file, and frame counts and durations in headers are off in many
healthy films (edit lists, dropped frames, live recordings). The sizes of the outermost boxes are exact.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

__all__ = ["declared_size"]

_EBML = b"\x1a\x45\xdf\xa3"
_VITAL = (b"moov", b"moof", b"mdat")
_SEGMENT = b"\x18\x53\x80\x67"


def declared_size(path: Path) -> int | None:
    """Return the bytes that the container of ``path`` says it spans, or None when it does not say.

    Knows MP4 and MOV (boxes), Matroska and WebM (EBML) and AVI (RIFF). A file shorter than this was cut.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(12)
        file.seek(0)
        if start[:4] == _EBML:
            return _matroska(file)
        if start[:4] == b"RIFF":
            return _riff(file, size)
        if start[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
            return _boxes(file, size)
    return None


def _boxes(file: BinaryIO, size: int) -> int | None:
    """Return where the last ISO base media box ends; None when it runs to the end of the file.

    Only boxes that pictures are lost with count: cameras append other things, not all of them boxes, to
    healthy films.
    """
    end = 0
    while end + 8 <= size:
        file.seek(end)
        head = file.read(16)
        length = int.from_bytes(head[:4], "big")
        if length == 1:
            length = int.from_bytes(head[8:16], "big")
        if length == 0:
            return None
        if length < 8 or (end + length > size and head[4:8] not in _VITAL):
            break
        end += length
    return end


def _riff(file: BinaryIO, size: int) -> int | None:
    """Return where the last RIFF chunk ends; None when the writer never filled in the length."""
    end = 0
    while end + 8 <= size:
        file.seek(end)
        head = file.read(8)
        length = int.from_bytes(head[4:8], "little")
        if head[:4] != b"RIFF" or length in (0, 0xFFFFFFFF):
            break
        end += 8 + length
    return end or None


def _matroska(file: BinaryIO) -> int | None:
    """Return where the segment ends; None for the unknown size of a live recording."""
    while identifier := file.read(4):
        length = _vint(file)
        if length is None:
            return None
        if identifier == _SEGMENT:
            return file.tell() + length
        file.seek(length, os.SEEK_CUR)
        if identifier != _EBML:
            return None
    return None


def _vint(file: BinaryIO) -> int | None:
    """Return an EBML variable-length number; None when it is the reserved "unknown"."""
    first = file.read(1)
    if not first or not first[0]:
        return None
    extra = 8 - first[0].bit_length()
    value = int.from_bytes(first + file.read(extra), "big")
    bits = 7 * (extra + 1)
    value &= (1 << bits) - 1
    return None if value == (1 << bits) - 1 else value
