"""Make docs/pictures/moving.webp: the built-in film, and its frames as they were predicted AHEAD frames before.

    python docs/pictures/moving.py

The model has learned from the LEARN frames before the first one that is shown. The error of copying stands beside that
of the model, with the same colours, so that a viewer sees what the prediction adds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont

from psmt import FramePredictor
from psmt.data import GlideFilm
from psmt.experiments.predict_video.film_painter import error_colours

SIDE, ZOOM, LEARN, SHOWN, AHEAD, GAIN = 96, 2, 300, 60, 5, 2.5
GAP, HEAD, MARGIN = 10, 26, 10
GROUND, INK = (23, 26, 31), (235, 238, 242)
TITLES = ("the film", f"predicted {AHEAD} frames before", "error of the prediction", "error of copying")


def main() -> None:
    film = GlideFilm(n_frames=LEARN + SHOWN + AHEAD, seed=3, speed=0.9, size=SIDE)
    frames = np.array([film[t] for t in range(len(film))], dtype=np.float32)
    model = FramePredictor().fit(frames[:LEARN])
    sheets, ours, copying = [], [], []
    for t in range(LEARN, LEARN + SHOWN):
        truth, last = frames[t - 1 + AHEAD], frames[t - 1]
        predicted = np.clip(model.predict(horizon=AHEAD)[-1], 0, 1)
        ours.append(np.mean((predicted - truth) ** 2))
        copying.append(np.mean((last - truth) ** 2))
        sheets.append(sheet(truth, predicted, last))
        model.update(frames[t])
    print(f"MSE ÷ copying, {AHEAD} frames ahead: {np.mean(ours) / np.mean(copying):.3f}")
    path = Path(__file__).with_suffix(".webp")
    sheets[0].save(path, save_all=True, append_images=sheets[1:], duration=80, loop=0, quality=70, method=6)


def sheet(truth: np.ndarray, predicted: np.ndarray, copied: np.ndarray) -> Image.Image:
    """Return the four pictures in two rows, each with its title above it."""
    side = SIDE * ZOOM
    whole = Image.new("RGB", (2 * side + GAP + 2 * MARGIN, 2 * (side + HEAD) + GAP + MARGIN), GROUND)
    draw = ImageDraw.Draw(whole)
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 13)
    grey = [np.repeat(picture[:, :, None], 3, axis=2) for picture in (truth, predicted)]
    colours = [error_colours(guess, truth, GAIN) for guess in (predicted, copied)]
    for i, (title, picture) in enumerate(zip(TITLES, [*grey, *colours], strict=True)):
        x, y = MARGIN + (i % 2) * (side + GAP), (i // 2) * (side + HEAD + GAP)
        draw.text((x, y + 6), title, INK, font)
        pixels = (255 * np.clip(picture, 0, 1)).round().astype(np.uint8)
        whole.paste(Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC), (x, y + HEAD))
    return whole


if __name__ == "__main__":
    main()
