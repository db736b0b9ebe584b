"""Results of tasks in files: .npz, equal bytes for equal content, and what is damaged counts as not there.

A file says at its end which task it is of, and the hash of what it holds: names, layouts and numbers. So no result is
taken for another, and none that was changed is believed.
"""

from __future__ import annotations

import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np

from psmt.persistence.zip_archive import Archive, ArchiveError
from psmt.types import Result
from psmt.utils.files import writing

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of all members of a file, the earliest that a zip can hold."""


def save_result(path: Path, key: str, result: Result) -> None:
    """Write a result as .npz with equal bytes for equal content, which `numpy.savez` does not promise."""
    # Somebody on another machine may take our temporary file for a stale one, see clear_stale.
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
    """Return the result in a file, or None where there is none, one of another key, or a damaged one."""
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
    digest = sha256()
    for name, array in result.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
