"""Results of tasks in files: .npz, equal bytes for equal content, and what is damaged counts as not there."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from psmt.files import writing
from psmt.types import Result

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of all members of a file, the earliest that a zip can hold."""


def save_result(path: Path, key: str, result: Result) -> None:
    """Write a result as .npz with equal bytes for equal content, which `numpy.savez` does not promise."""
    # Somebody on another machine may take our temporary file for a stale one, see clear_stale.
    for last in (False, False, True):
        try:
            with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.comment = key.encode()
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
    """Return the result in a file, or None where there is none, or a damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.comment != key.encode():
                return None
            # Reading a member whole checks its sum before anything in it is believed.
            return {
                member.filename.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(archive.read(member)), allow_pickle=False
                )
                for member in archive.infolist()
            }
    except Exception:
        # One flipped bit can make zipfile look for a password, for LZMA or for a terabyte of memory.
        return None
