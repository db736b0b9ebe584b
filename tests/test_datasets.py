"""Data that comes with psmt has the truth that it says, one's own is taken as it is, and films can be indexed."""

import numpy as np
import pytest
from PIL import Image

from psmt import datasets
from psmt.data import GlideFilm, open_frames, open_series
from psmt.data.readers.video import VideoFilm
from psmt.errors import FrameSourceError

FRAMES = np.random.default_rng(0).integers(0, 255, (7, 8, 10), dtype=np.uint8)


# Films by index


def as_folder(folder):
    for i, frame in enumerate(FRAMES):
        Image.fromarray(frame).save(folder / f"{i}.png")
    return folder


def as_tiff(folder):
    first, *others = map(Image.fromarray, FRAMES)
    first.save(folder / "stack.tif", save_all=True, append_images=others)
    return folder / "stack.tif"


def as_npy(folder):
    np.save(folder / "frames.npy", FRAMES)
    return folder / "frames.npy"


@pytest.mark.parametrize(
    "make", [as_folder, as_tiff, as_npy, lambda _: FRAMES, lambda _: GlideFilm(n_frames=7, size=8)]
)
def test_films_have_a_length_and_frames(tmp_path, make):
    film = open_frames(make(tmp_path))
    frames = list(film)
    assert len(film) == len(frames) == 7
    np.testing.assert_array_equal(film[2], frames[2])
    np.testing.assert_array_equal(film[-1], frames[6])
    assert next(iter(film.iter_colour())).shape[-1] == 3
    assert len(film.head(3)) == 3
    with pytest.raises(IndexError, match=r"frame 7 is outside .*.* 6"):
        film[7]
    with pytest.raises(TypeError, match=r"index with an integer; .* head"):
        film[1:3]


def test_films_that_are_read_in_order_say_so(tmp_path):
    film = VideoFilm(path=tmp_path / "film.mp4", name="film.mp4", shape=(4, 4), n_frames=7)
    assert bool(film)
    with pytest.raises(TypeError, match=r"known only after reading \(its file declares 7\)"):
        len(film)
    with pytest.raises(FrameSourceError, match=r"only in order; .* .* head\(stop\)"):
        film[2]


def test_series_have_a_length_and_rows():
    series = open_series(np.arange(12.0).reshape(6, 2), stop=5)
    assert len(series) == 5
    np.testing.assert_array_equal(series[1:3], [[2, 3], [4, 5]])


# Datasets


def test_the_film_comes_with_its_motion_and_its_shape():
    data = datasets.load_glide(30, speed=0.5, patch_size=12)
    assert data.X.shape == (30, 144) and data.picture_shape == (12, 12) and len(data) == 30
    np.testing.assert_allclose(data.X.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(data.truth.speed, 0.5, rtol=1e-3)
    assert data.source[3].shape == (12, 12)


def test_the_simulator_comes_with_its_states():
    data = datasets.load_bold(200, subject=2, n_regions=20, n_states=3)
    assert data.X.shape == (200, 20) and data.picture_shape is None and len(data.feature_names) == 20
    assert set(data.truth) == {0, 1, 2}
    assert not np.array_equal(data.X, datasets.load_bold(200, n_regions=20, n_states=3).X)
    named = datasets.load("builtin:bold?frames=200&regions=20&states=3", stop=150)
    np.testing.assert_array_equal(named.X, datasets.load_bold(200, n_regions=20, n_states=3).X[:150])
    assert len(named.truth) == 150
    with pytest.raises(FrameSourceError, match="600 frames, too few for stop=700"):
        datasets.load("builtin:bold", stop=700)


def test_own_files_are_taken_as_they_are(tmp_path):
    (tmp_path / "sensors.csv").write_text("left,right\n1,2\n3,4\n5,7\n")
    data = datasets.load(tmp_path / "sensors.csv")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4], [5, 7]])
    assert data.feature_names == ("left", "right") and data.picture_shape is data.truth is None
    film = datasets.load(as_npy(tmp_path), frame_size=None, patch_size=4, stop=5)
    assert film.X.shape == (5, 16) and film.picture_shape == (4, 4) and film.truth is None
    # 16 numbers that are no picture, whatever their number.
    assert datasets.load(np.ones((5, 16))).picture_shape is None
