"""Sharp changes are told from jolts, stutters and films in which all is new."""

import numpy as np

from psmt.video.cut_detector import Surprise

CONTRAST = 1000.0


def after(errors, **kwargs):
    surprise = Surprise()
    for error in errors:
        surprise.observe(error, error, CONTRAST)
    return surprise


def test_the_value_is_the_error_over_the_usual_one():
    surprise = after([2.0] * 50)
    assert np.isclose(surprise.value, 1.0)
    surprise.observe(6.0, 6.0, CONTRAST)
    assert np.isclose(surprise.value, 3.0)
    assert not surprise.cut


def test_a_cut_is_noticed_and_a_jolt_is_not():
    surprise = after([2.0] * 30)
    surprise.observe(50.0, 50.0, CONTRAST)
    assert surprise.value > 20
    assert not surprise.cut
    surprise.observe(900.0, 900.0, CONTRAST)
    assert surprise.cut


def test_a_prediction_that_fails_where_copying_does_not_is_no_cut():
    surprise = after([2.0] * 30)
    surprise.observe(900.0, 5.0, CONTRAST)
    assert not surprise.cut


def test_the_new_scene_decides_what_is_usual():
    surprise = after([2.0] * 30 + [900.0])
    assert surprise.cut
    surprise.observe(40.0, 40.0, CONTRAST)
    assert not surprise.cut
    surprise.observe(40.0, 40.0, CONTRAST)
    assert surprise.value < 2


def test_a_flash_is_two_sharp_changes():
    surprise = after([2.0] * 30 + [900.0])
    surprise.observe(900.0, 900.0, CONTRAST)
    assert surprise.cut
    surprise.observe(2.0, 2.0, CONTRAST)
    assert not surprise.cut


def test_where_every_frame_is_new_none_is_a_sharp_change():
    surprise = after([2.0] * 30)
    cuts = []
    for _ in range(10):
        surprise.observe(2000.0, 2000.0, CONTRAST)
        cuts.append(surprise.cut)
    assert sum(cuts) == 2


def test_a_still_scene_can_be_cut():
    surprise = after([0.0] * 10)
    assert surprise.value == 0.0
    surprise.observe(500.0, 500.0, CONTRAST)
    assert surprise.cut


def test_without_any_contrast_nothing_surprises():
    surprise = Surprise()
    for _ in range(3):
        surprise.observe(0.0, 0.0, 0.0)
    assert (surprise.value, surprise.cut) == (1.0, False)
