"""Model files whose zip is not built as zips are: members twice, across each other, linked, locked, or without end."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile

import numpy as np

from fuzz.saved_models import saved

Rng = np.random.Generator

LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
EXTREMES = (0, 1, 7, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
NAMES = ("", "/", "../x.npy", "/etc/passwd", "header.npy/", "Header.npy", "header", "a\0b.npy", "x" * 65_000, "\x1b[2J")
DEEP = (
    "[" * 100_000,
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    '{"format": "psmt-model", "version": ' + "9" * 100_000 + "}",
    '{"format": "psmt-model", "format": "x"}',
    '"\\ud800"',
    "NaN",
    '{"' + "k" * 1_000_000 + '": 1}',
)


WAYS = (
    *("twice", "names", "link", "deep", "many", "nested", "bomb"),
    *("local", "central", "across", "end", "around", "flags", "extra"),
)


def _npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


def _places(data: bytes, mark: bytes) -> list[int]:
    places, at = [], data.find(mark)
    while at >= 0:
        places.append(at)
        at = data.find(mark, at + 4)
    return places


def _put(data: bytearray, at: int, size: int, rng: Rng) -> None:
    value = int(EXTREMES[rng.integers(len(EXTREMES))])
    data[at : at + size] = struct.pack("<I", value)[:size]


def odd_zip(kind: str, rng: Rng) -> tuple[str, bytes]:
    """What was done, and the file of a saved model of a kind with an odd structure."""
    _, header, parts = saved(kind)
    members = [("header.npy", _npy(np.array(json.dumps(header)))), *((f"{k}.npy", _npy(v)) for k, v in parts.items())]
    method = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED][rng.integers(2)]
    way = WAYS[rng.integers(len(WAYS))]
    pick = int(rng.integers(len(members)))
    attributes, extra = 0, b""
    if way == "twice":
        members.append((members[pick][0], members[rng.integers(len(members))][1]))
    elif way == "names":
        name = NAMES[rng.integers(len(NAMES))]
        members.append((name, members[pick][1]))
        if rng.integers(2):
            del members[pick]
    elif way == "link":
        attributes = 0o120777 << 16
        members[pick] = (members[pick][0], b"/etc/passwd" if rng.integers(2) else members[pick][1])
    elif way == "deep":
        members[0] = ("header.npy", _npy(np.array(DEEP[rng.integers(len(DEEP))])))
    elif way == "many":
        members += [(f"more{k}.npy", b"") for k in range(300)]
    elif way == "nested":
        members[pick] = (members[pick][0], b"PK\x05\x06" + bytes(18))
    elif way == "bomb":  # 4 MB of zeros, which say that they are the header, or a part
        text = "{'descr': '<U1000000', 'fortran_order': False, 'shape': ()}"
        start = b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"
        members[pick] = (members[pick][0], start + bytes(4_000_000))
        method = zipfile.ZIP_DEFLATED
    elif way == "extra":  # of ZIP64 and other kinds, cut short or with sizes and places of their own
        numbers = b"".join(struct.pack("<Q", int(rng.choice([0, 1, 2**32, 2**63 - 1]))) for _ in range(rng.integers(4)))
        length = len(numbers) + int(rng.choice([0, 0, 1, -1, 40_000]))
        extra = struct.pack("<HH", int(rng.choice([1, 0x7075, 0x9901, 0xCAFE])), max(length, 0)) + numbers
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w", method, compresslevel=1) as archive:
        warnings.simplefilter("ignore")  # names that come twice
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.external_attr, info.extra = method, attributes, extra
            archive.writestr(info, data)
    return f"{kind}: {way}", bytes(_patched(bytearray(content.getvalue()), way, rng))


def _patched(data: bytearray, way: str, rng: Rng) -> bytearray:
    local, central, end = _places(data, LOCAL), _places(data, CENTRAL), data.rfind(END)
    if way == "local":  # version, flags, method, time, checksum, sizes, lengths
        at, size = ((4, 2), (6, 2), (8, 2), (10, 4), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2))[rng.integers(9)]
        _put(data, local[rng.integers(len(local))] + at, size, rng)
    elif way == "central":  # the same, and disk, attributes and place
        sizes = {8: 2, 10: 2, 12: 4, 16: 4, 20: 4, 24: 4, 28: 2, 30: 2, 32: 2, 34: 2, 38: 4, 42: 4}
        at, size = list(sizes.items())[rng.integers(len(sizes))]
        _put(data, central[rng.integers(len(central))] + at, size, rng)
    elif way == "across":  # two members at one place, or one inside the other
        one, other = rng.choice(len(central), size=2, replace=len(central) < 2)
        place = int.from_bytes(data[central[other] + 42 : central[other] + 46], "little")
        place += int(rng.choice([0, 0, 1, 30, -1]))
        data[central[one] + 42 : central[one] + 46] = struct.pack("<I", place & 0xFFFFFFFF)
    elif way == "end":  # disks, counts, size and place of the directory, length of the comment
        at, size = ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2))[rng.integers(7)]
        _put(data, end + at, size, rng)
    elif way == "around":  # something before, behind, or a second end
        extras = (b"#!/bin/sh\n", bytes(1000), bytes(data[end:]), bytes(data), b"PK\x06\x07" + bytes(16))
        extra = extras[rng.integers(5)]
        return data + extra if rng.integers(2) else bytearray(extra) + data
    elif way == "flags":  # passwords, strong ones, sizes that follow, patches, hidden headers
        bit = 1 << int(rng.choice([0, 3, 5, 6, 11, 13]))
        for marks, at in ((local, 6), (central, 8)):
            if rng.integers(3):
                for place in marks:
                    flags = int.from_bytes(data[place + at : place + at + 2], "little") ^ bit
                    data[place + at : place + at + 2] = struct.pack("<H", flags)
    elif way == "extra":  # the sizes are those of the extra field
        at = int(rng.choice([20, 24, 42]))
        for place in central if rng.integers(2) else central[:1]:
            data[place + at : place + at + 4] = b"\xff" * 4
    return data
