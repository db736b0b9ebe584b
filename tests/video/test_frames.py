"""Frames in luma and chroma, at a chosen size."""

import numpy as np
import pytest

from psmt import open_frames
from psmt.data.patches import PatchCutter
from psmt.video.frames import FrameReader


@pytest.fixture
def film():
    return np.random.default_rng(0).uniform(size=(3, 24, 40, 3)).astype(np.float32)


def test_luma_and_chroma_add_up(film):
    for frame, pixels in zip(FrameReader("native").read(open_frames(film)), film, strict=True):
        np.testing.assert_allclose(frame.coloured(frame.luma), pixels, atol=1e-6)
        np.testing.assert_allclose(frame.chroma @ [0.299, 0.587, 0.114], 0, atol=1e-6)


def test_shrinking_is_that_of_all_other_commands(film):
    cutter = PatchCutter(frame_size=17, patch_size=1)
    for frame, grey in zip(FrameReader(17).read(open_frames(film)), open_frames(film), strict=True):
        np.testing.assert_allclose(frame.luma, cutter.reduce(grey), atol=1e-6)
        assert frame.luma.dtype == np.float32


def test_grey_films_have_no_chroma(film):
    for frame in FrameReader(20).read(open_frames(film[..., 0])):
        np.testing.assert_allclose(frame.chroma, 0, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (25, "size=25 is larger than the frames of array, 24 x 40 pixels; use size <= 24, or native"),
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
