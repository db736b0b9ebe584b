"""Reader of brain scans (4-D NIfTI files, BIDS derivatives) as series of regions, by nilearn (`psmt[brain]`)."""

import os
import warnings
from dataclasses import dataclass
from gzip import GzipFile
from importlib.util import find_spec
from logging import CRITICAL
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import trouble_named
from psmt.types import Array
from psmt.utils.files import reading, shown

STRATEGIES = ("simple", "compcor", "ica_aroma", "scrubbing")
"""Confound strategies of `nilearn.interfaces.fmriprep.load_confounds_strategy`."""

_STRETCH = 1_032  # largest expansion of one byte by deflate
_LARGEST_EXTENSION = 1 << 24  # largest accepted number of bytes in an extension of a packed header

MOST_FEATURES = 2_000
"""Largest number of regions or voxels. Models solve for square matrices of this size."""


@dataclass(frozen=True, kw_only=True)
class Parcels:
    """Options for turning a scan into a series. Without atlas and mask, nilearn computes a mask of the brain."""

    atlas: Path | None = None  # 3-D label image, or 4-D image of maps
    mask: Path | None = None  # voxels to use if there is no atlas
    confounds: str | None = None  # one of `STRATEGIES` for scans of fMRIPrep, or a table (.tsv or .csv) of regressors
    tr: float | None = None  # repetition time in seconds; None reads it from the file
    low_pass: float | None = None  # cut-off frequency in Hz
    smoothing: float | None = None  # full width at half maximum in mm

    def __post_init__(self) -> None:
        for name in ("tr", "low_pass", "smoothing"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise FrameSourceError(f"{name}={value!r:.40} is not a positive number; give one, or None")


@dataclass(frozen=True)
class Scan:
    """One scan as a series of regions, with remarks about what was left out."""

    values: Array  # (time, n_regions)
    regions: tuple[str, ...]
    tr: float | None
    remarks: tuple[str, ...]
    motion: float | None = None  # mean framewise displacement in mm, or None if the confounds do not have it


def is_scan(path: Path) -> bool:
    """Return whether the suffix of a path is that of a NIfTI file."""
    return path.name.lower().endswith((".nii", ".nii.gz"))


def find_scans(folder: Path) -> dict[str, Path]:
    """Return the preprocessed scans in a BIDS derivatives folder, as a mapping of names to paths.

    A name consists of subject, session, task and run. If a scan exists in several spaces, the one in MNI space is
    taken.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(filter(is_scan, folder.glob("sub-*/**/func/*_desc-preproc_bold.nii*"))):
        parts = [part for part in path.name.split("_") if part.partition("-")[0] in ("sub", "ses", "task", "run")]
        found.setdefault("_".join(parts), []).append(path)
    if not found:
        raise FrameSourceError(
            f"{shown(folder)} holds no sub-*/[ses-*/]func/*_desc-preproc_bold.nii.gz; give the derivatives folder that "
            "fMRIPrep wrote, or the files themselves"
        )
    return {name: next((p for p in paths if "space-MNI" in p.name), paths[0]) for name, paths in found.items()}


def read_scan(path: Path, parcels: Parcels) -> Scan:
    """Return a scan as a series (time, n_regions). Its features are regions of an atlas or voxels of a mask."""
    if not (find_spec("nibabel") and find_spec("nilearn")):
        raise FrameSourceError(
            f"{shown(path)} is a scan, which needs nilearn: pip install 'psmt[brain]'; or give tables (time, regions)"
        )
    # nibabel and nilearn raise many kinds of errors for damaged files.
    with trouble_named(f"{shown(path)} cannot be read as a scan", FrameSourceError):
        return _read(path, parcels)


def _read(path: Path, parcels: Parcels) -> Scan:
    import nilearn.image

    image = load_image(path)
    if len(image.shape) != 4 or image.shape[3] < 2:
        raise FrameSourceError(f"{shown(path)} has shape {image.shape}; a scan is 4-D, (x, y, z, time)")
    if (kind := image.get_data_dtype()).kind not in "biuf":
        raise FrameSourceError(f"{shown(path)} holds {shown(kind)}; a scan holds real numbers")
    unit = {"msec": 1e-3, "usec": 1e-6}.get(image.header.get_xyzt_units()[1], 1.0)
    stored = unit * float(image.header.get_zooms()[3])
    tr = parcels.tr or (stored if np.isfinite(stored) and stored > 0 else None)
    if tr is None and parcels.low_pass:
        raise FrameSourceError(f"{shown(path)} has no TR in its header, and a filter in Hz needs it; give --tr SECONDS")
    finite, remarks = _finite_voxels(image, path, "count as 0" if parcels.atlas is None else "are left out")
    confounds, kept = _confounds(path, parcels)
    how: dict[str, Any] = {
        "smoothing_fwhm": parcels.smoothing,
        "low_pass": parcels.low_pass,
        "t_r": tr,
        "standardize": None,
        "standardize_confounds": True,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lost regions are reported in `remarks`
        if remarks:
            numbers = np.nan_to_num(image.get_fdata(dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
            image = nilearn.image.new_img_like(image, numbers, copy_header=True)
        masker, names = _masker(parcels, finite if remarks else None, how)
        values = masker.fit_transform(image, confounds=confounds, sample_mask=kept)
    if not np.isfinite(values).all():
        raise FrameSourceError(
            f"{shown(path)} has values up to {np.nanmax(np.abs(image.get_fdata())):g}, which overflow when they are "
            "averaged or filtered; divide them by their scale"
        )
    regions = _region_names(masker, names, values.shape[1])
    if lost := sorted(set(names) - set(regions)):
        few = ", ".join(lost[:5]) + (", .." if len(lost) > 5 else "")
        remarks.append(f"{shown(path.name)}: no voxels in {len(lost)} regions of the atlas ({few})")
    if values.shape[1] > MOST_FEATURES:
        raise FrameSourceError(
            f"{shown(path)} has {values.shape[1]:,} voxels in its mask, more than {MOST_FEATURES:,}; give an --atlas, "
            "or a --mask of a part of the brain"
        )
    return Scan(np.asarray(values, dtype=np.float64), regions, tr, tuple(remarks), _mean_displacement(path, parcels))


class _BoundedGzip(GzipFile):
    """Gzip reader that limits the size of each `read`. nibabel uses `read` only for headers and their extensions."""

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes. Raise ValueError if `size` exceeds 16 MiB: damaged files declare any size."""
        if size is None or not 0 <= size <= _LARGEST_EXTENSION:
            raise ValueError(f"an extension of its header has {size:,} bytes, more than {_LARGEST_EXTENSION:,}")
        return super().read(size)


def load_image(path: Path) -> Any:
    """Return a NIfTI image. Raise an error if the size that it declares exceeds the file or this machine's memory."""
    import nibabel

    nibabel.imageglobals.logger.setLevel(CRITICAL)  # it would print warnings about headers; damaged files raise errors
    with reading(path) as file, trouble_named(f"{shown(path)} cannot be read as NIfTI", FrameSourceError):
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content: Any = _BoundedGzip(fileobj=file) if packed else file
        kind: Any = nibabel.Nifti2Image if content.read(8)[4:7] == b"n+2" else nibabel.Nifti1Image
        content.seek(0)
        image = kind.from_stream(content)
        declared = prod(image.shape) * image.header.get_data_dtype().itemsize
        most = os.fstat(file.fileno()).st_size * (_STRETCH if packed else 1)
        if declared > min(most, memory := os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")):
            limit = f"the file cannot hold more than {most:,}" if most < declared else f"this machine has {memory:,}"
            raise FrameSourceError(
                f"{shown(path)} declares the shape {image.shape}, which is {declared:,} bytes, but {limit}; copy it "
                "again, or cut it into parts"
            )
        return kind(np.asanyarray(image.dataobj), image.affine, image.header)


def _finite_voxels(image: Any, path: Path, how: str) -> tuple[Any, list[str]]:
    """Return a mask image (x, y, z) of the voxels that are finite at all times, and remarks about what others do."""
    import nilearn.image

    finite: NDArray[np.bool_] = np.ones(image.shape[:3], dtype=bool)
    for t in range(image.shape[3]):  # one volume at a time, to save memory
        finite &= np.isfinite(np.asanyarray(image.dataobj[..., t]))
    if not finite.any():
        raise FrameSourceError(f"{shown(path)} has no voxel that is finite in all volumes; check how it was made")
    bad = int((~finite).sum())
    remarks = [f"{shown(path.name)}: {bad:,} voxels are not finite and {how}"] if bad else []
    return nilearn.image.new_img_like(image, finite.astype(np.int8), copy_header=False), remarks


def _masker(parcels: Parcels, finite: Any, how: dict[str, Any]) -> tuple[Any, list[str]]:
    """Return a nilearn masker and its regions' names. `how` are its keywords. The mask `finite` limits an atlas."""
    from nilearn.maskers import NiftiLabelsMasker, NiftiMapsMasker, NiftiMasker

    if parcels.atlas is None:
        mask = load_image(parcels.mask) if parcels.mask else None
        return NiftiMasker(mask_img=mask, mask_strategy="epi", **how), []
    atlas = load_image(parcels.atlas)
    if len(atlas.shape) == 4:
        return NiftiMapsMasker(atlas, mask_img=finite, **how), [f"map {k + 1}" for k in range(atlas.shape[3])]
    labels = np.unique(np.asanyarray(atlas.dataobj))
    labels = labels[(labels != 0) & np.isfinite(labels)].astype(int)
    if not len(labels):
        raise FrameSourceError(f"atlas {shown(parcels.atlas)} has no label above 0; give an image of positive integers")
    return NiftiLabelsMasker(atlas, mask_img=finite, **how), [f"region {label}" for label in labels]


def _region_names(masker: Any, names: list[str], count: int) -> tuple[str, ...]:
    """Return the names of the columns: atlas regions that have voxels or, without an atlas, `count` voxels."""
    if names and names[0].startswith("region"):
        return tuple(f"region {int(own)}" for own in masker.region_ids_.values() if own not in ("background", 0))
    return tuple(names) if names else tuple(f"voxel {k + 1}" for k in range(count))


def _confounds(path: Path, parcels: Parcels) -> tuple[Any, Any]:
    """Return the confounds (time, n) and the indices of volumes to keep. None means no confounds, or all volumes."""
    asked = parcels.confounds
    if asked is None:
        return None, None
    if asked not in STRATEGIES:
        return _table(Path(asked)), None
    from nilearn.interfaces.fmriprep import load_confounds_strategy

    with trouble_named(f"{shown(path)} has no confounds for strategy {asked!r}; give a table", FrameSourceError):
        for table in path.parent.glob("*confounds*"):
            with reading(table):  # nilearn opens these by their names, and would wait for a pipe
                pass
        confounds, kept = load_confounds_strategy(str(path), denoise_strategy=asked)
    if kept is not None and np.any(np.diff(kept) != 1):
        raise FrameSourceError(
            f"{shown(path)}: strategy {asked!r} removes volumes from the middle of the scan, but dynamics are learned "
            "from consecutive volumes; use another strategy, such as simple"
        )
    return confounds, kept


def _mean_displacement(path: Path, parcels: Parcels) -> float | None:
    """Return the mean framewise displacement from a table of confounds by fMRIPrep, or None if it is not known."""
    stem = path.name.partition("_space-")[0].partition("_desc-")[0]
    tables = [*path.parent.glob(f"{stem}_desc-confounds_*.tsv"), Path(parcels.confounds or "")]
    for table in filter(Path.is_file, tables):
        with reading(table) as file, trouble_named(f"confounds {shown(table)} cannot be read", FrameSourceError):
            found = np.genfromtxt(file, delimiter="\t" if table.suffix == ".tsv" else ",", names=True, dtype=None)
        if "framewise_displacement" in (found.dtype.names or ()):
            values = np.genfromtxt(found["framewise_displacement"].astype(str))  # the first value is n/a
            return float(np.nanmean(values)) if np.isfinite(values).any() else None
    return None


def _table(path: Path) -> Array:
    """Return regressors (time, n) from a table. Missing values in its first row are copied from the second."""
    if not path.exists():
        raise FrameSourceError(
            f"confounds {shown(path)!r} is neither a table nor a strategy; strategies are {', '.join(STRATEGIES)}"
        )
    with reading(path) as file, trouble_named(f"confounds {shown(path)} cannot be read as a table", FrameSourceError):
        table = np.genfromtxt(file, delimiter="\t" if path.suffix == ".tsv" else ",", skip_header=1, ndmin=2)
    if len(table) < 2:
        raise FrameSourceError(f"confounds {shown(path)} has {len(table)} lines of numbers; it needs one per volume")
    table[0] = np.where(np.isnan(table[0]), table[1], table[0])
    if np.isnan(table).any():
        raise FrameSourceError(f"{shown(path)} has missing values after the first line; fill or remove them")
    return np.asarray(table, dtype=np.float64)
