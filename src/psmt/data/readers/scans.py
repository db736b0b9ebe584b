"""Brain scans: 4-D NIfTI files and BIDS derivatives as series of regions, by nilearn's maskers (`psmt[brain]`)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import trouble_named
from psmt.types import Array
from psmt.utils.files import never_ends

STRATEGIES = ("simple", "compcor", "ica_aroma", "scrubbing")
"""Confound strategies of `nilearn.interfaces.fmriprep.load_confounds_strategy`."""

_STRETCH = 1_032
"""Largest expansion of one byte by deflate."""

MOST_FEATURES = 2_000
"""Largest number of regions or voxels; the methods solve for matrices of this size."""


@dataclass(frozen=True, kw_only=True)
class Parcels:
    """How a scan becomes a series. Without atlas and mask, nilearn finds the brain."""

    atlas: Path | None = None  # 3-D label image, or 4-D image of maps
    mask: Path | None = None  # voxels to use if there is no atlas
    confounds: str | None = None  # one of `STRATEGIES` for scans of fMRIPrep, or a table (.tsv or .csv) of regressors
    tr: float | None = None  # repetition time in seconds; None reads it from the file
    high_pass: float | None = None  # cut-off frequency in Hz
    low_pass: float | None = None  # cut-off frequency in Hz
    smoothing: float | None = None  # full width at half maximum in mm


@dataclass(frozen=True)
class Scan:
    """The series of one scan."""

    values: Array
    """(time, n_regions)"""
    regions: tuple[str, ...]
    tr: float | None
    remarks: tuple[str, ...]


def is_scan(path: Path) -> bool:
    """Whether the file name is that of a NIfTI file."""
    return path.name.lower().endswith((".nii", ".nii.gz"))


def find_scans(folder: Path) -> dict[str, Path]:
    """Preprocessed scans in a BIDS derivatives folder, by subject, session, task and run.

    If a scan exists in several spaces, MNI space is used.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("sub-*/**/func/*_desc-preproc_bold.nii*")):
        parts = [part for part in path.name.split("_") if part.partition("-")[0] in ("sub", "ses", "task", "run")]
        found.setdefault("_".join(parts), []).append(path)
    if not found:
        raise FrameSourceError(
            f"{folder} holds no sub-*/[ses-*/]func/*_desc-preproc_bold.nii.gz; give the derivatives folder that "
            "fMRIPrep wrote, or the files themselves"
        )
    return {name: next((p for p in paths if "space-MNI" in p.name), paths[0]) for name, paths in found.items()}


def read_scan(path: Path, parcels: Parcels) -> Scan:
    """Read one scan: regions of an atlas, or voxels of a mask."""
    if not (find_spec("nibabel") and find_spec("nilearn")):
        raise FrameSourceError(
            f"{path} is a scan, which needs nilearn: pip install 'psmt[brain]'; or give tables (time, regions)"
        )
    # nibabel and nilearn raise many kinds of errors for damaged files.
    with trouble_named(f"{path} cannot be read as a scan", FrameSourceError):
        return _read(path, parcels)


