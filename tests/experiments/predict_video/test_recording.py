"""Tables on disk, their summary and events: memory does not grow with the film."""

import gc
import tracemalloc
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from made_up_video import METHODS, made_up_path, make_video, new_log
from psmt.evaluation import FrameRow, Rollout, RolloutRow, Step, ratio_interval
from psmt.experiments.predict_video import recording
from psmt.experiments.predict_video import result as module
from psmt.experiments.predict_video.film_painter import STRIP
from psmt.experiments.predict_video.recording import CsvLog, CsvLogError, Event, Recorder
from psmt.experiments.predict_video.result import FilmScores, VideoResult, summarise_frames
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.report import to_csv

SHAPE = (12, 16)
RNG = np.random.default_rng(0)
SCENES = RNG.uniform(size=(3, *SHAPE)).astype(np.float32)
EVENTS = [Event(k, k / 3, "surprise", float(RNG.standard_normal())) for k in range(2500)]


def recorder(folder=None, methods=METHODS, fps=25.0):
    path = made_up_path if folder is None else lambda name: folder / name
    return Recorder(methods, fps=fps, false_alarms=1e-3, path=path)


def result_of(recorder):
    known = {"settings": VideoSettings(), "start": 0, "n_past": 4, "shape": SHAPE, "film_shape": SHAPE, "every": 10}
    return VideoResult.from_recorder(recorder, name="made up", colour=False, **known)


def noise(first, last):
    """Steps of a film of noise, with cuts, rollouts and surprises."""
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


@pytest.mark.slow
def test_a_recording_does_not_grow_with_the_film(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "MOST_EVENTS", 2)  # pictures of 50 events are 2 MB
    film, held = recorder(tmp_path), []
    tracemalloc.start()
    try:
        for first, last in ((1, 100), (100, 700)):
            for step in noise(first, last):
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
    result = result_of(film)
    assert sum(1 for _ in result.rows) == 4 * 699
    assert result.event_counts["cut"] == len(result.largest_events) == 34


# Tables


def test_rows_are_read_as_they_were_written(monkeypatch):
    monkeypatch.setattr(recording, "_BLOCK", 999)
    log = new_log(Event)
    for first in range(0, 2500, 7):
        log.add(EVENTS[first : first + 7])
    assert [*log] == [*log] == EVENTS
    assert b"".join(log.table()) == to_csv(Event._fields, EVENTS)
    (row,) = [row for row in make_video(n_frames=1, surprise=False).rows if row.method == "frame_predictor"]
    assert np.isnan(row.surprise) and type(row.frame) is int and type(row.cut) is int


def test_rows_after_the_last_checkpoint_are_overwritten(tmp_path):
    first = CsvLog(Event, tmp_path / "events.csv")
    first.add(EVENTS[:1200])
    state = first.get_state()
    first.add(EVENTS[1200:2300])
    first.flush()
    again = CsvLog(Event, tmp_path / "events.csv").set_state(state)
    assert [*again] == EVENTS[:1200]
    again.add(EVENTS[1200:1201])
    again.add(EVENTS[1300:])
    assert [*again] == EVENTS[:1201] + EVENTS[1300:]
    assert [*CsvLog(Event, tmp_path / "events.csv")] == []


@pytest.mark.parametrize("damage", ["gone", "shorter", "other"])
def test_a_changed_file_is_refused(tmp_path, damage):
    path = tmp_path / "events.csv"
    log = CsvLog(Event, path)
    log.add(EVENTS[:50])
    state, content = log.get_state(), path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-5] if damage == "shorter" else content.replace(b"7", b"8", 1))
    with pytest.raises(CsvLogError, match="changed by another program"):
        list(log)
    with pytest.raises(ValueError, match="run the same command again"):
        CsvLog(Event, path).set_state(state)


# Summaries


def test_in_a_film_of_usual_length_a_bin_is_a_frame():
    ratios = RNG.uniform(0.3, 1.4, 60)
    result = make_video({"frame_predictor": ratios}, n_frames=60, cuts=(410, 433))
    scores, own = result.scores, [row for row in result.rows if row.method == "frame_predictor"]
    assert (scores.n, scores.bins.length, scores.bins.cuts.tolist()) == (60, 1, [410, 433])
    assert scores.bins.mse["frame_predictor"].tolist() == [row.mse for row in own]
    assert scores.bins.surprise.tolist() == [row.surprise for row in own]
    errors, copied = (np.array([getattr(row, name) for row in own]) for name in ("mse", "copy_mse"))
    assert scores.excess("copy") == pytest.approx(np.expm1(ratio_interval(errors, copied, block=7)))
    assert scores.summaries["frame_predictor"].mse == errors.mean()


def test_a_long_film_has_no_more_bins_and_the_same_means(monkeypatch):
    ratios = RNG.uniform(0.3, 1.4, 997)
    short = make_video({"frame_predictor": ratios}, n_frames=997, cuts=(410, 411, 900)).scores
    monkeypatch.setattr(module, "MOST_BINS", 100)
    monkeypatch.setattr(recording, "_BLOCK", 130)
    result = make_video({"frame_predictor": ratios}, n_frames=997, cuts=(410, 411, 900))
    long, bins = result.scores, result.scores.bins
    assert bins.length == 10 and len(bins.frames) == 100
    np.testing.assert_array_equal(bins.frames, 401 + 10 * np.arange(100))
    assert bins.cuts.tolist() == [410, 411, 900]
    assert bins.surprise[3] == max(
        row.surprise for row in [row for row in result.rows if row.method == "frame_predictor"][30:40]
    )
    assert bins.mse["frame_predictor"][5] == pytest.approx(1e-3 * ratios[50:60].mean())
    for one, other in zip(short.summaries.values(), long.summaries.values(), strict=True):
        assert one.method == other.method and one[1:] == pytest.approx(other[1:])
    whole, by_bins = short.excess("copy"), long.excess("copy")
    assert by_bins.mean == pytest.approx(whole.mean)
    # Blocks of 25 frames, or of three bins of ten: intervals of about the same width, by fewer degrees of freedom.
    assert by_bins.high - by_bins.low == pytest.approx(whole.high - whole.low, rel=0.5)


