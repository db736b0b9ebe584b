"""Optical flow of pictures whose motion is known."""

import numpy as np
import pytest
from scipy.ndimage import shift

from psmt.engines.numba.flow import flow_between, moved
from video.conftest import texture

INSIDE = np.s_[:, 16:-16, 16:-16]


def picture(seed=0):
    return ((texture((96, 96), seed, 2.0) - 128) / 40).astype(np.float32)


@pytest.mark.parametrize("motion", [(0.0, 0.0), (0.4, -0.7), (3.0, 2.0), (-7.0, 8.0)])
def test_translation_is_found_to_a_fraction_of_a_pixel(motion):
    before = picture()
    now = shift(before, motion, order=3, mode="grid-wrap").astype(np.float32)
    flow = flow_between(before, now)
    assert flow.shape == (2, 96, 96)
    # What is now at (y, x) came from (y, x) - motion.
    error = np.abs(flow[INSIDE] + np.reshape(motion, (2, 1, 1)))
    assert np.median(error) < 0.1


def test_a_still_ground_stays_still_beside_what_moves():
    before, thing = picture(1), picture(2)
    film = []
    for t in range(2):
        frame = before.copy()
        frame[30:62, 20 + 3 * t : 52 + 3 * t] = thing[:32, :32]
        film.append(frame)
    flow = flow_between(*film)
    assert np.abs(flow[:, :, 75:]).max() < 0.05
    assert np.median(flow[1, 38:54, 32:44]) == pytest.approx(-3, abs=0.4)


def test_moving_along_the_flow_explains_the_frame():
    before = picture(3)
    now = shift(before, (1.5, -2.25), order=3, mode="grid-wrap").astype(np.float32)
    gap = moved(before, flow_between(before, now)) - now
    assert np.mean(gap[INSIDE[1:]] ** 2) < 0.02 * np.mean((now - before)[INSIDE[1:]] ** 2)


def test_whole_pixels_are_moved_exactly():
    frame = picture(4)
    flow = np.zeros((2, *frame.shape), np.float32)
    flow[0], flow[1] = 2, -3
    assert np.allclose(moved(frame, flow)[:-2, 3:], frame[2:, :-3], atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (17, 33)])
def test_any_size(shape):
    frames = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    flow = flow_between(*frames)
    assert flow.shape == (2, *shape)
    assert np.isfinite(flow).all()
    assert np.isfinite(moved(frames[0], flow)).all()
