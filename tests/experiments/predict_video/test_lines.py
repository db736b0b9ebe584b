"""Lines that lie in a file, and the course that is made of them: memory does not grow with the film."""

import gc
import tracemalloc

import numpy as np
import pytest

from made_up_video import METHODS, make_video
from psmt.evaluation import FrameRow, Rollout, RolloutRow, Step, mean_interval
from psmt.experiments.predict_video import course as module
from psmt.experiments.predict_video.course import Course, summarise_frames
from psmt.experiments.predict_video.events import Event, EventWatch
from psmt.experiments.predict_video.gathered import Gathered
from psmt.experiments.predict_video.lines import Lines, LinesError
from psmt.report import to_csv

SHAPE = (4, 4)
RNG = np.random.default_rng(0)
EVENTS = [Event(k, k / 3, "surprise", float(RNG.standard_normal())) for k in range(2500)]


def steps(first, last):
    """Steps of a film of noise, with cuts, rollouts and surprises in it."""
    rng = np.random.default_rng(first)
    for index in range(first, last):
        frame, before = rng.random((2, *SHAPE), dtype=np.float32)
        predicted = {name: rng.random(SHAPE, dtype=np.float32) for name in METHODS}
        rows = {
            name: FrameRow(index, name, *rng.random(5), float(rng.lognormal()), int(index % 20 == 0))
            for name in METHODS
        }
        rollouts = [RolloutRow(index - 1, name, 1, index, *rng.random(5)) for name in METHODS]
        under_way = [Rollout(index, frame, dict.fromkeys(METHODS, frame[None]))]
        yield Step(index, frame, before, predicted, rows, rollouts, dict.fromkeys(METHODS, 0.1), under_way)


def gathered(folder):
    watch = EventWatch(25.0, 1e-3, Lines(Event, folder / "events.csv"))
    return Gathered(
        SHAPE, METHODS, watch, Lines(FrameRow, folder / "rows.csv"), Lines(RolloutRow, folder / "rolls.csv")
    )


def test_nothing_that_is_gathered_grows_with_the_film(tmp_path):
    film, held = gathered(tmp_path), []
    tracemalloc.start()
    try:
        for first, last in ((1, 100), (100, 700)):
            for step in steps(first, last):
                film.add(step)
            size = sum(array.nbytes for array in film.get_state().values())
            del step
            gc.collect()
            held.append((tracemalloc.get_traced_memory()[0], size))
    finally:
        tracemalloc.stop()
    (short, short_state), (long, long_state) = held
    # 600 frames of four methods were 0.7 MB. The detector of events has a reservoir, which fills.
    assert long - short < 100_000
    assert long_state - short_state < 50_000
    film.watch.finish()
    assert sum(1 for _ in film.rows) == 4 * 699
    assert film.watch.counts["cut"] == len(film.watch.largest) == 34


def test_lines_are_read_as_they_were_written():
    lines = Lines(Event)
    for first in range(0, 2500, 7):
        lines.add(EVENTS[first : first + 7])
    assert [*lines] == [*lines] == EVENTS
    assert b"".join(lines.table()) == to_csv(Event._fields, EVENTS)
    (row,) = [*make_video(n_frames=1, surprise=False).of("psmt")]
    assert np.isnan(row.surprise) and type(row.frame) is int and type(row.cut) is int


def test_what_came_after_the_last_checkpoint_does_not_count(tmp_path):
    first = Lines(Event, tmp_path / "events.csv")
    first.add(EVENTS[:1200])
    state = first.get_state()
    first.add(EVENTS[1200:2300])
    first.flush()
    again = Lines(Event, tmp_path / "events.csv").set_state(state)
    assert [*again] == EVENTS[:1200]
    again.add(EVENTS[1200:1201])
    again.add(EVENTS[1300:])
    assert [*again] == EVENTS[:1201] + EVENTS[1300:]
    assert [*Lines(Event, tmp_path / "events.csv")] == []


@pytest.mark.parametrize("damage", ["gone", "shorter", "other"])
def test_lines_that_somebody_changed_are_not_believed(tmp_path, damage):
    path = tmp_path / "events.csv"
    lines = Lines(Event, path)
    lines.add(EVENTS[:50])
    state, content = lines.get_state(), path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-5] if damage == "shorter" else content.replace(b"7", b"8", 1))
    with pytest.raises(LinesError, match="changed by somebody else"):
        list(lines)
    with pytest.raises(ValueError, match="run the same command again"):
        Lines(Event, path).set_state(state)


# The course


def test_in_a_film_of_usual_length_a_stretch_is_a_frame():
    ratios = RNG.uniform(0.3, 1.4, 60)
    result = make_video({"psmt": ratios}, n_frames=60, cuts=(410, 433))
    course, own = result.course, [*result.of("psmt")]
    assert (course.n, course.stretches.length, course.stretches.cuts.tolist()) == (60, 1, [410, 433])
    assert course.stretches.mse["psmt"].tolist() == [row.mse for row in own]
    assert course.stretches.surprise.tolist() == [row.surprise for row in own]
    errors, copied = (np.array([getattr(row, name) for row in own]) for name in ("mse", "copy_mse"))
    assert course.excess("copy") == mean_interval((errors - copied) / copied.mean(), block=7)
    assert course.summary("psmt").mse == errors.mean()
    assert course.losses.n_frames == np.count_nonzero(ratios > 1.005)


def test_a_long_film_has_no_more_stretches_and_the_same_means(monkeypatch):
    ratios = RNG.uniform(0.3, 1.4, 997)
    short = make_video({"psmt": ratios}, n_frames=997, cuts=(410, 411, 900)).course
    monkeypatch.setattr(module, "MOST_STRETCHES", 100)
    monkeypatch.setattr(module, "_BATCH", 64)
    result = make_video({"psmt": ratios}, n_frames=997, cuts=(410, 411, 900))
    long, stretches = result.course, result.course.stretches
    assert stretches.length == 10 and len(stretches.frames) == 100
    np.testing.assert_array_equal(stretches.frames, 401 + 10 * np.arange(100))
    assert stretches.cuts.tolist() == [410, 411, 900]
    assert stretches.surprise[3] == max(row.surprise for row in [*result.of("psmt")][30:40])
    assert stretches.mse["psmt"][5] == pytest.approx(1e-3 * ratios[50:60].mean())
    for one, other in zip(short.summaries, long.summaries, strict=True):
        assert one.method == other.method and one[1:] == pytest.approx(other[1:])
    assert long.losses == short.losses
    whole, by_stretches = short.excess("copy"), long.excess("copy")
    assert by_stretches.mean == pytest.approx(whole.mean)
    # Blocks of 25 frames, or of three stretches of ten: as sure of it.
    assert by_stretches.high - by_stretches.low == pytest.approx(whole.high - whole.low, rel=0.25)


def test_rollouts_are_summed_by_step():
    rows = [
        RolloutRow(start, name, step, start + step, *RNG.random(5))
        for start in (0, 5, 9)
        for step in (1, 2)
        for name in METHODS
    ]
    course = Course.of([*make_video().rows], rows)
    assert course.n_rollouts == 3
    assert course.rollouts == {step: summarise_frames(row for row in rows if row.step == step) for step in (1, 2)}
