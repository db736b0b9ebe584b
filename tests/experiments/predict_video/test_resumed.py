"""A film whose prediction is broken off and goes on: the same results, and nothing done twice."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from psmt import open_frames
from psmt.data.readers.streams import open_stream
from psmt.errors import NotEnoughFramesError
from psmt.experiments.predict_video import run as module
from psmt.experiments.predict_video.recording import clear_checkpoints
from psmt.experiments.predict_video.run import predict_video
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.pipeline.run import Run
from psmt.video import CopyLastFrame, FrameBaseline, FramePredictor, FrameReader, LinearPixels

pytestmark = pytest.mark.slow

FILM = "builtin:glide?frames=80&size=40&noise=0.1"
SETTINGS = VideoSettings(start=40, horizon=33, extrapolation="hold", rollout=6, every=4)
FULL = replace(SETTINGS, extrapolation="phase", baselines=("blocks", "ridge"))


class Broken(Exception):
    pass


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch):
    monkeypatch.setattr(module, "STRETCH", 7)


@pytest.fixture
def film():
    return open_frames(FILM)


def paint(past, horizon, painted):
    """Pictures that depend on all that was painted before."""
    shown = [row.frame for row in painted]

    def sink(step):
        shown.append(step.index)
        picture = np.zeros((32, 32, 3), np.uint8)
        picture[: len(shown) % 32] = sum(shown) % 256
        return picture

    return sink


def broken_off(film, folder, at, **given):
    """Predict until `at` frames are done."""

    def progress(stage, done, total):
        if (stage, done) == ("predict frames", at):
            raise Broken

    with pytest.raises(Broken):
        predicted(film, folder, progress=progress, **given)


def predicted(film, folder, settings=SETTINGS, begin=paint, **given):
    return predict_video(film, FrameReader(32), settings, Run(folder=folder, **given), begin=begin)


def assert_equal(one, other):
    for lines in ("rows", "rollouts", "events"):
        assert b"".join(getattr(one, lines).table()) == b"".join(getattr(other, lines).table())
    assert (one.event_counts, one.largest_events) == (other.event_counts, other.largest_events)
    assert one.event_strips == other.event_strips
    assert [path.read_bytes() for path in one.segments] == [path.read_bytes() for path in other.segments]


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The result of a run that nothing happened to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRETCH", 7)
        return predicted(open_frames(FILM), tmp_path_factory.mktemp("whole"), FULL)


@pytest.mark.parametrize("at", [[14, 15, 33]])
def test_it_goes_on_where_it_was_and_gives_the_same(film, whole, tmp_path, monkeypatch, at):
    for stop in at:
        broken_off(film, tmp_path / "broken", stop, settings=FULL)
    updates = []
    update = FramePredictor.update
    monkeypatch.setattr(FramePredictor, "update", lambda self, frame: updates.append(1) or update(self, frame))
    resumed = predicted(film, tmp_path / "broken", FULL)
    assert_equal(resumed, whole)
    # The last checkpoint is a whole number of stretches, and 33 steps are all.
    assert len(updates) == 33 - (at[-1] - 1) // 7 * 7


def test_finished_frames_are_not_predicted_again(film, tmp_path, monkeypatch):
    calls = []

    class Counting(LinearPixels):
        def predict(self, horizon=None):
            calls.append(horizon)
            return super().predict(horizon)

    monkeypatch.setattr(VideoSettings, "methods", lambda _: {"frame_predictor": Counting(), "copy": CopyLastFrame()})
    broken_off(film, tmp_path, 30)
    calls.clear()
    predicted(film, tmp_path)
    # 28 steps were kept: the first prediction is that of step 29, and one looks beyond the end.
    assert calls.count(None) == 33 - 28 + 1
    assert calls.count(SETTINGS.rollout) == 2


def test_when_all_is_predicted_nothing_is_left_to_do_but_to_read(film, tmp_path, monkeypatch):
    whole = predicted(film, tmp_path)
    for method in (FramePredictor, FrameBaseline):
        monkeypatch.setattr(method, "fit", None)
        monkeypatch.setattr(method, "update", None)
    assert_equal(predicted(film, tmp_path), whole)


def test_a_film_that_turns_out_too_short_leaves_nothing(film, tmp_path, monkeypatch):
    unmeasured = open_frames(np.array(list(film)))
    frames = [unmeasured._frame(index, colour=True) for index in range(len(unmeasured))]
    monkeypatch.setattr(type(unmeasured), "_read", lambda _, *, colour: (frame for frame in frames))
    object.__setattr__(unmeasured, "n_frames", None)
    with pytest.raises(NotEnoughFramesError, match="horizon=50"):
        predicted(unmeasured, tmp_path, replace(SETTINGS, horizon=50))
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_is_removed_by_name(film, tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "sweep-1.npz").touch()
    broken_off(film, tmp_path, 9)
    assert len(files(tmp_path)) == 5
    clear_checkpoints(tmp_path)
    assert files(tmp_path) == ["sweep-1.npz"]


def begin_at(film, folder, **given):
    """The first step that is predicted."""
    first = []

    def begin(past, horizon, painted):
        first.append(len([*painted]))
        raise Broken

    # What paints is part of the key, and this paints as `paint` does: it is of the same module.
    with pytest.raises(Broken):
        predicted(film, folder, begin=begin, **given)
    return first[0]


def test_other_settings_another_film_other_code_start_over(film, tmp_path, monkeypatch):
    broken_off(film, tmp_path, 9)
    assert begin_at(film, tmp_path) == 7
    assert begin_at(film, tmp_path, settings=replace(SETTINGS, window=30)) == 0
    assert begin_at(open_frames(FILM + "&seed=3"), tmp_path) == 0
    assert begin_at(film.head(78), tmp_path) == 0
    monkeypatch.setattr(module, "hash_code", lambda function: "other code")
    assert begin_at(film, tmp_path) == 0
    monkeypatch.undo()
    assert begin_at(film, tmp_path) == 7


@pytest.mark.parametrize("damage", ["checkpoint", "segment", "lines", "no lines"])
def test_damaged_files_start_over(film, tmp_path, damage):
    broken_off(film, tmp_path, 9)
    kinds = {"checkpoint": "*.npz", "segment": "*.mp4", "lines": "*-scores.csv", "no lines": "*-scores.csv"}
    (path,) = (tmp_path / "tasks").glob(kinds[damage])
    if damage in ("segment", "no lines"):
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
    assert begin_at(film, tmp_path) == 0


def test_a_run_that_is_broken_off_before_its_first_stretch_leaves_nothing(film, tmp_path):
    broken_off(film, tmp_path, 5)
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_can_be_read_only_once_leaves_pictures_and_no_checkpoint(film, tmp_path):
    broken_off(open_stream(film), tmp_path, 9)
    assert list(tmp_path.iterdir()) == []
    assert len(predicted(open_stream(film), tmp_path).segments) == 5
    assert {name[-4:] for name in files(tmp_path)} == {".mp4", ".csv"}


SCRIPT = """
import os, signal, sys
from psmt.experiments.predict_video import run
from psmt.cli import main
run.STRETCH = 7
if "--killed" in sys.argv:
    add = run.Recorder.add
    def mortal(self, step):
        add(self, step)
        if self.n == 17:
            os.kill(os.getpid(), signal.SIGKILL)
    run.Recorder.add = mortal
    sys.argv.remove("--killed")
sys.exit(main())
"""


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path):
    def call(out, *more):
        options = ["--size", "32", "--start", "40", "--horizon", "24", "--out", str(out)]
        return subprocess.run([sys.executable, "-c", SCRIPT, "predict-video", FILM, *options, *more], env=os.environ)

    assert call(tmp_path / "whole").returncode == 0
    assert call(tmp_path / "killed", "--killed").returncode == -signal.SIGKILL
    assert sum(name.endswith(".npz") for name in files(tmp_path / "killed")) == 1
    assert any(name.endswith(".tmp") for name in files(tmp_path / "killed"))
    assert call(tmp_path / "killed").returncode == 0
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    assert not (tmp_path / "killed" / "tasks").exists()
    for name in ("scores.csv", "rollout.csv", "events.csv", "predicted.mp4"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
