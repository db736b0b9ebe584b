"""Turn patterns (one value per region) into images of the brain: NIfTI files and pictures of glass brains."""

import zlib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from psmt.data.readers.scans import load_image
from psmt.experiments.brain.subjects import Study
from psmt.types import Array, Levels


def nifti_file(study: Study, patterns: Array) -> Iterator[bytes] | None:
    """Return the parts of a ``.nii.gz`` file with one volume per pattern (n, n_regions). None if not `has_maps`."""
    if not has_maps(study):
        return None

    def parts() -> Iterator[bytes]:
        import nibabel

        packer = zlib.compressobj(wbits=31)  # the gzip format
        for k, (volume, affine) in enumerate(brain_maps(study, patterns)):
            if not k:
                empty = np.broadcast_to(np.float32(0), (*volume.shape, len(patterns)))
                header: Any = nibabel.Nifti1Image(empty, affine).header.copy()  # type: ignore[no-untyped-call]
                header["vox_offset"], header["magic"] = 352, b"n+1"
                header.set_slope_inter(1, 0)
                yield packer.compress(header.binaryblock + bytes(4))
            yield packer.compress(volume.astype(header.get_data_dtype()).tobytes(order="F"))
        yield packer.flush()

    return parts()


def has_maps(study: Study) -> bool:
    """Return whether patterns can be drawn on the brain: there is an atlas with these regions, and nilearn."""
    if study.atlas is None or not study.numbers or not find_spec("nilearn"):
        return False
    shape = load_image(study.atlas).shape
    return len(shape) == 3 or max(study.numbers) <= shape[3]


def brain_maps(study: Study, patterns: Array) -> Iterator[tuple[Levels, Array]]:
    """Yield a volume (x, y, z) for each of the `patterns` (n, n_regions), and the affine matrix of the atlas."""
    assert study.atlas is not None
    image = load_image(study.atlas)
    labels = np.asanyarray(image.dataobj)
    if labels.ndim == 4:
        labels = labels[..., [number - 1 for number in study.numbers]]
    for pattern in patterns:
        volume = labels @ pattern if labels.ndim == 4 else paint_regions(labels, study.numbers, pattern)
        yield volume.astype(np.float32), image.affine


def paint_regions(labels: Any, numbers: Sequence[int], pattern: Array) -> Array:
    """Return an array like `labels`, with the value ``pattern[k]`` where the label is ``numbers[k]``, and 0 elsewhere.

    >>> paint_regions(np.array([0.0, 7.0, np.nan, 1e12, 2.0]), [7, 2], np.array([0.5, -1.0]))
    array([ 0. ,  0.5,  0. ,  0. , -1. ])
    """
    order = np.argsort(numbers)
    known = np.asarray(numbers)[order]
    place = np.searchsorted(known, labels).clip(max=len(known) - 1)
    return np.where(known[place] == labels, pattern[order][place], 0.0)


def glass_brains(study: Study, patterns: Array) -> list[Any]:
    """Return pictures (height, width, 3) of patterns (n, n_regions) on glass brains. [] if not `has_maps(study)`."""
    if not has_maps(study):
        return []
    import nibabel
    from nilearn.plotting import plot_glass_brain

    pictures = []
    for volume, affine in brain_maps(study, patterns):
        image: Any = nibabel.Nifti1Image(volume, affine)  # type: ignore[no-untyped-call]
        figure, drawn = Figure(figsize=(5.2, 1.6)), BytesIO()
        plot_glass_brain(image, figure=figure, display_mode="lyr", plot_abs=False, colorbar=True, annotate=False)
        figure.savefig(drawn, format="png", dpi=150, facecolor="white")
        pictures.append(np.asarray(Image.open(drawn).convert("RGB")))
    return pictures
