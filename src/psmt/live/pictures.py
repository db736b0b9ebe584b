"""Pictures that the page shows: frame, prediction and error as one JPEG strip, and the last minute as a film."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from psmt.data.readers.film_writer import Picture, writing_film
from psmt.errors import PSMTError
from psmt.types import Levels

ERROR_SCALE = 0.4
"""Absolute error that is drawn brightest. Brightness is its square root, which makes small errors visible."""


def draw_strip(frame: Levels, predicted: Levels | None, error: Levels) -> bytes:
    """Return a JPEG file (size, 3 size) of frame, prediction (grey if None) and absolute error, each (size, size)."""
    size = len(frame)
    levels = np.full((size, 3 * size), 0.5, np.float32)
    levels[:, :size] = frame
    if predicted is not None:
        levels[:, size : 2 * size] = predicted
    np.sqrt(error / np.float32(ERROR_SCALE), out=levels[:, 2 * size :])
    np.clip(levels, 0, 1, out=levels)
    file = BytesIO()
    Image.fromarray((levels * np.float32(255) + np.float32(0.5)).astype(np.uint8)).save(file, "JPEG", quality=85)
    return file.getvalue()


class Recording:
    """The strips of the last minute."""

    def __init__(self) -> None:
        # The length limits memory if frames come very fast.
        self._strips: deque[tuple[float, bytes]] = deque(maxlen=3600)
        self._lock = Lock()

    def add(self, strip: bytes, time: float) -> None:
        """Store a strip, and drop strips that are older than a minute."""
        with self._lock:
            self._strips.append((time, strip))
            while time - self._strips[0][0] > 60.0:
                self._strips.popleft()

    @property
    def seconds(self) -> float:
        """Length of the recording."""
        with self._lock:
            return self._strips[-1][0] - self._strips[0][0] if self._strips else 0.0

    def film(self) -> bytes:
        """Return the recording as an MP4 file."""
        with self._lock:
            times, strips = [time for time, _ in self._strips], [strip for _, strip in self._strips]
        if len(strips) < 2:
            raise PSMTError("nothing was recorded yet; wait for some frames")
        fps = min(max((len(strips) - 1) / max(times[-1] - times[0], 1e-3), 1.0), 60.0)
        # The film writer needs a path.
        with TemporaryDirectory(prefix="psmt-live-") as folder:
            path = Path(folder) / "recording.mp4"
            with writing_film(path, fps=fps) as add:
                for picture in _titled_pictures(strips):
                    add(picture)
            return path.read_bytes()


def _titled_pictures(strips: Iterable[bytes]) -> Iterator[Picture]:
    """Yield pictures (height, width, 3): the three parts of each strip, each with a title above it."""
    # Levels of error and their colours (red, green, blue), as in static/pictures.js.
    stops = ((0, 6, 10, 24), (70, 58, 20, 92), (140, 190, 55, 80), (205, 249, 142, 8), (255, 252, 245, 190))
    stop_levels, *channels = zip(*stops, strict=True)
    palette = np.stack([np.interp(np.arange(256), stop_levels, channel) for channel in channels], axis=1)
    palette = palette.round().astype(np.uint8)
    head, gap, sheet = 30, 10, None
    for strip in strips:
        levels = np.asarray(Image.open(BytesIO(strip)).convert("L"))
        side = len(levels)
        shown = max(side, 200)
        lefts = [gap + k * (shown + gap) for k in range(3)]
        if sheet is None:
            sheet = Image.new("RGB", (3 * shown + 4 * gap, shown + head + gap), (12, 15, 22))
            draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
            for left, title in zip(lefts, ("current frame", "prediction", "error"), strict=True):
                draw.text((left, 8), title, fill=(214, 220, 230), font=font)
        for k, left in enumerate(lefts):
            part = levels[:, k * side : (k + 1) * side]
            panel = palette[part] if k == 2 else np.repeat(part[:, :, None], 3, axis=2)
            sheet.paste(Image.fromarray(panel).resize((shown, shown), Image.Resampling.BICUBIC), (left, head))
        yield np.array(sheet)
