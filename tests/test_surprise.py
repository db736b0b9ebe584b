"""`SurpriseDetector`: events of a film, without events where frames are missing or the film has just begun."""

import numpy as np
import pytest

from psmt.data import GlideFilm
from psmt.surprise import N_FIRST, N_RECORD, StepClock, SurpriseDetector


@pytest.fixture(scope="module")
def scenes():
    """Two films of 32 x 32 pixels."""
    return [list(GlideFilm(n_frames=220, seed=seed, size=32, speed=0.3)) for seed in (3, 0)]


def frames(*parts):
    return [np.array(frame) for part in parts for frame in part]


def events(film, times=None, **options):
    detector = SurpriseDetector(**options)
    times = [None] * len(film) if times is None else times
    found = [detector.update(frame, time) for frame, time in zip(film, times, strict=True)]
    return [event for event in found if event is not None]


def test_a_cut_and_a_flash_come_with_their_pictures(scenes):
    scene, other = scenes
    film = frames(scene[:60], other[:30])
    film[75] = np.clip(film[75] + 0.5, 0, 1)
    cut, light, flash = events(film)
    assert [(event.frame, event.kind) for event in (cut, light, flash)] == [(60, "cut"), (75, "cut"), (76, "flash")]
    assert cut.time == pytest.approx(60 / 25) and cut.surprise > 6
    np.testing.assert_array_equal(cut.before, film[59])
    np.testing.assert_array_equal(cut.came, film[60])
    # The model expected the old scene to go on.
    errors = [np.mean((cut.expected - frame) ** 2) for frame in (scene[60], film[60])]
    assert errors[0] < 0.1 * errors[1]


@pytest.mark.slow
def test_a_smaller_event_is_a_surprise_once_enough_is_known(scenes):
    scene, _ = scenes
    film = frames(scene[:200])
    for t in (60, 190):
        film[t] = film[t].copy()
        film[t][4:12, 4:12] = 0.9 * film[t][4:12, 4:12]
    found = events(film)
    assert [(event.frame, event.kind) for event in found] == [(190, "surprise")]


def test_there_are_no_events_before_there_is_a_record(scenes):
    scene, other = scenes
    n = N_FIRST + N_RECORD
    assert events(frames(scene[: n - 1], other[:10])) == []
    assert [event.frame for event in events(frames(scene[:n], other[:10]))] == [n]


def test_missing_frames_are_not_events_if_times_are_given(scenes):
    scene, _ = scenes
    film = frames(scene[:60], scene[160:180])
    times = [*np.arange(60) / 25, *np.arange(160, 180) / 25]
    assert events(film, times) == []
    assert [event.kind for event in events(film)] == ["cut"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alarms_per_hour": 5000.0}, "use less than 4500"),
        ({"alarms_per_hour": 0.0}, "alarms_per_hour > 0"),
        ({"fps": 0.0}, "fps > 0"),
    ],
)
def test_rates_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SurpriseDetector(**options)


def test_frames_of_another_shape_are_refused_and_change_nothing(scenes):
    scene, _ = scenes
    detector = SurpriseDetector()
    for frame in frames(scene[:12]):
        detector.update(frame)
    before = detector.surprise
    for bad in (np.zeros((32, 31)), np.full((32, 32), np.nan), np.zeros(5)):
        with pytest.raises(ValueError, match="frame"):
            detector.update(bad)
    assert detector.surprise == before
    detector.update(scene[12])
    assert 0 < detector.surprise < 6


def test_steps_are_uneven_where_frames_were_dropped_or_the_film_jumped():
    clock = StepClock()
    assert clock.seconds is None
    even = [clock.is_even(position) for position in np.arange(20) * 0.04]
    assert clock.seconds == pytest.approx(0.04) and even[-1]
    # A few frames after a gap, all is well again. Going back is a jump, too.
    for jump in (0.2, 30.0, -0.5):
        start = clock._last + jump
        assert [clock.is_even(start + 0.04 * k) for k in range(6)] == [False] * 5 + [True]
    assert clock.seconds == pytest.approx(0.04)
    # A model that takes every third frame has even steps.
    even = [clock.is_even(100 + 0.12 * k) for k in range(30)]
    assert all(even[-10:]) and clock.seconds == pytest.approx(0.12)
    # When a busy machine is free again, it shows every frame. The model expects longer steps at first.
    even = [clock.is_even(clock._last + 0.04) for _ in range(30)]
    assert not any(even[:10]) and all(even[-10:]) and clock.seconds == pytest.approx(0.04)
