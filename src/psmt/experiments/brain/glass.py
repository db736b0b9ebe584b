"""Patterns of regions on a glass brain, through nilearn."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from psmt.types import Array


def glass_brains(atlas: Path, regions: Sequence[str], patterns: Array) -> list[Any]:
    """Pictures (height, width, 3) of patterns (n, n_regions) of an atlas's regions; none for voxels."""
    import nibabel
    from nilearn.plotting import plot_glass_brain

    image: Any = nibabel.load(atlas)
    make: Any = nibabel.Nifti1Image
    parts = np.asanyarray(image.dataobj)
    numbers = [int(name.split()[-1]) for name in regions if name.split()[0] in ("region", "map")]
    if len(numbers) != len(regions):
        return []
    pictures = []
    for pattern in patterns:
        if parts.ndim == 4:
            volume = parts[..., [number - 1 for number in numbers]] @ pattern
        else:
            lookup = np.zeros(int(parts.max()) + 1)
            lookup[numbers] = pattern
            volume = lookup[np.nan_to_num(parts).astype(int).clip(0)]
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
