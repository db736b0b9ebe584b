"""Paint the pictures of predicted.mp4: a frame, its prediction, the error, and the scores so far."""

from collections.abc import Iterable
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from psmt.data.contract import channels, grey
from psmt.data.readers.film_writer import Picture
from psmt.evaluation import FrameRow
from psmt.report.numbers import ratio
from psmt.types import Levels

GROUND, RULE, QUIET, INK = "#14171b", "#343a42", "#a0a9b4", "#f2f4f7"
BETTER, WORSE = "#56b4e9", "#e69f00"
"""Colours (sky blue and orange of Okabe and Ito) that colour-blind people can distinguish."""

WIDEST = 4096
"""Largest width in pixels of a film that most players decode."""
_READABLE = 360  # panels narrower than this number of pixels are enlarged
STRIP = 320
"""Width in pixels of each of the three pictures of an event."""
_BEST, _WORST = np.log2(1 / 8), np.log2(2)
"""Ends of the chart's scale: an eighth and twice the error of copying."""


def error_gain(past: ArrayLike) -> int:
    """Return the factor that makes errors visible. It is computed from the changes between past frames (time, ..)."""
    change = float(np.sqrt(np.mean(np.diff(np.asarray(past), axis=0) ** 2)))
    return int(np.clip(round(0.3 / max(change, 1e-6)), 1, 20))


def error_colours(predicted: Levels, frame: Levels, gain: float) -> NDArray[np.floating]:
    """Return errors of brightness as colours (height, width, 3): orange where too bright, blue where too dark."""
    error = grey(predicted) - grey(frame)
    strength = np.clip(gain * np.abs(error), 0, 1)[:, :, None]
    return np.asarray(strength * np.where(error[:, :, None] > 0, to_rgb(WORSE), to_rgb(BETTER)))


def pixels(frame: NDArray[np.floating]) -> Picture:
    """Return a grey or colour frame as bytes (height, width, 3). Levels outside the range 0 to 1 are clipped."""
    return np.asarray(np.clip(255 * channels(frame, colour=True) + 0.5, 0, 255), dtype=np.uint8)


def event_strip(last: Levels, predicted: Levels, frame: Levels) -> bytes:
    """Return a JPEG file of an event with three pictures: the frame before, the predicted frame, and the true frame."""
    titles = ("the frame before", "what was expected", "what came")
    pictures = [Image.fromarray(pixels(own)) for own in (last, predicted, frame)]
    width, height = pictures[0].size
    width, height = STRIP, max(round(STRIP * height / width), 1)
    unit = STRIP // 16  # on a phone, the titles are still readable
    canvas = Image.new("RGB", (3 * width + 2 * unit, height + 2 * unit), GROUND)
    draw = ImageDraw.Draw(canvas)
    for k, (title, picture) in enumerate(zip(titles, pictures, strict=True)):
        left = k * (width + unit)
        canvas.paste(picture.resize((width, height)), (left, 2 * unit))
        draw.text((left + 0.4 * unit, 0.4 * unit), title, font=_font(unit), fill=INK)
    file = BytesIO()
    canvas.save(file, format="jpeg", quality=85)
    return file.getvalue()


