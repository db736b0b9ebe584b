"""The still: the right frame, and the square around the right pixels."""

import io

import numpy as np
from PIL import Image

from psmt.data import GlideFilm, open_frames, open_series
from psmt.data.patches import PatchCutter
from psmt.experiments.film_report import INDEX, read_marked_frame
from psmt.experiments.options.sources import PatchOptions


def test_the_still_is_a_frame_some_way_in_or_the_last():
    film, cutter = GlideFilm(n_frames=200, size=48), PatchCutter(frame_size=48, patch_size=8, position=(3, 21))
    still = read_marked_frame(film, cutter)
    assert still.index == INDEX
    assert np.array_equal(still.frame, cutter.reduce(film.frame(INDEX)))
    row, column = still.corner
    patch = still.frame[row : row + 8, column : column + 8]
    assert np.array_equal(patch.ravel(), cutter.cut(film.frame(INDEX)))
    assert read_marked_frame(film.head(7), cutter).index == 6


def test_the_square_surrounds_the_patch():
    grey = open_frames(np.full((3, 60, 60), 128, dtype=np.uint8))
    still = read_marked_frame(grey, PatchCutter(frame_size=60, patch_size=10, position=(20, 30)))
    picture = np.asarray(Image.open(io.BytesIO(still.png())).convert("RGB")).astype(int)
    factor = len(picture) // 60
    coloured = np.argwhere(np.ptp(picture, axis=2) > 40) / factor
    assert np.allclose(coloured.min(axis=0), (20, 30), atol=1)
    assert np.allclose(coloured.max(axis=0), (30, 40), atol=1)
    inside = picture[20 * factor : 30 * factor, 30 * factor : 40 * factor]
    assert np.all(np.ptp(inside, axis=2) == 0)


def test_a_series_has_no_still_and_no_regime():
    options = PatchOptions()
    series = open_series(np.random.default_rng(0).standard_normal((90, 256)))
    assert options.marked_frame(series) is None
    assert options.record(series, series.values, motion=True).regime is None
