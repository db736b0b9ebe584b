"""Brain scans, atlases, masks and BIDS folders that are not what their headers say."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import nibabel
import numpy as np

from fuzz.corpus import scan
from fuzz.damage import damaged
from fuzz.saved_models import series
from psmt.data.readers.scans import STRATEGIES, Parcels
from psmt.experiments.brain.subjects import find_people, read_study

Rng = np.random.Generator

HEADER = 348
NUMBERS = (0, 1, -1, 2, 3, 5, 7, 127, 255, 32767, -32768, 0.5, np.nan, np.inf, -np.inf, 1e-30, 1e30, 3.4e38)
FIELDS: dict[str, tuple[Any, ...]] = {
    "sizeof_hdr": (0, 1, 540, 1543569408, -1),
    "dim_info": (0, 255),
    "dim": (
        *([3, 6, 5, 4, 1, 1, 1, 1], [5, 6, 5, 4, 1, 30, 1, 1], [4, 6, 5, 4, 1, 1, 1, 1], [0] * 8, [-1] * 8, [8] * 8),
        *([4, 6, 5, 4, 32767, 1, 1, 1], [4, 32767, 32767, 32767, 32767, 1, 1, 1], [4, 0, 5, 4, 30, 1, 1, 1]),
        *([4, -6, 5, 4, 30, 1, 1, 1], [7, 2, 2, 2, 2, 2, 2, 2], [4, 120, 5, 2, 3, 1, 1, 1], [1, 3600] + [1] * 6),
    ),
    "intent_code": NUMBERS[:11],
    "datatype": (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2304, 9999, -1),
    "bitpix": NUMBERS[:11],
    "slice_start": NUMBERS[:11],
    "pixdim": tuple([value] * 8 for value in NUMBERS),
    "vox_offset": (0, 1, 348, 352, 352.5, 353, 1000, 1e9, 1e30, -1, np.nan, np.inf),
    "scl_slope": NUMBERS,
    "scl_inter": NUMBERS,
    "cal_max": NUMBERS,
    "xyzt_units": (0, 8, 16, 24, 32, 255),
    "toffset": NUMBERS,
    "qform_code": (0, 1, 5, 99, -1),
    "sform_code": (0, 1, 2, 99, -1),
    "quatern_b": NUMBERS,
    "qoffset_x": NUMBERS,
    "srow_x": tuple([value] * 4 for value in NUMBERS),
    "srow_y": tuple([value] * 4 for value in NUMBERS),
    "srow_z": tuple([value] * 4 for value in NUMBERS),
    "magic": (b"n+1", b"ni1", b"n+2", b"n", b"", b"\xff\xff\xff\xff"),
}
"""Fields of a NIfTI header, and what damaged or odd files have there."""

AFFINES = (
    *(np.diag([scale, scale, scale, 1.0]) for scale in (-1.0, 0.0, 1e-30, 1e30, np.nan, np.inf)),
    np.diag([2.0, 0.0, 2.0, 1.0]),  # no height
    np.ones((4, 4)),
    np.eye(4)[[2, 0, 1, 3]],  # axes in another order
    np.eye(4) + np.eye(4, k=3) * 1e6,  # far from the atlas
    np.eye(4) + 0.9 * np.eye(4, k=1),  # sheared
)
"""Where the voxels of a healthy file are said to be."""

CONFOUNDS = [
    *(
        f"{axis}{kind}"
        for axis in ("trans_x", "trans_y", "trans_z", "rot_x", "rot_y", "rot_z", "csf", "white_matter", "global_signal")
        for kind in ("", "_derivative1", "_power2", "_derivative1_power2")
    ),
    *("cosine00", "framewise_displacement", "std_dvars", "a_comp_cor_00", "non_steady_state_outlier00"),
]
CELLS = ("n/a", "nan", "inf", "x", "", "1e400", "\t", "\x1b[31m", "½")


@cache
def atlas() -> bytes:
    """Labels (6, 5, 4): five regions."""
    return nibabel.Nifti1Image((np.arange(120).reshape(6, 5, 4) % 6).astype(np.int16), np.eye(4)).to_bytes()


def _fields(content: bytes, rng: Rng) -> bytes:
    """The image behind a header with one to three other values."""
    header = nibabel.Nifti1Header(content[:HEADER], check=False)
    for name in rng.choice(list(FIELDS), size=int(rng.integers(1, 4)), replace=False):
        values = FIELDS[str(name)]
        with np.errstate(all="ignore"):
            wanted = np.asarray(values[rng.integers(len(values))])
            header[str(name)] = wanted.astype(header[str(name)].dtype)
    return header.binaryblock + content[HEADER:]


def _extensions(content: bytes, rng: Rng) -> bytes:
    size = int(rng.choice([0, 8, 16, 17, 2**31 - 1, -1, -(2**31)]))
    extension = b"\x01\0\0\0" + struct.pack("<ii", size, int(rng.integers(50))) + rng.bytes(16)
    return content[:HEADER] + extension + content[352:]


def _numbers(content: bytes, rng: Rng) -> bytes:
    """Other numbers, dtypes, shapes and affines, in a healthy file."""
    values = series(30, 120).T.reshape(6, 5, 4, 30)
    odd = (np.nan, np.inf, -np.inf, 1e38, 1e-38, 0.0)
    way = int(rng.integers(7))
    if way == 0:
        values[rng.random(values.shape) < rng.choice([0.001, 0.5, 1.0])] = odd[rng.integers(len(odd))]
    elif way == 1:
        values = values[..., : int(rng.integers(1, 4))]
    elif way == 2:
        values = values[..., 0] if rng.integers(2) else values[..., None]
    elif way == 3:
        values = np.full_like(values, odd[rng.integers(len(odd))])
    elif way == 4:
        values = 1e30 * values
    dtypes = ("f4", "f8", "i2", "u1", "i4", "c8", "c16", ">f4", ">i2", "u2")
    kind = nibabel.Nifti2Image if way == 5 else nibabel.Nifti1Image
    with np.errstate(all="ignore"):
        content = kind(values.astype(dtypes[rng.integers(len(dtypes))]), np.eye(4)).to_bytes()
    if way < 6:
        return content
    header = nibabel.Nifti1Header(content[:HEADER], check=False)  # nibabel would not write some of them
    header["sform_code"] = 2
    header["srow_x"], header["srow_y"], header["srow_z"], _ = AFFINES[rng.integers(len(AFFINES))]
    return header.binaryblock + content[HEADER:]


def _packed(content: bytes, rng: Rng) -> bytes:
    """Zipped, and more in it, or less, than its header says."""
    way = int(rng.integers(7))
    if way == 0:  # a bomb: 240 MB of zeros in a small file, and a shape of as much, or of 32 GB
        header = nibabel.Nifti1Header(content[:HEADER], check=False)
        header["dim"] = [4, *([100] * 3 if rng.integers(2) else [512] * 3), 60, 1, 1, 1]
        return _bomb(header.binaryblock + content[HEADER:352])
    if way == 6:  # a header that says that an extension of 240 MB follows
        header = nibabel.Nifti1Header(content[:HEADER], check=False)
        header["vox_offset"] = 1 << 28
        return _bomb(header.binaryblock + b"\1\0\0\0" + struct.pack("<ii", (1 << 28) - 352, 6))
    if way == 1:  # zeros behind the numbers
        return gzip.compress(content + bytes(20_000_000), 1)
    packed = gzip.compress(content, 1)
    if way == 2:
        return damaged(packed, rng)
    if way == 3:
        return packed + packed
    if way == 4:
        return packed[: int(rng.integers(len(packed)))]
    return gzip.compress(packed)


@cache
def _bomb(start: bytes) -> bytes:
    return gzip.compress(start, 1) + 24 * gzip.compress(bytes(10_000_000), 1)


WAYS: tuple[Callable[[bytes, Rng], bytes], ...] = (_fields, _fields, _fields, _extensions, _numbers, _packed, damaged)


def altered(content: bytes, rng: Rng) -> bytes:
    """An image that is altered in one way; each third is zipped."""
    content = WAYS[rng.integers(len(WAYS))](content, rng)
    return gzip.compress(content, 1) if content[:2] != b"\x1f\x8b" and not rng.integers(3) else content


def _table(rng: Rng) -> bytes:
    columns = [name for name in CONFOUNDS if rng.random() < rng.choice([1.0, 0.9, 0.3])]
    numbers = rng.standard_normal((int(rng.choice([30, 30, 1, 29])), len(columns)))
    rows = [[f"{value:.3f}" for value in row] for row in numbers]
    if rows and columns and rng.integers(2):
        rows[rng.integers(len(rows))][rng.integers(len(columns))] = CELLS[rng.integers(len(CELLS))]
    text = "\n".join("\t".join(row) for row in (columns, *rows)).encode()
    return damaged(text, rng) if text and not rng.integers(4) else text


def _bids(rng: Rng, folder: Path) -> list[str]:
    """A folder of derivatives with one to three scans, tables of confounds, and something that is no file."""
    root = folder / "derivatives"
    for subject in range(int(rng.integers(1, 4))):
        own = root / f"sub-{subject:02}" / ("ses-1/func" if rng.integers(2) else "func")
        own.mkdir(parents=True)
        name = f"sub-{subject:02}_task-rest"
        content = altered(scan(), rng) if rng.integers(2) else scan()
        packed = ".gz" if rng.integers(2) else ""
        (own / f"{name}_space-MNI_desc-preproc_bold.nii{packed}").write_bytes(content)
        if rng.integers(4):
            (own / f"{name}_desc-confounds_timeseries.tsv").write_bytes(_table(rng))
        if rng.integers(4):
            (own / f"{name}_desc-confounds_timeseries.json").write_text(str(rng.choice(["{}", "[]", "{", "null"])))
        odd = int(rng.integers(8))
        target = own / (f"{name}_desc-confounds_regressors.tsv" if odd % 2 else f"{name}_desc-preproc_bold.nii")
        if odd in (0, 1):
            os.mkfifo(target)
        elif odd in (2, 3):
            target.symlink_to(["/dev/zero", "nowhere", target.name][rng.integers(3)])
        elif odd == 4:
            target.mkdir()
    return [str(root)]


def study(rng: Rng, folder: Path) -> tuple[str, Callable[[], None]]:
    """What is read, and how: one or two scans, or a BIDS folder, with an atlas, a mask, confounds and filters."""
    how: dict[str, Any] = {}
    if rng.integers(3):
        content = altered(atlas(), rng) if not rng.integers(3) else atlas()
        path = folder / f"atlas.nii{'.gz' * int(rng.integers(2))}"
        path.write_bytes(content)
        how["atlas" if rng.integers(4) else "mask"] = path
    for name, values in {"tr": (0.72, 1e-9, 1e9), "low_pass": (0.1, 1e9), "smoothing": (4.0, 1e9)}.items():
        if not rng.integers(8):
            how[name] = values[rng.integers(len(values))]
    if not rng.integers(3):
        table = folder / "confounds.tsv"
        table.write_bytes(_table(rng))
        how["confounds"] = str(rng.choice([*STRATEGIES, str(table)]))
    if rng.integers(3):
        path = folder / f"scan\x1b[31m.nii{'.gz' * int(rng.integers(2))}"
        path.write_bytes(altered(scan(), rng))
        sources = [str(path)]
    else:
        sources = _bids(rng, folder)

    def act() -> None:
        found = read_study(find_people(sources), Parcels(**how))
        assert all(np.isfinite(own).all() for own in found.series), "a number that is not finite"
        assert all(remark.isprintable() and len(remark) < 1000 for remark in found.remarks)

    return f"{Path(sources[0]).name} with {', '.join(how) or 'nothing'}", act