def _read(path: Path, parcels: Parcels) -> Scan:
    import nilearn.image

    image = load_image(path)
    if len(image.shape) != 4 or image.shape[3] < 2:
        raise FrameSourceError(f"{path} has shape {image.shape}; a scan is 4-D, (x, y, z, time)")
    tr = parcels.tr or _repetition_time(image)
    if tr is None and (parcels.high_pass or parcels.low_pass):
        raise FrameSourceError(f"{path} has no TR in its header, and a filter in Hz needs it; give --tr SECONDS")
    finite, remarks = _finite_voxels(image, path)
    confounds, kept = _confounds(path, parcels)
    how: dict[str, Any] = {
        "smoothing_fwhm": parcels.smoothing,
        "high_pass": parcels.high_pass,
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
    regions = _region_names(masker, names, values.shape[1])
    if lost := sorted(set(names) - set(regions)):
        few = ", ".join(lost[:5]) + (", .." if len(lost) > 5 else "")
        remarks.append(f"{path.name}: no voxels in {len(lost)} regions of the atlas ({few})")
    if values.shape[1] > MOST_FEATURES:
        raise FrameSourceError(
            f"{path} has {values.shape[1]:,} voxels in its mask, more than {MOST_FEATURES:,}; give an --atlas, or a "
            "--mask of a part of the brain"
        )
    return Scan(np.asarray(values, dtype=np.float64), regions, tr, tuple(remarks))


def load_image(path: Path) -> Any:
    """Open a NIfTI image without reading its data; raise if the file is smaller than its header declares."""
    import nibabel

    if not path.exists():
        raise FrameSourceError(f"{path} does not exist; give a NIfTI image")
    if never_ends(path):
        raise FrameSourceError(f"{path} is a pipe or a device, not a NIfTI file")
    with trouble_named(f"{path} cannot be read as NIfTI", FrameSourceError):
        image: Any = nibabel.load(path)
        declared = prod(image.shape) * image.header.get_data_dtype().itemsize
    most = path.stat().st_size * (_STRETCH if path.suffix.lower() == ".gz" else 1)
    if declared > most:
        raise FrameSourceError(
            f"{path} declares the shape {image.shape}, which is {declared:,} bytes, but the file cannot hold more than "
            f"{most:,}; copy it again"
        )
    return image


def _repetition_time(image: Any) -> float | None:
    """Repetition time in seconds from the header; None if it has none."""
    tr = float(image.header.get_zooms()[3])
    unit = image.header.get_xyzt_units()[1]
    tr *= {"msec": 1e-3, "usec": 1e-6}.get(unit, 1.0)
    return tr if np.isfinite(tr) and tr > 0 else None


def _finite_voxels(image: Any, path: Path) -> tuple[Any, list[str]]:
    """Image (x, y, z) of the voxels that are finite at all times, and a remark if some are not."""
    import nilearn.image

    finite: NDArray[np.bool_] = np.ones(image.shape[:3], dtype=bool)
    for t in range(image.shape[3]):  # one volume at a time, as a scan may not fit into memory
        finite &= np.isfinite(np.asanyarray(image.dataobj[..., t]))
    bad = int((~finite).sum())
    remarks = [f"{path.name}: {bad:,} voxels are not finite and are left out"] if bad else []
    return nilearn.image.new_img_like(image, finite.astype(np.int8), copy_header=False), remarks


def _masker(parcels: Parcels, finite: Any, how: dict[str, Any]) -> tuple[Any, list[str]]:
    """The masker of nilearn, and the names of the atlas's regions."""
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
        raise FrameSourceError(f"atlas {parcels.atlas} has no label above 0; give an image of positive integers")
    return NiftiLabelsMasker(atlas, mask_img=finite, **how), [f"region {label}" for label in labels]


def _region_names(masker: Any, names: list[str], count: int) -> tuple[str, ...]:
    """Names of the columns: labels for which the masker found voxels, maps, or voxels."""
    if names and names[0].startswith("region"):
        kept = [int(label) for label in masker.region_ids_.values() if label not in ("background", 0)]
        return tuple(f"region {label}" for label in kept)
    return tuple(names) if names else tuple(f"voxel {k + 1}" for k in range(count))


def _confounds(path: Path, parcels: Parcels) -> tuple[Any, Any]:
    """Regressors (time, n) and the volumes that are kept; None for all."""
    asked = parcels.confounds
    if asked is None:
        return None, None
    if asked not in STRATEGIES:
        return _table(Path(asked)), None
    from nilearn.interfaces.fmriprep import load_confounds_strategy

    try:
        confounds, kept = load_confounds_strategy(str(path), denoise_strategy=asked)
    except (ValueError, OSError) as error:
        raise FrameSourceError(
            f"{path}: no confounds for strategy {asked!r} ({error}); give a table instead"
        ) from error
    if kept is not None and np.any(np.diff(kept) != 1):
        raise FrameSourceError(
            f"{path}: strategy {asked!r} removes volumes from the middle of the scan, but dynamics are learned from "
            "consecutive volumes; use another strategy, such as simple"
        )
    return confounds, kept


def _table(path: Path) -> Array:
    """Regressors (time, n) of a table; a missing first value of a derivative is replaced by the second."""
    if not path.exists():
        raise FrameSourceError(
            f"confounds {str(path)!r} is neither a table nor a strategy; strategies are {', '.join(STRATEGIES)}"
        )
    if never_ends(path):
        raise FrameSourceError(f"confounds {path} is a pipe or a device, not a table")
    with trouble_named(f"confounds {path} cannot be read as a table", FrameSourceError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty table is reported below
        table = np.genfromtxt(path, delimiter="\t" if path.suffix == ".tsv" else ",", skip_header=1, ndmin=2)
    if len(table) < 2:
        raise FrameSourceError(f"confounds {path} has {len(table)} lines of numbers; it needs one per volume")
    table[0] = np.where(np.isnan(table[0]), table[1], table[0])
    if np.isnan(table).any():
        raise FrameSourceError(f"{path} has missing values after the first line; fill or remove them")
    return np.asarray(table, dtype=np.float64)