def test_rollouts_are_summed_by_step():
    rows = [
        RolloutRow(start, name, step, start + step, *RNG.random(5))
        for start in (0, 5, 9)
        for step in (1, 2)
        for name in METHODS
    ]
    log = new_log(RolloutRow)
    log.add(rows)
    scores = FilmScores.of(make_video().rows, log)
    assert scores.n_rollouts == 3
    assert scores.rollouts == {step: summarise_frames(row for row in rows if row.step == step) for step in (1, 2)}


# Events


def steps(scenes, cuts=(), surprises=None):
    """Steps from frame 1 on, of scenes by number; the model sees cuts at the given frames."""
    for index in range(1, len(scenes)):
        frame, last = SCENES[scenes[index]], SCENES[scenes[index - 1]]
        surprise = 50.0 if index in cuts else 1.0 if surprises is None else surprises[index]
        row = FrameRow(index, "frame_predictor", 0.1, 10.0, 0.5, 0.1, 1.0, surprise, int(index in cuts))
        yield Step(
            index, frame, last, {"frame_predictor": last}, {"frame_predictor": row}, [], {"frame_predictor": 0.1}
        )


def found(*given, fps=25.0, **more):
    film = recorder(methods=["frame_predictor"], fps=fps)
    for step in steps(*given, **more):
        film.add(step)
    return result_of(film)


def test_a_cut_is_an_event_with_its_time_and_size():
    result = found([0] * 20 + [1] * 20, {20})
    assert [*result.events] == result.largest_events == [(20, 0.8, "cut", 50.0)]
    assert result.event_counts == {"cut": 1}
    ((frame, strip),) = result.event_strips.items()
    assert frame == 20
    picture = Image.open(BytesIO(strip)).convert("L")
    # The frame before, what was expected (here the same), and what came.
    for k, scene in enumerate((0, 0, 1)):
        left, top = k * (STRIP + STRIP // 16), picture.height - STRIP * 12 // 16
        shown = picture.crop((left, top, left + STRIP, picture.height)).resize((16, 12), Image.Resampling.BOX)
        assert np.corrcoef(np.ravel(shown), SCENES[scene].ravel())[0, 1] > 0.95


@pytest.mark.parametrize(
    ("scenes", "cuts", "expected"),
    [
        *(([0] * 20 + [1] * n + [0] * 20, {20, 20 + n}, [(20, "flash")]) for n in (1, 3)),
        *(([0] * 20 + [1] * n + [0] * 20, {20}, [(20, "flash")]) for n in (1, 3)),  # the model does not see its end
        ([0] * 20 + [1] * 8 + [2] * 20, {20, 28}, [(20, "cut"), (28, "cut")]),
    ],
)
def test_a_flash_is_one_event_and_two_scenes_in_a_row_are_two_cuts(scenes, cuts, expected):
    result = found(scenes, cuts)
    assert [(event.frame, event.kind) for event in result.events] == expected
    assert [*result.event_strips] == [event.frame for event in result.events]
    assert result.largest_events == [*result.events]
    assert result.event_counts == {expected[0][1]: len(expected)}


def test_a_surprise_is_reported_once_and_only_where_it_is_rare():
    surprises = np.exp(0.3 * RNG.standard_normal(600))
    surprises[400:403] = 40.0
    events = [*found([0] * 600, (), surprises).events]
    assert (400, "surprise") in [(event.frame, event.kind) for event in events]
    assert len(events) <= 3


def test_without_a_frame_rate_there_are_no_times():
    assert np.isnan(found([0] * 20 + [1] * 5, {20}, fps=None).largest_events[0].time)


def test_pictures_are_kept_of_the_largest_events_only(monkeypatch):
    monkeypatch.setattr(recording, "MOST_EVENTS", 6)
    scenes = [k // 20 % 3 for k in range(400)]
    result = found(scenes, set(range(20, 400, 20)))
    assert len([*result.events]) == sum(result.event_counts.values()) == 19
    assert len(result.event_strips) == 6


def test_a_recording_continues_from_its_state(tmp_path):
    surprises = np.exp(0.3 * RNG.standard_normal(300))
    given = list(steps([0] * 150 + [1] * 2 + [0] * 148, {150}, surprises))
    whole = found([0] * 150 + [1] * 2 + [0] * 148, {150}, surprises)
    for stop in (100, 150, 151, 200):
        (tmp_path / f"{stop}").mkdir()
        first, second = (recorder(tmp_path / f"{stop}", ["frame_predictor"]) for _ in range(2))
        for step in given[:stop]:
            first.add(step)
        second.set_state(first.get_state())
        for step in given[stop:]:
            second.add(step)
        again = result_of(second)
        assert [*again.events] == [*whole.events] and again.largest_events == whole.largest_events
        assert again.event_counts == whole.event_counts and again.event_strips == whole.event_strips
        assert again.scores.summaries == whole.scores.summaries
