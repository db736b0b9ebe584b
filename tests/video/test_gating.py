"""What is believed of a predicted change; sharp changes are told from jolts, stutters and films in which all is new."""

import numpy as np

from psmt.video.gating import CutDetector, LocalGain, restrained
from psmt.video.grid import Grid

CONTRAST = 1000.0
GRID = Grid((64, 64))


def test_trust_is_earned_and_lost():
    rng = np.random.default_rng(0)
    trust = LocalGain(Grid((16, 32)))
    assert np.array_equal(trust.gains(), np.zeros((2, 4, 1)))
    for n in range(10):
        predicted = rng.standard_normal((16, 32)).astype(np.float32)
        change = np.where(np.arange(32) < 16, 0.6 * predicted, -predicted).astype(np.float32)
        trust.learn(predicted, change)
        assert trust.gains().max() <= min((n + 1) / 5, 1)
    assert np.all(trust.gains()[:, :2] > 0.2)
    assert np.array_equal(trust.gains()[:, 2:], np.zeros((2, 2, 1)))
    trust.clear()
    assert np.array_equal(trust.gains(), np.zeros((2, 4, 1)))


def test_a_change_as_lively_as_the_last_one_is_believed_as_it_is():
    predicted, last = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    assert np.array_equal(restrained(GRID, predicted, last), predicted)


def test_a_change_is_weakened_where_the_last_one_was_calm():
    predicted, last = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    last[:, 32:] *= 0.1
    believed = restrained(GRID, predicted, last)
    assert np.array_equal(believed[:, :20], predicted[:, :20])
    # A hundred times the energy, where twice is allowed: a fiftieth of the change is left, give or take the noise.
    assert np.allclose(believed[:, 48:], 0.02 * predicted[:, 48:], atol=0.01 * np.abs(predicted).max())


def test_nothing_is_believed_where_nothing_has_changed():
    predicted = np.ones((64, 64), np.float32)
    assert not restrained(GRID, predicted, np.zeros_like(predicted)).any()


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
