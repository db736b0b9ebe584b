"""A folder of images, one per frame."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from psmt.errors import FrameSourceError
from psmt.sources.contract import Film, Opener, file_checksum
from psmt.sources.pixels import Frame, channels, scaled

__all__ = ["IMAGES", "ImageFolder", "open_images"]

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".pgm"})


@dataclass(frozen=True, kw_only=True)
class ImageFolder(Film):
    """The images of a folder in natural order of their names. Made by `open_images`."""

    path: Path
    files: tuple[Path, ...] = field(repr=False)

    def checksum(self) -> str:
        """Return the sha256 over names and bytes of all images, in order."""
        return file_checksum(*self.files, names=True)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        for file in self.files:
            pixels = _load(file)
            if pixels.shape[:2] != self.shape:
                raise FrameSourceError(
                    f"{file} is {pixels.shape[0]} x {pixels.shape[1]} pixels but {self.files[0].name} is "
                    f"{self.shape[0]} x {self.shape[1]}; all images must have one size"
                )
            yield channels(pixels, colour=colour)


def open_images(path: Path, stop: int | None = None) -> ImageFolder:
    """Return the images in the folder ``path``; hidden files and other kinds of file are passed over."""
    files = sorted(
        (file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")),
        key=natural_key,
    )
    if not files:
        kinds = ", ".join(sorted(suffix[1:] for suffix in SUFFIXES))
        raise FrameSourceError(f"{path} is a folder without images; put one image per frame there ({kinds})")
    height, width = _load(files[0]).shape[:2]
    folder = ImageFolder(
        path=path, files=tuple(files), name=path.name or str(path), shape=(height, width), n_frames=len(files)
    )
    return folder.head(stop)


def natural_key(path: Path) -> tuple[list[tuple[int, int | str]], str]:
    """Return a sorting key that puts numbers in names in order of size.

    >>> sorted(map(Path, ["img10.png", "img2.png"]), key=natural_key)[0].name
    'img2.png'
    """
    parts = re.split(r"([0-9]+)", path.stem.lower())
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts], path.name


def _load(file: Path) -> Frame:
    """Return an image as float32, ``(height, width)`` when it is grey, else ``(height, width, 3)``."""
    try:
        with Image.open(file) as image:
            if image.mode == "F" or image.mode.startswith("I"):
                pixels = np.asarray(image)
                if image.mode == "I" and (pixels.min() >= 0 and pixels.max() <= 65535):
                    # Pillow hands some 16-bit files over in 32-bit integers.
                    pixels = pixels.astype(np.uint16)
            else:
                pixels = np.asarray(image.convert("L" if image.mode in ("1", "L", "LA", "La") else "RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise FrameSourceError(f"{file} cannot be read as an image ({error}); replace or remove it") from error
    return scaled(pixels, where=str(file))


IMAGES: Opener[ImageFolder] = Opener(lambda spec: isinstance(spec, Path) and spec.is_dir(), open_images)
