"""Scenes that have just begun: predictions from one or two changes are not worse than copying where nothing moves."""

from itertools import pairwise

import numpy as np
import pytest
from studies.prior_films import walkers

from psmt import FramePredictor
from video.conftest import gliding, texture


def cold_ratio(film):
    """Squared error of frames 2 to 5 of a film that begins here, divided by that of copying."""
    model, ours, copied = FramePredictor(rollouts=False).fit(film[:2]), 0.0, 0.0
    for last, frame in pairwise(film[1:6]):
        ours, copied = ours + np.mean((model.predict() - frame) ** 2), copied + np.mean((last - frame) ** 2)
        model.update(frame)
    return ours / copied


@pytest.mark.slow
def test_every_frame_twice_is_copied():
    film = np.repeat(walkers(2006, 0.01, 6), 2, axis=0)
    assert cold_ratio(film) <= 1.02


@pytest.mark.parametrize("smooth", [False, True])
def test_noise_on_a_still_picture_is_not_worse_than_copied(smooth):
    noise = np.random.default_rng(3).standard_normal((6, 48, 56))
    if smooth:  # as an encoder leaves it
        noise = np.stack([texture(seed=seed, width=2.0) for seed in range(6)]) / 40
    assert cold_ratio(texture() + 2 * noise) <= 1.02


@pytest.mark.parametrize("speed", [0.02, 0.03])
def test_a_slow_film_that_an_encoder_changes_in_jerks_is_not_worse_than_copied(speed):
    rng, film = np.random.default_rng(1), [*gliding((0.3 * speed, speed), 6)]
    for last, frame in zip(range(5), film[1:], strict=True):  # three of ten blocks are encoded anew in each frame
        skipped = np.kron(rng.random((6, 7)) > 0.3, np.ones((8, 8))) > 0
        frame[skipped] = film[last][skipped]
    assert cold_ratio(np.array(film)) <= 1.02


def test_changes_as_small_as_rounding_errors_are_copied():
    rng, film = np.random.default_rng(0), np.repeat(texture().round()[None], 6, axis=0)
    for k in range(1, 6):  # some blocks of a still film are encoded anew, and differ by one level
        blocks = np.kron(rng.random((6, 7)) > 0.7, np.ones((8, 8))) * rng.choice([-1.0, 1.0])
        film[k:] += blocks * (rng.random(blocks.shape) < 0.5)
    assert cold_ratio(film) <= 1.001


@pytest.mark.parametrize(("share", "low", "high"), [(0.0011, 0.0, 0.05), (0.0015, 0.05, 0.2), (0.0025, 0.2, 0.4)])
def test_a_faint_first_change_is_continued_the_less_the_fainter_it_is(share, low, high):
    """`share` is the energy of the first change, relative to the variance over the picture."""
    speed = share**0.5 / 0.5155  # pixels per frame
    film = [*gliding((0.3 * speed, speed), 2)]
    model = FramePredictor(rollouts=False).fit(film)
    first, change = film[1] - film[0], model.predict() - film[1]
    assert np.mean(first**2) / np.var(film[1]) == pytest.approx(share, rel=0.05)
    assert low < np.mean(change**2) / np.mean(first**2) < high


def test_things_that_walk_are_predicted_from_the_first_change_on():
    assert cold_ratio(walkers(2004, 0.01, 6)) < 0.4
