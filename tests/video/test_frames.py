"""Frames at a chosen height, in luma and chroma."""

import numpy as np
import pytest

from psmt import open_frames
from psmt.data.patches import PatchCutter
from psmt.video.frames import FrameReader, has_colour, join_colour, luma, split


@pytest.fixture
def film():
    return np.random.default_rng(0).uniform(size=(3, 24, 40, 3)).astype(np.float32)


def test_luma_and_chroma_add_up(film):
    for pixels in film:
        grey, chroma = split(pixels)
        assert grey.shape == (24, 40) and chroma.shape == (2, 24, 40)
        np.testing.assert_allclose(grey, pixels @ [0.299, 0.587, 0.114], atol=1e-6)
        np.testing.assert_allclose(join_colour(grey, chroma), pixels, atol=1e-6)
    assert split(film[0, :, :, 0])[1] is None


def test_the_whole_picture_is_shrunk_in_its_own_shape(film):
    assert FrameReader(18).shape(open_frames(film)) == (18, 30)
    for small, pixels in zip(FrameReader(18).read(open_frames(film)), film, strict=True):
        assert small.shape == (18, 30, 3) and small.dtype == np.float32
        # Areas are averaged exactly: 4 x 4 pixels become 3 x 3.
        np.testing.assert_allclose(small.mean(axis=(0, 1)), pixels.mean(axis=(0, 1)), atol=1e-6)
        np.testing.assert_allclose(small[:3, :3].mean(axis=(0, 1)), pixels[:4, :4].mean(axis=(0, 1)), atol=1e-6)


def test_shrinking_is_that_of_all_other_commands(film):
    square = film[:, :, :24]
    cutter = PatchCutter(frame_size=17, patch_size=1)
    for frame, grey in zip(FrameReader(17).read(open_frames(square)), open_frames(square), strict=True):
        np.testing.assert_allclose(luma(frame), cutter.reduce(grey), atol=1e-6)


def test_grey_films_have_no_colour(film):
    frames = np.stack([*FrameReader(20).read(open_frames(film[..., 0]))])
    assert not has_colour(frames) and has_colour(film)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (25, "size=25 does not suit .* 24 rows of 40 pixels; use 16 <= size <= 24, or native"),
        (15, "size=15 is too small; use size >= 16"),
        (0, "size=0 is too small"),
    ],
)
def test_sizes_that_cannot_be_are_named(film, size, message):
    with pytest.raises(ValueError, match=message):
        FrameReader(size).shape(open_frames(film))


def test_tiny_films_are_refused(film):
    with pytest.raises(ValueError, match="array has frames of 10 x 40 pixels; at least 16 are needed"):
        FrameReader("native").shape(open_frames(film[:, :10]))
