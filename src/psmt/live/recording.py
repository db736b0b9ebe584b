"""The last minute, kept as the pictures that were shown, and written as a film when somebody asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from psmt.data.readers.film_writer import Picture, writing_film
from psmt.errors import PSMTError

SECONDS = 60.0
"""How much is kept."""

_MOST = 3600
"""Pictures at the most, however quickly they come: a bound on memory."""

_TITLES = ("the world now", "what is expected", "where it was wrong")
_HEAD, _GAP, _SMALLEST = 30, 10, 200
_STOPS = ((0, 6, 10, 24), (70, 58, 20, 92), (140, 190, 55, 80), (205, 249, 142, 8), (255, 252, 245, 190))
"""Levels of error and their colours, as on the page."""


class Recording:
    """The last minute of strips."""

    def __init__(self, rate: float | None = None) -> None:
        self._rate = rate
        self._strips: deque[tuple[float, bytes]] = deque(maxlen=_MOST)
        self._lock = Lock()

    def add(self, strip: bytes, time: float) -> None:
        """Keep a strip, and let go of those from more than a minute before."""
        with self._lock:
            self._strips.append((time, strip))
            while time - self._strips[0][0] > SECONDS:
                self._strips.popleft()

    @property
    def seconds(self) -> float:
        """How much there is."""
        with self._lock:
            return self._strips[-1][0] - self._strips[0][0] if self._strips else 0.0

    def film(self) -> bytes:
        """Return an MP4 file of all that is kept."""
        with self._lock:
            strips = list(self._strips)
        if len(strips) < 2:
            raise PSMTError("nothing was recorded yet; wait for some frames")
        span = strips[-1][0] - strips[0][0]
        fps = min(max((len(strips) - 1) / max(span, 1e-3), 1.0), 60.0)
        # The writer wants a name to put in place at the end; nobody else sees this folder.
        with TemporaryDirectory(prefix="psmt-live-") as folder:
            path = Path(folder) / "recording.mp4"
            with writing_film(path, fps=fps) as add:
                for picture in _pictures(strip for _, strip in strips):
                    add(picture)
            return path.read_bytes()


def _pictures(strips: Iterator[bytes]) -> Iterator[Picture]:
    """Yield pictures (height, width, 3) with a title over each of the three parts."""
    colours = error_colours()
    sheet: Image.Image | None = None
    for strip in strips:
        levels = np.asarray(Image.open(BytesIO(strip)).convert("L"))
        side = levels.shape[0]
        shown = max(side, _SMALLEST)
        if sheet is None:
            sheet = _titled(shown)
        for k in range(3):
            part = levels[:, k * side : (k + 1) * side]
            panel = colours[part] if k == 2 else np.repeat(part[:, :, None], 3, axis=2)
            enlarged = Image.fromarray(panel).resize((shown, shown), Image.Resampling.BICUBIC)
            sheet.paste(enlarged, (_GAP + k * (shown + _GAP), _HEAD))
        yield np.array(sheet)


def _titled(shown: int) -> Image.Image:
    sheet = Image.new("RGB", (3 * shown + 4 * _GAP, shown + _HEAD + _GAP), (12, 15, 22))
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
    for k, title in enumerate(_TITLES):
        draw.text((_GAP + k * (shown + _GAP), 8), title, fill=(214, 220, 230), font=font)
    return sheet


def error_colours() -> Picture:
    """Colours (256, 3) of the error map."""
    levels, *channels = zip(*_STOPS, strict=True)
    table = [np.interp(np.arange(256), levels, channel) for channel in channels]
    return np.stack(table, axis=1).round().astype(np.uint8)
