"""A film predicted as it runs: which frames are learned from, which are scored, and what is kept."""

import numpy as np
import pytest

from psmt import open_frames
from psmt.errors import NotEnoughFramesError
from psmt.experiments.predict_video import run as module
from psmt.experiments.predict_video.result import summarise_frames
from psmt.experiments.predict_video.run import predict_video
from psmt.experiments.predict_video.settings import VideoSettings, extent
from psmt.pipeline.run import Run
from psmt.video.baselines import CopyLastFrame, LinearPixels
from psmt.video.frames import FrameReader

SMALL = {"window": 30}


@pytest.fixture
def colourful():
    """A film (40, 24, 32, 3) in colour, drifting."""
    rng = np.random.default_rng(0)
    world = rng.uniform(size=(24, 100, 3)).cumsum(axis=1)
    world = (world - world.min()) / np.ptp(world)
    return np.array([world[:, t : t + 32] for t in range(40)], dtype=np.float32)


@pytest.fixture
def light(monkeypatch):
    """A model that costs nothing: the experiment does not care what it is."""
    monkeypatch.setattr(
        VideoSettings, "methods", lambda _: {"frame_predictor": LinearPixels(), "copy": CopyLastFrame()}
    )


@pytest.fixture
def predict(tmp_path):
    def run(film, begin=None, **settings):
        run = Run(folder=tmp_path)
        return predict_video(open_frames(film), FrameReader("native"), VideoSettings(**settings), run, begin=begin)

    return run


def luma(film):
    return film @ np.array([0.299, 0.587, 0.114], dtype=np.float32)


def test_only_frames_after_the_start_are_scored_and_only_those_before_it_learned_from(predict, colourful, light):
    pasts = []

    def begin(past, horizon, painted):
        pasts.append((past, horizon))
        return lambda *step: None

    result, grey = predict(colourful, begin, start=25, horizon=10, window=8), luma(colourful)
    ((past, horizon),) = pasts
    np.testing.assert_allclose(past, colourful[17:25], atol=1e-6)
    assert (horizon, result.n_past, result.start, result.horizon) == (10, 8, 25, 10)
    np.testing.assert_allclose(
        [row.mse for row in result.rows if row.method == "frame_predictor"],
        [np.mean((2 * grey[t] - grey[t - 1] - grey[t + 1]) ** 2) for t in range(25, 35)],
        rtol=1e-3,
    )
    assert [row.frame for row in result.rows if row.method == "copy"] == list(range(26, 36))


@pytest.mark.parametrize("colour", [True, False])
def test_films_are_predicted_in_colour_unless_grey_is_asked_for(predict, colourful, colour):
    def check(step):
        frame, last = (colourful[k] if colour else luma(colourful[k]) for k in (step.index, step.index - 1))
        np.testing.assert_allclose(step.frame, frame, atol=1e-6)
        np.testing.assert_allclose(step.last, last, atol=1e-6)
        assert step.predicted["frame_predictor"].shape == frame.shape
        shown.append(step)

    shown = []
    result = predict(colourful, lambda *_: check, start=10, horizon=3, rollout=0, grey=not colour)
    assert [step.index for step in shown] == [11, 12, 13] and result.colour == colour
    own = result.scores.summaries["frame_predictor"]
    errors = [np.mean((step.predicted["frame_predictor"] - step.frame) ** 2) for step in shown]
    copied = [np.mean((step.last - step.frame) ** 2) for step in shown]
    if colour:
        expected = np.mean(errors), np.sum(errors) / np.sum(copied)
        assert (own.colour_mse, own.colour_ratio) == pytest.approx(expected, rel=1e-4)
    else:
        assert own.colour_mse is own.colour_ratio is None


def test_the_default_model_predicts_a_small_film(tmp_path):
    settings = VideoSettings(start=30, horizon=12, **SMALL, baselines=("blocks", "ridge"))
    result = predict_video(
        open_frames("builtin:glide?frames=60&size=40"), FrameReader(32), settings, Run(folder=tmp_path)
    )
    assert {row.method for row in result.rows} == {"frame_predictor", "copy", "linear", "fourier", "blocks", "ridge"}
    assert all(np.isfinite(row.surprise) for row in result.rows if row.method == "frame_predictor")
    assert {row.step for row in result.rollouts} == set(range(1, 11))
    assert all(np.isfinite(row.mse) for row in [*result.rows, *result.rollouts])


