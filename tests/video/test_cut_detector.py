"""Sharp changes are told from jolts, stutters and films in which all is new."""

import numpy as np

from psmt.video.gating import CutDetector

CONTRAST = 1000.0


def after(errors):
    detector = CutDetector()
    for error in errors:
        detector.observe(error, error, CONTRAST)
    return detector


def test_the_value_is_the_error_over_the_usual_one():
    detector = after([2.0] * 50)
    assert np.isclose(detector.surprise, 1.0)
    detector.observe(6.0, 6.0, CONTRAST)
    assert np.isclose(detector.surprise, 3.0)
    assert not detector.cut


def test_a_cut_is_noticed_and_a_jolt_is_not():
    detector = after([2.0] * 30)
    detector.observe(50.0, 50.0, CONTRAST)
    assert detector.surprise > 20
    assert not detector.cut
    detector.observe(900.0, 900.0, CONTRAST)
    assert detector.cut


def test_a_prediction_that_fails_where_copying_does_not_is_no_cut():
    detector = after([2.0] * 30)
    detector.observe(900.0, 5.0, CONTRAST)
    assert not detector.cut


def test_the_new_scene_decides_what_is_usual():
    detector = after([2.0] * 30 + [900.0])
    assert detector.cut
    detector.observe(40.0, 40.0, CONTRAST)
    assert not detector.cut
    detector.observe(40.0, 40.0, CONTRAST)
    assert detector.surprise < 2


def test_a_flash_is_two_sharp_changes():
    detector = after([2.0] * 30 + [900.0])
    detector.observe(900.0, 900.0, CONTRAST)
    assert detector.cut
    detector.observe(2.0, 2.0, CONTRAST)
    assert not detector.cut


def test_where_every_frame_is_new_none_is_a_sharp_change():
    detector = after([2.0] * 30)
    cuts = []
    for _ in range(10):
        detector.observe(2000.0, 2000.0, CONTRAST)
        cuts.append(detector.cut)
    assert sum(cuts) == 2


def test_a_still_scene_can_be_cut():
    detector = after([0.0] * 10)
    assert detector.surprise == 0.0
    detector.observe(500.0, 500.0, CONTRAST)
    assert detector.cut


def test_without_any_contrast_nothing_surprises():
    detector = CutDetector()
    for _ in range(3):
        detector.observe(0.0, 0.0, 0.0)
    assert (detector.surprise, detector.cut) == (1.0, False)
