"""A frame of the film with a square around the patch: the first picture of a report."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw

from psmt.data import FrameSource
from psmt.data.patches import PatchCutter
from psmt.figures.style import SETTLED
from psmt.types import Array

INDEX = 100
"""Which frame is shown, or the last of a shorter film: the first ones are often black."""

_SIDE = 480
_MARK, _EDGE = (230, 159, 0), (0, 0, 0)


@dataclass(frozen=True, eq=False)
class Still:
    """A frame, and where the patch lies in it."""

    index: int
    frame: Array
    """(size, size): reduced, before the patch was cut."""
    corner: tuple[int, int]
    """Row and column of the patch's top left pixel."""
    patch_size: int

    def png(self) -> bytes:
        """The frame as a PNG file, with a square around the patch."""
        levels = np.asarray(np.clip(255 * self.frame, 0, 255).round(), dtype=np.uint8)
        factor = max(1, round(_SIDE / len(levels)))
        side = factor * len(levels)
        picture = Image.fromarray(levels).resize((side, side), Image.Resampling.BICUBIC).convert("RGB")
        draw = ImageDraw.Draw(picture)
        top, left = (factor * start for start in self.corner)
        span = factor * self.patch_size
        # A dark line around the bright one is visible on any background.
        for colour, grow, width in ((_EDGE, 5, 5), (_MARK, 4, 3)):
            draw.rectangle(
                (left - grow, top - grow, left + span + grow - 1, top + span + grow - 1), outline=colour, width=width
            )
        file = BytesIO()
        # Maximum coverage keeps the colour of the square, which is rare.
        picture.quantize(96, method=Image.Quantize.MAXCOVERAGE, kmeans=SETTLED, dither=Image.Dither.NONE).save(
            file, format="png", optimize=True
        )
        return file.getvalue()


def read_still(film: FrameSource, cutter: PatchCutter) -> Still:
    """The still of a film that can be read again, and whose patches this cutter cuts."""
    *_, (index, frame) = enumerate(film.head(INDEX + 1))
    reduced = cutter.reduce(frame)
    return Still(index=index, frame=reduced, corner=cutter.corner(len(reduced)), patch_size=cutter.patch_size)
