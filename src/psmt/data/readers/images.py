"""Readers of folders of images (one image per frame) and of multi-page TIFF files (one page per frame)."""

import ctypes
import re
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
from PIL import Image

from psmt.data.contract import Frame, IndexedFilm, channels, check_shape, file_checksum, scaled
from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import trouble_named
from psmt.utils.files import reading, shown

_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM")
"""Formats that Pillow may decode. For some others it starts programs, such as gs for PostScript."""

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".pgm"})

_MOST_PIXELS = 1 << 26
"""Largest number of pixels in an image, twice those of an 8K film. A damaged header can declare any number."""


@dataclass(frozen=True, kw_only=True)
class ImageFolder(IndexedFilm):
    """Images of a folder, one per frame, in natural order of their names: ``img2`` comes before ``img10``."""

    path: Path
    files: tuple[Path, ...] = field(repr=False)

    def checksum(self) -> str:
        """Return the sha256 of the names and bytes of all images, in order."""
        return file_checksum(*self.files, names=True)

    def _frame(self, index: int, *, colour: bool) -> Frame:
        file = self.files[index]
        with opened(file) as image:
            pixels = _single(image, file)
        check_shape(pixels.shape, self.shape, index, where=shown(file))
        return channels(pixels, colour=colour)


def open_images(path: Path, stop: int | None = None) -> ImageFolder:
    """Open the images in the folder ``path``. Hidden files, subfolders and files that are not images are skipped."""
    images = (file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith("."))
    files = sorted((file for file in images if not file.is_dir()), key=natural_key)
    if not files:
        kinds = ", ".join(sorted(suffix[1:] for suffix in SUFFIXES))
        raise FrameSourceError(f"{shown(path)} is a folder without images; put one image per frame there ({kinds})")
    with opened(files[0]) as image:
        height, width = _single(image, files[0]).shape[:2]
    return ImageFolder(
        path=path, files=tuple(files), name=shown(path.name or path), shape=(height, width), n_frames=len(files)
    ).head(stop)


def natural_key(path: Path) -> tuple[list[tuple[int, int | str]], str]:
    """Return a sorting key that compares numbers in file names by value, not digit by digit.

    >>> sorted(map(Path, ["img10.png", "img2.png"]), key=natural_key)[0].name
    'img2.png'
    """
    parts = re.split(r"([0-9]+)", path.stem.lower())
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts], path.name


@dataclass(frozen=True, kw_only=True)
class TiffStack(IndexedFilm):
    """Pages of a TIFF file, read one at a time."""

    path: Path

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes."""
        return file_checksum(self.path)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        # The file is opened once, so that each page need not be searched for from the beginning.
        with opened(self.path) as image:
            for page in range(self.n_frames):
                yield self._page(image, page, colour=colour)

    def _frame(self, index: int, *, colour: bool) -> Frame:
        with opened(self.path) as image:
            return self._page(image, index, colour=colour)

    def _page(self, image: Image.Image, page: int, *, colour: bool) -> Frame:
        where = f"{shown(self.path)}: page {page}"
        with _trouble_named(where):
            try:
                image.seek(page)
            except EOFError:
                raise FrameSourceError(f"{shown(self.path)} no longer has page {page}; open it again") from None
        pixels = _pixels(image, where)
        check_shape(pixels.shape, self.shape, page, where=where)
        return channels(pixels, colour=colour)


def open_tiff(path: Path, stop: int | None = None) -> TiffStack:
    """Open the TIFF file ``path``, whose pages are the frames. Only the first page is decoded here."""
    with opened(path) as image:
        height, width = _pixels(image, shown(path)).shape[:2]
        n_pages = _count_pages(image, path)
    return TiffStack(path=path, name=shown(path.name), shape=(height, width), n_frames=n_pages).head(stop)


@contextmanager
def opened(file: Path) -> Iterator[Image.Image]:
    """Open an image file, as a context manager. The image that it yields is not decoded yet."""
    if file.suffix.lower() in (".tif", ".tiff"):
        _silence_libtiff()
    with ExitStack() as stack:
        content = stack.enter_context(reading(file))
        with _trouble_named(file):
            image = stack.enter_context(Image.open(content, formats=_FORMATS))
        yield image


@cache
def _silence_libtiff() -> None:
    """Keep libtiff from printing messages, if this build of Pillow allows it. Damaged files still raise errors."""
    with suppress(OSError, AttributeError):
        set_handler = ctypes.CDLL(import_module("PIL._imaging").__file__).TIFFSetErrorHandler
        set_handler.argtypes, set_handler.restype = [ctypes.c_void_p], ctypes.c_void_p
        set_handler(None)


def _trouble_named(where: str | Path) -> AbstractContextManager[None]:
    """Return a context manager that turns any error of Pillow into a `FrameSourceError` about the image `where`."""
    return trouble_named(f"{shown(where)} cannot be read as an image; replace or remove it", FrameSourceError)


def _count_pages(image: Image.Image, file: Path) -> int:
    with _trouble_named(file):
        return int(getattr(image, "n_frames", 1))


def _single(image: Image.Image, file: Path) -> Frame:
    """Return the pixels of a file with one image. Raise `FrameSourceError` if the file has several pages."""
    if (n_pages := _count_pages(image, file)) > 1:
        way = "give the file itself, and its pages are the frames" if image.format == "TIFF" else "split it"
        raise FrameSourceError(f"{shown(file)} has {n_pages:,} pages, but in a folder each file is one frame; {way}")
    return _pixels(image, shown(file))


def _pixels(image: Image.Image, where: str) -> Frame:
    """Return the pixels of an image as float32: ``(height, width)`` if it is grey, otherwise ``(height, width, 3)``."""
    width, height = image.size
    if width * height > _MOST_PIXELS:
        raise FrameSourceError(f"{where} is {height:,} x {width:,} pixels, more than {_MOST_PIXELS:,}; make it smaller")
    with _trouble_named(where):
        if image.mode == "F" or image.mode.startswith("I"):
            pixels = np.asarray(image)
            if image.mode == "I" and (pixels.min() >= 0 and pixels.max() <= 65535):
                # Pillow returns some 16-bit files as 32-bit integers.
                pixels = pixels.astype(np.uint16)
        else:
            pixels = np.asarray(image.convert("L" if image.mode in ("1", "L", "LA", "La") else "RGB"))
    return scaled(pixels, where=where)
