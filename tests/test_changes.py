"""Sharp changes are distinguished from jolts, stutters, noise and films in which all is new."""

import numpy as np
import pytest

from psmt.changes import CutDetector, FrameWatch, SurpriseAlarm

CONTRAST = 1000.0


@pytest.mark.parametrize(
    ("errors", "last", "surprise", "cut"),
    [
        ([2.0] * 50, 2.0, (1.0, 1.0), False),
        ([2.0] * 50, 6.0, (3.0, 3.0), False),
        ([2.0] * 30, 50.0, (20, 30), False),  # a jolt
        ([2.0] * 30, 900.0, (400, 500), True),
        ([2.0] * 30 + [50.0], 900.0, (20, 500), True),
        ([2.0] * 30, (900.0, 5.0), (400, 500), False),  # copying does not fail
        ([2.0] * 30 + [900.0], 40.0, (0, 30), False),
        ([2.0] * 30 + [900.0, 40.0], 40.0, (0, 2), False),  # the new scene decides what is usual
        ([2.0] * 30 + [900.0], 900.0, (6, 500), True),  # a flash is two sharp changes
        ([2.0] * 30 + [900.0, 900.0], 2.0, (0, 6), False),
        ([2.0] * 30 + [2000.0] * 2, 2000.0, (0, np.inf), False),  # every frame is new: none is a sharp change
        ([2.0] * 30 + [2000.0] * 9, 2000.0, (0, np.inf), False),
        ([0.0] * 10, 0.0, (0.0, 0.0), False),
        ([0.0] * 10, 500.0, (6, np.inf), True),
    ],
)
def test_a_cut_is_an_error_far_beyond_the_usual_one_that_copying_makes_too(errors, last, surprise, cut):
    detector = CutDetector()
    for error in (*errors, last):
        detector.observe(*np.broadcast_to(error, 2).tolist(), CONTRAST)
    assert surprise[0] - 1e-6 <= detector.surprise <= surprise[1] + 1e-6
    assert detector.cut == cut


def test_without_any_contrast_nothing_surprises():
    detector = CutDetector()
    for _ in range(3):
        detector.observe(0.0, 0.0, 0.0)
    assert (detector.surprise, detector.cut) == (1.0, False)


# Series


def smooth(n_frames, n_features):
    t, k = np.arange(n_frames)[:, None], np.arange(n_features)
    return np.cos(t / 15 + k) + 0.5 * np.sin(t / 9 + k**2)


def noisy(n_frames, n_features):
    return smooth(n_frames, n_features) + 0.1 * np.random.default_rng(0).standard_normal((n_frames, n_features))


def white(n_frames, n_features):
    return np.random.default_rng(0).standard_normal((n_frames, n_features))


def wandering(n_frames, n_features):
    return np.cumsum(white(n_frames, n_features), axis=0)


def cuts_in(X, start=200):
    """Frames that are reported as cuts after `start`."""
    watch, found = FrameWatch(X[:start], window=150), []
    for frame, x in enumerate(X[start:], start):
        watch.observe(x)
        if watch.cut:
            found.append(frame)
    return found


