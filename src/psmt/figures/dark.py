"""Make versions of figures for dark pages: light and dark are exchanged in drawings, but not in pictures.

Pictures (photographs, frames, atoms) must not be inverted. So `psmt.figures.style.png` writes their positions into the
PNG file, and `darkened` leaves them unchanged. A heat map is a drawing, because its white is the colour of the page.
"""

import json
from io import BytesIO

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from psmt.types import Array

PAPER = (0x1D, 0x21, 0x26)
"""Red, green and blue of the colour that replaces white on a dark page."""

PLACES = "psmt-pictures"
"""Name of the PNG text chunk with the positions of the pictures: left, top, right and bottom, in pixels."""

N_COLOURS = 128
"""Number of colours of a figure: half of a palette. The other half has the colours of the dark version."""

ON_PAPER = "drawn on paper"
"""``gid`` of a coloured image that is a drawing on white and not a photograph."""


def picture_places(figure: Figure, dpi: float) -> PngInfo:
    """Return a PNG text chunk with the positions of all pictures in a drawn figure (see `PLACES`)."""
    height = figure.get_size_inches()[1] * dpi
    scale = dpi / figure.dpi
    places = []
    for axes in figure.axes:
        for image in filter(_is_picture, axes.images):
            box = image.get_window_extent()
            left, right = sorted(scale * x for x in (box.x0, box.x1))
            bottom, top = sorted(scale * y for y in (box.y0, box.y1))
            places.append((round(left), round(height - top), round(right), round(height - bottom)))
    info = PngInfo()
    info.add_text(PLACES, json.dumps(places))
    return info


def _is_picture(image: AxesImage) -> bool:
    """Return whether an image is a picture: a photograph, or values from black to white, such as a frame or an atom."""
    values = image.get_array()
    if values is not None and values.ndim == 3:
        return image.get_gid() != ON_PAPER
    darkest, brightest = image.get_cmap()((0.0, 1.0))
    return bool((darkest[:3] == 0).all() and (brightest[:3] == 1).all())


def is_figure(png: bytes) -> bool:
    """Return whether a PNG file is a figure that `psmt.figures.style.png` wrote."""
    return PLACES.encode() in png


def darkened(png: bytes) -> bytes | None:
    """Return the dark version of a PNG file, or None if the file is not a figure (see `is_figure`)."""
    if not is_figure(png):
        return None
    light = Image.open(BytesIO(png))
    indices = np.asarray(light).copy()
    is_picture = np.zeros(indices.shape, dtype=bool)
    for left, top, right, bottom in json.loads(light.info[PLACES]):
        is_picture[max(top, 0) : bottom, max(left, 0) : right] = True
    palette = np.array(light.getpalette(), dtype=np.float64).reshape(-1, 3)[:N_COLOURS]
    indices[~is_picture] += len(palette)
    dark = Image.fromarray(indices)
    dark.putpalette(np.concatenate([palette, swap_lightness(palette)]).round().astype(np.uint8).tobytes())
    file = BytesIO()
    dark.save(file, format="png", optimize=True, dpi=light.info.get("dpi", (150, 150)))
    return file.getvalue()


def swap_lightness(colours: Array | NDArray[np.uint8]) -> Array:
    """Return colours (n, 3) with inverted lightness and the same hue. White becomes `PAPER`.

    Channels are from 0 to 255. Lightness is the mean of the largest and the smallest channel.

    >>> swap_lightness(np.array([[255.0, 255.0, 255.0], [0.0, 0.0, 0.0]])).round().astype(int).tolist()
    [[29, 33, 38], [255, 255, 255]]
    """
    given = np.asarray(colours, dtype=np.float64) / 255
    lightness = (given.max(axis=1, keepdims=True) + given.min(axis=1, keepdims=True)) / 2
    paper = np.array(PAPER) / 255
    return np.asarray(255 * (paper + (1 - paper) * np.clip(given + 1 - 2 * lightness, 0, 1)))