class FilmPainter:
    """Paints the pictures of one film, one after the other. Frames have the `shape` (height, width).

    Each picture has a bar chart of the scores so far, with room for `horizon` frames. If `horizon` is None, the chart
    is emptied when it is full. Errors are multiplied by `gain`. `painted` are the scores of frames that an interrupted
    run has painted. Their bars are drawn first.
    """

    def __init__(
        self, shape: tuple[int, int], *, horizon: int | None, gain: int, painted: Iterable[FrameRow] = ()
    ) -> None:
        height, width = shape
        self._enlarge = max(1, -(-_READABLE // width))
        self._shrink = max(1, -(-3 * width // (WIDEST - 128)))
        self._gain = gain
        panel = Image.fromarray(self._fit(np.zeros((height, width, 3)))).size
        unit = max(3 * panel[0] // 75, 10)
        self._unit, self._panel = unit, panel
        # Scores and chart come first, and the bottom is empty: there, browsers put the controls of the player.
        self._size = 3 * panel[0] + 4 * unit, panel[1] + 17 * unit
        self._chart = 8.5 * unit, 3.4 * unit, self._size[0] - unit, 8.1 * unit
        self._top = 12 * unit
        self._text, self._small = _font(unit), _font(round(0.82 * unit))
        self._n_bars, self._n = horizon or 500, 0
        self._errors = np.zeros(2)
        self._background = self._paint_background()
        for row in painted:
            self._add_bar(row)

    def paint(self, row: FrameRow, copy_psnr: float, frame: Levels, predicted: Levels) -> Picture:
        """Return the next picture: a frame, its prediction, the error of the brightness, and the scores in `row`."""
        self._add_bar(row)
        canvas, unit = self._background.copy(), self._unit
        for k, picture in enumerate((frame, predicted, error_colours(predicted, frame, self._gain))):
            canvas.paste(Image.fromarray(self._fit(picture)), (unit + k * (self._panel[0] + unit), self._top))
        draw = ImageDraw.Draw(canvas)
        so_far = self._errors[0] / self._errors[1] if self._errors[1] > 0 else np.nan
        x = self._write(draw, unit, unit, ("frame ", QUIET), (f"{row.frame:,}", INK))
        left = [("MSE ÷ copying ", QUIET), (ratio(row.ratio), _ratio_colour(row.ratio)), ("  so far ", QUIET)]
        left += [(ratio(so_far), _ratio_colour(so_far)), ("  cut" if row.cut else "", WORSE)]
        self._write(draw, x + 2 * unit, unit, *left)
        right = (("PSNR ", QUIET), (f"{row.psnr:.1f} dB", INK), ("  copying ", QUIET), (f"{copy_psnr:.1f} dB", INK))
        width = sum(draw.textlength(text, font=self._text) for text, _ in right)
        self._write(draw, self._size[0] - unit - width, unit, *right)
        return np.asarray(canvas)

    def _fit(self, picture: NDArray[np.floating]) -> Picture:
        """Return a frame as bytes (see `pixels`), enlarged or reduced to the size of a panel."""
        shown = pixels(picture)
        if self._shrink > 1:
            return np.asarray(Image.fromarray(shown).reduce(self._shrink))
        return shown.repeat(self._enlarge, axis=0).repeat(self._enlarge, axis=1)

    def _paint_background(self) -> Image.Image:
        canvas, unit = Image.new("RGB", self._size, GROUND), self._unit
        draw = ImageDraw.Draw(canvas)
        titles = {
            "film": "",
            "prediction": "expected one frame ahead",
            f"error × {self._gain}": "orange too bright, blue too dark",
        }
        for k, (title, note) in enumerate(titles.items()):
            x = unit + k * (self._panel[0] + unit)
            end = self._write(draw, x, self._top - 1.6 * unit, (title, INK))
            if end + unit + draw.textlength(note, font=self._small) < x + self._panel[0]:
                draw.text((end + 0.8 * unit, self._top - 1.45 * unit), note, font=self._small, fill=QUIET)
        left, _, right, bottom = self._chart
        for value, text in {0.25: "0.25", 0.5: "", 1.0: "copying = 1", 2.0: ""}.items():
            y = self._level(value)
            draw.line((left, y, right, y), fill=QUIET if value == 1 else RULE, width=max(unit // 12, 1))
            length = draw.textlength(text, font=self._small)
            draw.text((left - length - 0.6 * unit, y - 0.55 * unit), text, font=self._small, fill=QUIET)
        note = "one bar per frame; below the line the frame predictor is better than copying the last frame"
        draw.text((left, bottom + 0.45 * unit), note, font=self._small, fill=QUIET)
        return canvas

    def _level(self, ratio: float) -> float:
        """Return the vertical position, in pixels, of an error ratio in the bar chart."""
        _, top, _, bottom = self._chart
        share = (np.clip(np.log2(max(ratio, 1e-9)), _BEST, _WORST) - _BEST) / (_WORST - _BEST)
        return float(bottom - share * (bottom - top))

    def _add_bar(self, row: FrameRow) -> None:
        """Add the bar of a frame to the background, from which all later pictures are made."""
        self._errors += row.mse, row.copy_mse
        if self._n == self._n_bars:
            self._n, self._background = 0, self._paint_background()
        left, _, right, _ = self._chart
        step = (right - left) / self._n_bars
        x = left + self._n * step
        self._n += 1
        if np.isfinite(row.ratio):
            y, one = self._level(row.ratio), self._level(1.0)
            box = (x, min(y, one), max(x + 0.8 * step, x + 1) - 1, max(y, one))
            ImageDraw.Draw(self._background).rectangle(box, fill=_ratio_colour(row.ratio))

    def _write(self, draw: ImageDraw.ImageDraw, x: float, y: float, *parts: tuple[str, str]) -> float:
        """Write pairs of (text, colour) in one line from (x, y) on. Return the x where the line ends."""
        for text, colour in parts:
            draw.text((x, y), text, font=self._text, fill=colour)
            x += draw.textlength(text, font=self._text)
        return x


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont:
    # The font of matplotlib is the same on every machine.
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)


def _ratio_colour(value: float) -> str:
    return INK if not np.isfinite(value) else BETTER if value < 1 else WORSE