@pytest.mark.parametrize("n_features", [1, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("series", [smooth, noisy, white, wandering])
def test_at_most_one_frame_in_a_thousand_is_a_false_alarm(series, n_features):
    assert len(cuts_in(series(2200, n_features))) <= 2


@pytest.mark.parametrize("n_features", [3, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("series", [smooth, noisy])
@pytest.mark.parametrize("size", [3.0, 30.0])
def test_every_step_is_found_and_nothing_else(series, n_features, size):
    X = series(900, n_features)
    steps = [300, 500, 700]
    for k, step in enumerate(steps):
        X[step:] += size * (-1) ** k
    assert cuts_in(X) == steps


@pytest.mark.parametrize("n_features", [12, 64])
def test_every_change_of_scene_is_found(n_features):
    scenes = [
        part + 2 * np.random.default_rng(k).standard_normal(n_features)
        for k, part in enumerate(np.split(noisy(1000, n_features), 5))
    ]
    assert cuts_in(np.concatenate(scenes)) == [200, 400, 600, 800]


def test_a_spike_is_two_cuts_and_so_is_the_next():
    X = noisy(600, 12)
    X[[300, 320]] += 5.0
    assert cuts_in(X) == [300, 301, 320, 321]


def test_a_film_that_stands_still_can_be_cut_and_motion_that_begins_gently_is_no_cut():
    X = np.zeros((500, 12))
    X[300:] = 1.0
    assert cuts_in(X) == [300]
    assert cuts_in(smooth(500, 12) * np.linspace(0.1, 10.0, 500)[:, None] ** 2) == []


def test_surprise_knows_no_scale_and_is_about_one_while_things_go_on():
    X = noisy(600, 12)
    values = []
    for factor in (1.0, 1e-6, 1e6):
        watch = FrameWatch(factor * X[:200], window=150)
        surprises = []
        for x in factor * X[200:]:
            watch.observe(x)
            surprises.append(watch.surprise)
        values.append(surprises)
    assert 0.5 < np.median(values[0]) < 2.0
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-6)


def test_the_largest_norm_forgets_a_spike_and_not_the_latest_two():
    X = noisy(400, 12)
    usual = np.linalg.norm(X, axis=1).max()
    watch = FrameWatch(X[:200], window=150)
    watch.observe(X[200] + 100.0)
    assert watch.peak_norm > 300
    watch.observe(X[201])
    assert watch.peak_norm > 300
    watch.observe(X[202])
    assert watch.peak_norm < 2 * usual


@pytest.mark.slow
@pytest.mark.parametrize("window", [30, 150, 400])
def test_results_depend_on_the_window_alone_however_its_frames_came(window):
    X = noisy(800, 12)
    X[430:] += 3.0
    X[450] += 20.0
    X[600:] -= 5.0
    watch = FrameWatch(X[:400], window)
    for t, x in enumerate(X[400:], 400):
        watch.observe(x)
        other = FrameWatch(X[t + 1 - window : t + 1], window)
        for name in ("surprise", "cut", "scene_length", "is_new"):
            assert getattr(watch, name) == getattr(other, name), (name, t)
        assert watch.peak_norm == pytest.approx(other.peak_norm, rel=1e-12)


@pytest.mark.parametrize("tail", ["normal", "power"])
def test_alarms_come_at_most_about_as_often_as_stated(tail):
    rng = np.random.default_rng(0)
    alarms = []
    for _ in range(4):
        values = np.exp(0.5 * rng.standard_normal(3000)) if tail == "normal" else (1 - rng.uniform(size=3000)) ** -0.5
        alarm = SurpriseAlarm(0.005)
        alarms += [alarm.observe(value) for value in values]
    assert 0.0005 < np.mean(alarms) < 0.01


def test_what_is_far_beyond_the_tail_is_an_alarm_but_not_before_it_is_known():
    rng = np.random.default_rng(0)
    alarm = SurpriseAlarm()
    assert not alarm.observe(3.0)
    for value in np.exp(0.2 * rng.standard_normal(150)):
        alarm.observe(value)
    before = alarm.threshold
    assert alarm.observe(100.0)
    assert alarm.threshold < 2 * before  # one absurd value does not raise it for long


def test_a_rate_that_the_tail_does_not_tell_is_refused():
    with pytest.raises(ValueError, match=r"a rate of 0\.2 false"):
        SurpriseAlarm(0.2)


def test_norms_are_those_of_the_window_also_where_a_series_is_shorter():
    watch = FrameWatch(np.ones((4, 3)), window=6)
    for n, frame in enumerate(2 * np.ones((5, 3)), start=1):
        watch.observe(frame)
        assert len(watch.get_state()["norms"]) == min(4 + n, 6)
    other = FrameWatch(np.ones((4, 3)), window=6)
    other.set_state(watch.get_state())
    assert other.peak_norm == watch.peak_norm
    with pytest.raises(ValueError, match="7 norms, more than 6"):
        other.set_state(watch.get_state() | {"norms": np.ones(7)})
