"""Cuts, flashes and surprises of made-up steps."""

import numpy as np
import pytest

from psmt.evaluation import FrameRow, Step
from psmt.experiments.predict_video.events import Event, EventWatch
from psmt.experiments.predict_video.lines import Lines

RNG = np.random.default_rng(0)
SCENES = RNG.uniform(size=(3, 12, 16)).astype(np.float32)


def steps(scenes, cuts=(), surprises=None):
    """Steps from frame 1 on, of scenes by number; the model sees cuts at the given frames."""
    for index in range(1, len(scenes)):
        frame, last = SCENES[scenes[index]], SCENES[scenes[index - 1]]
        surprise = 50.0 if index in cuts else 1.0 if surprises is None else surprises[index]
        row = FrameRow(index, "psmt", 0.1, 10.0, 0.5, 0.1, 1.0, surprise, int(index in cuts))
        yield Step(index, frame, last, {"psmt": last}, {"psmt": row}, [], {"psmt": 0.1})


def found(*given, fps=25.0, **more):
    watch = EventWatch(fps, 1e-3, Lines(Event))
    for step in steps(*given, **more):
        watch.add(step)
    watch.finish()
    return watch


def test_a_cut_is_an_event_with_its_time_and_size():
    watch = found([0] * 20 + [1] * 20, {20})
    assert [*watch.lines] == watch.largest == [(20, 0.8, "cut", 50.0)]
    assert watch.counts == {"cut": 1, "flash": 0, "surprise": 0}
    (still,) = watch.stills
    assert np.array_equal(still.frame, SCENES[1]) and np.array_equal(still.last, SCENES[0])


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("sees_return", [True, False])
def test_a_flash_is_one_event_however_the_model_sees_it_end(length, sees_return):
    scenes = [0] * 20 + [1] * length + [0] * 20
    watch = found(scenes, {20, 20 + length} if sees_return else {20})
    assert [(event.frame, event.kind) for event in watch.lines] == [(20, "flash")]
    assert watch.stills[0].event.kind == watch.largest[0].kind == "flash"
    assert watch.counts == {"cut": 0, "flash": 1, "surprise": 0}


def test_two_scenes_in_a_row_are_two_cuts():
    watch = found([0] * 20 + [1] * 8 + [2] * 20, {20, 28})
    assert [(event.frame, event.kind) for event in watch.lines] == [(20, "cut"), (28, "cut")]


def test_a_surprise_is_told_once_and_only_where_it_is_rare():
    surprises = np.exp(0.3 * RNG.standard_normal(600))
    surprises[400:403] = 40.0
    events = [*found([0] * 600, (), surprises).lines]
    assert (400, "surprise") in [(event.frame, event.kind) for event in events]
    assert len(events) <= 3


def test_without_a_clock_times_are_not_told():
    assert np.isnan(found([0] * 20 + [1] * 5, {20}, fps=None).largest[0].time)


def test_pictures_are_kept_of_the_largest_only():
    scenes = [k // 20 % 3 for k in range(400)]
    watch = found(scenes, set(range(20, 400, 20)))
    assert len([*watch.lines]) == sum(watch.counts.values()) == 19
    assert len(watch.stills) == EventWatch.MOST_STILLS


def test_it_goes_on_from_its_state(tmp_path):
    surprises = np.exp(0.3 * RNG.standard_normal(300))
    given = list(steps([0] * 150 + [1] * 2 + [0] * 148, {150}, surprises))
    whole = found([0] * 150 + [1] * 2 + [0] * 148, {150}, surprises)
    for stop in (100, 150, 151, 200):
        first, second = (EventWatch(25.0, 1e-3, Lines(Event, tmp_path / f"{stop}.csv")) for _ in range(2))
        for step in given[:stop]:
            first.add(step)
        second.set_state(first.get_state())
        for step in given[stop:]:
            second.add(step)
        second.finish()
        assert [*second.lines] == [*whole.lines]
        assert (second.largest, second.counts) == (whole.largest, whole.counts)
        assert second.get_state().keys() == whole.get_state().keys()
