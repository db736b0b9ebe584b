"""`SurpriseDetector`: events of a film, without events where frames are missing or the film has just begun."""

import numpy as np
import pytest

from psmt.data import GlideFilm
from psmt.surprise import N_FIRST, N_RECORD, StepClock, SurpriseDetector, motion_factor


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


def blob(place, row=32, size=64):
    """A bright disc of radius 6 on a grey ground, with soft edges."""
    distance = np.hypot(*np.meshgrid(np.arange(size) - row, np.arange(size) - place, indexing="ij"))
    return (0.5 + 0.4 * np.clip(6.5 - distance, 0, 1)).astype(np.float32)


@pytest.mark.parametrize(("moved", "share"), [(1.0, 0.0), (2.0, 0.0), (0.0, 1.0), (-1.0, 2.0)])
def test_a_motion_that_does_not_happen_counts_by_its_share(moved, share):
    # Another disc goes on as predicted, with more contrast.
    def frame(place, other):
        return blob(place, row=16) + 3 * (blob(other, row=48) - 0.5)

    frames = frame(30.0, 20.0), frame(31.0, 21.0), frame(30.0 + moved, 21.0)
    assert motion_factor(*frames, 0.0) == pytest.approx(max(1.0, 0.9 * share / 0.7) ** 2, rel=0.25)
    # What is smaller than the usual error does not count, nor what happens at the border.
    assert motion_factor(*frames, 1.0) == 1
    border = [blob(place, row=-4) for place in (30.0, 31.0, 30.0 + moved)]
    assert motion_factor(*border, 1e-3) == 1
    # If all that moves reverses, it may be the camera.
    assert motion_factor(blob(30.0), blob(31.0), blob(30.0 + moved), 1e-5) < 1.5
    assert motion_factor(frames[0], frames[0], frames[0], 0.0) == 1
    assert motion_factor(*(picture[:5, :4] for picture in frames), 0.0) >= 1


@pytest.mark.parametrize(("alarms_per_hour", "used"), [(1.0, False), (89.0, False), (90.0, True)])
def test_an_object_that_reverses_counts_more_than_its_error_if_alarms_may_be_frequent(alarms_per_hour, used):
    rng = np.random.default_rng(0)
    places = [20 + abs((t + 22) % 44 - 22) for t in range(48)]  # turns after frames 22 and 44
    detector, factors = SurpriseDetector(alarms_per_hour=alarms_per_hour), []
    for t, place in enumerate(places):
        frame = blob(float(place), row=16) + 2 * (blob(float(t), row=48) - 0.5)
        detector.update(frame + 0.005 * rng.standard_normal((64, 64)).astype(np.float32))
        factors.append(1.0 if np.isnan(detector.surprise) else detector.surprise / detector._model.surprise_)
    assert (factors[45] > 2) == used
    assert max(factors[26:45]) < 1.2


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