@pytest.mark.parametrize(("given", "every"), [({"horizon": 30}, 10), ({"horizon": 30, "every": 3}, 3)])
def test_rollouts_begin_every_so_often(predict, colourful, light, given, every):
    result = predict(colourful, start=5, **given)
    assert sorted({row.start for row in result.rollouts}) == list(range(5, 35, every))
    assert result.every == every


def test_large_frames_are_fewer(predict, colourful, light, monkeypatch):
    monkeypatch.setattr(module, "PAST_BYTES", 6 * 12 * 24 * 32)
    assert predict(colourful, start=20, horizon=2).n_past == 6


def test_memory_does_not_grow_with_the_film(predict, light, monkeypatch):
    held, seen = [], []

    def frames():
        for k in range(200):
            held.append(k)
            yield np.full((16, 16, 3), k / 200, dtype=np.float32)

    film = open_frames(np.zeros((200, 16, 16), dtype=np.uint8))
    monkeypatch.setattr(type(film), "iter_colour", lambda self: frames())
    predict(film, lambda *_: lambda step: seen.append((step.index, held[-1])), start=10, horizon=50)
    # Each frame is read when it is due, and none beyond the last one that is predicted.
    assert seen == [(t, t) for t in range(11, 61)]


@pytest.mark.parametrize(
    ("n_frames", "given", "expected"),
    [
        (10_000, {}, (400, 500)),
        (600, {}, (300, 299)),
        (6, {}, (4, 1)),
        (900, {"start": 850}, (850, 49)),
        (900, {"start": 100, "horizon": 20}, (100, 20)),
        (900, {"horizon": "all"}, (400, None)),
        (None, {}, (400, 500)),
        (None, {"start": 7, "horizon": "all"}, (7, None)),
    ],
)
def test_extent(n_frames, given, expected):
    assert extent(n_frames, VideoSettings(**given)) == expected


@pytest.mark.parametrize(
    ("n_frames", "given", "message"),
    [
        (5, {}, "at least 6 frames"),
        (100, {"start": 99}, "the film has 100 frames, but start=99 and horizon=1 need 101"),
        (100, {"start": 60, "horizon": 40}, "need 101; use an earlier start"),
    ],
)
def test_films_that_are_too_short_are_refused_before_any_work(n_frames, given, message):
    with pytest.raises(NotEnoughFramesError, match=message):
        extent(n_frames, VideoSettings(**given))


@pytest.mark.parametrize(("given", "message"), [({"start": 39}, "start=39"), ({"horizon": 500}, "need"), ({}, "400")])
def test_films_that_turn_out_too_short_are_refused(colourful, light, given, message, tmp_path, monkeypatch):
    film = open_frames(colourful)
    frames = [film._frame(index, colour=True) for index in range(len(film))]
    monkeypatch.setattr(type(film), "_read", lambda _, *, colour: (frame for frame in frames))
    object.__setattr__(film, "n_frames", None)
    with pytest.raises(NotEnoughFramesError, match=message):
        predict_video(film, FrameReader("native"), VideoSettings(**given), Run(folder=tmp_path))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": 3}, "start=3 is too small; use start >= 4"),
        ({"horizon": 0}, "horizon=0"),
        ({"baselines": ("dmd",)}, "baselines='dmd' is unknown; use one of 'blocks', 'ridge'"),
    ],
)
def test_settings_are_checked(given, message):
    with pytest.raises(ValueError, match=message):
        VideoSettings(**given)


def test_summary_divides_sums_and_counts_wins():
    result_rows = [
        module.FrameRow(1, "frame_predictor", 1.0, 10.0, 0.5, 4.0, 0.25, 0.0, 0),
        module.FrameRow(2, "frame_predictor", 3.0, 20.0, 0.7, 2.0, 1.5, 0.0, 0),
    ]
    (summary,) = summarise_frames(result_rows).values()
    assert summary == ("frame_predictor", 2.0, 15.0, pytest.approx(0.6), pytest.approx(4 / 6), 0.5, None, None)
