"""Patterns of regions on a glass brain, through nilearn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from psmt.types import Array


def numbers_of(regions: Sequence[str]) -> list[int]:
    """Numbers of regions of an atlas, as it calls them; none where some have other names, as tables may give them.

    >>> numbers_of(["region 3", "region 12"]), numbers_of(["region 3", "insula"]), numbers_of(["region x", ""])
    ([3, 12], [], [])
    """
    found = [re.fullmatch(r"(?:region|map) ([1-9][0-9]{0,8})", name) for name in regions]
    return [int(own[1]) for own in found if own] if all(found) else []


def painted(labels: Any, numbers: Sequence[int], pattern: Array) -> Array:
    """Volume of the shape of `labels` with the value (n_regions,) of each region that has a number, 0 elsewhere.

    >>> painted(np.array([0.0, 7.0, np.nan, 1e12, 2.0]), [7, 2], np.array([0.5, -1.0]))
    array([ 0. ,  0.5,  0. ,  0. , -1. ])
    """
    order = np.argsort(numbers)
    known = np.asarray(numbers)[order]
    place = np.searchsorted(known, labels).clip(max=len(known) - 1)
    return np.where(known[place] == labels, pattern[order][place], 0.0)


def glass_brains(atlas: Path, regions: Sequence[str], patterns: Array) -> list[Any]:
    """Pictures (height, width, 3) of patterns (n, n_regions) of an atlas's regions; none for voxels."""
    import nibabel
    from nilearn.plotting import plot_glass_brain

    image: Any = nibabel.load(atlas)
    make: Any = nibabel.Nifti1Image
    parts = np.asanyarray(image.dataobj)
    numbers = numbers_of(regions)
    if not numbers or (parts.ndim == 4 and max(numbers) > parts.shape[3]):
        return []
    pictures = []
    for pattern in patterns:
        if parts.ndim == 4:
            volume = parts[..., [number - 1 for number in numbers]] @ pattern
        else:
            volume = painted(parts, numbers, pattern)
        figure = Figure(figsize=(4.6, 1.6))
        plot_glass_brain(
            make(volume.astype(np.float32), image.affine),
            figure=figure,
            display_mode="lyr",
            plot_abs=False,
            colorbar=False,
            annotate=False,
        )
        drawn = BytesIO()
        figure.savefig(drawn, format="png", dpi=150, facecolor="white")
        pictures.append(np.asarray(Image.open(drawn).convert("RGB")))
    return pictures
