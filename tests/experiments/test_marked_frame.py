"""The still: the right frame, and the square around the right pixels."""

import io

import numpy as np
from PIL import Image

from psmt.data import GlideFilm, open_frames, open_series
from psmt.data.patches import PatchCutter
from psmt.experiments.film_report import INDEX, FilmRecord, marked_frame
from psmt.experiments.options.sources import PatchOptions

GREY = FilmRecord(name="grey", checksum=None, n_frames=3)


def test_the_still_is_a_frame_some_way_in_or_the_last():
    film, cutter = GlideFilm(n_frames=200, size=48), PatchCutter(frame_size=48, patch_size=8, position=(3, 21))
    still = marked_frame(film, cutter, GREY)
    assert still.caption.startswith(f"Frame {INDEX} of grey.") and "8 × 8 pixels" in still.caption
    shown = np.asarray(Image.open(io.BytesIO(still.png)).convert("L").resize((48, 48))) / 255
    expected = cutter.reduce(film.frame(INDEX))
    assert np.corrcoef(shown[20:].ravel(), expected[20:].ravel())[0, 1] > 0.99  # below the square
    assert marked_frame(film.head(7), cutter, GREY).caption.startswith("Frame 6 of")


def test_the_square_surrounds_the_patch():
    grey = open_frames(np.full((3, 60, 60), 128, dtype=np.uint8))
    still = marked_frame(grey, PatchCutter(frame_size=60, patch_size=10, position=(20, 30)), GREY)
    picture = np.asarray(Image.open(io.BytesIO(still.png)).convert("RGB")).astype(int)
    factor = len(picture) // 60
    coloured = np.argwhere(np.ptp(picture, axis=2) > 40) / factor
    assert np.allclose(coloured.min(axis=0), (20, 30), atol=1)
    assert np.allclose(coloured.max(axis=0), (30, 40), atol=1)
    inside = picture[20 * factor : 30 * factor, 30 * factor : 40 * factor]
    assert np.all(np.ptp(inside, axis=2) == 0)


def test_a_series_has_no_still_and_no_regime():
    options = PatchOptions()
    series = open_series(np.random.default_rng(0).standard_normal((90, 256)))
    assert options.still(series, GREY) is None
    assert options.record(series, series.values, motion=True).regime is None
