"""`psmt predict-video`, in process and at a tiny size: files, what they say, and what is refused."""

import numpy as np
import pytest

from cli.calls import read_csv, refused, run, run_into
from psmt import open_frames
from psmt.data.patches import PatchCutter
from psmt.data.readers import film_writer as films
from psmt.evaluation import FrameRow, RolloutRow
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.video.baselines import CopyLastFrame, LinearPixels

pytestmark = pytest.mark.usefixtures("blank_figures")
FILM = "builtin:glide?frames=70&size=40"
TINY = ["--size", "32", "--start", "40"]
FILES = {"predicted.mp4", "scores.csv", "rollout.csv", "events.csv", "events.html", "report.html", "summary.json"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with the real model."""
    out = tmp_path_factory.mktemp("video") / "new"
    return run_into(out, "predict-video", FILM, *TINY, "--horizon", 12)


@pytest.fixture
def light(monkeypatch):
    """A model that costs nothing."""
    monkeypatch.setattr(
        VideoSettings, "methods", lambda _: {"frame_predictor": LinearPixels(), "copy": CopyLastFrame()}
    )


def test_it_writes_its_files_and_nothing_else(made):
    assert made.code == 0
    assert {path.name for path in made.out.iterdir()} == FILES
    assert made.stdout.strip().splitlines()[-1] == str(made.out / "report.html")


def test_the_film_has_a_picture_for_each_predicted_frame(made):
    film = open_frames(made.out / "predicted.mp4")
    pictures = list(film)
    assert len(pictures) == 12
    assert film.shape[1] > 3 * 32
    assert np.std(pictures[0]) > 0.05


def test_tables_have_a_line_for_each_frame_and_method(made):
    rows = read_csv(made.out / "scores.csv")
    assert tuple(rows[0]) == FrameRow._fields
    assert {(int(row["frame"]), row["method"]) for row in rows} == {
        (frame, method) for frame in range(41, 53) for method in ("frame_predictor", "copy", "linear", "fourier")
    }
    cutter = PatchCutter(frame_size=32, patch_size=1)
    frames = np.array([cutter.reduce(frame) for frame in open_frames(FILM, stop=53)])
    copied = np.mean(np.diff(frames[40:], axis=0) ** 2, axis=(1, 2))
    np.testing.assert_allclose([float(row["mse"]) for row in rows if row["method"] == "copy"], copied, rtol=1e-3)
    for row in rows:
        assert float(row["ratio"]) == float(row["mse"]) / float(row["copy_mse"])
        assert (row["surprise"] == "nan") == (row["method"] != "frame_predictor")
    rolled = read_csv(made.out / "rollout.csv")
    assert tuple(rolled[0]) == RolloutRow._fields
    assert {int(row["step"]) for row in rolled if row["start"] == "40"} == set(range(1, 11))


def test_the_first_step_of_a_rollout_is_the_prediction(made):
    first = {row["method"]: row["mse"] for row in read_csv(made.out / "rollout.csv") if row["frame"] == "41"}
    ahead = {row["method"]: row["mse"] for row in read_csv(made.out / "scores.csv") if row["frame"] == "41"}
    assert {name: float(value) for name, value in first.items()} == pytest.approx(
        {name: float(value) for name, value in ahead.items()}, rel=1e-4
    )


def test_page_and_screen_say_the_same(made):
    page = (made.out / "report.html").read_text(encoding="utf-8")
    sentence = next(line for line in made.stdout.splitlines() if line.startswith("The frame predictor "))
    assert sentence in page
    assert "÷ copying" in made.stdout


def test_a_colour_film_at_its_own_size(tmp_path, light):
    rng = np.random.default_rng(0)
    with films.writing_film(tmp_path / "film.mp4", fps=12) as add:
        for _ in range(16):
            add(rng.integers(0, 255, size=(36, 50, 3), dtype=np.uint8))
    out = tmp_path / "out"
    done = run("predict-video", tmp_path / "film.mp4", "--size", "native", "--out", out)
    assert done.code == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert "the whole picture is predicted at its own size, 50 × 36 pixels" in first
    assert "7 frames of 50 × 36 pixels" in done.stdout
    film = open_frames(out / "predicted.mp4")
    assert film.fps == pytest.approx(12)
    assert np.ptp(next(film.iter_colour()), axis=2).max() > 0.2


def test_a_film_smaller_than_the_default_is_taken_as_it_is(tmp_path, light):
    np.save(tmp_path / "film.npy", np.random.default_rng(0).uniform(size=(12, 20, 30)))
    done = run("predict-video", tmp_path / "film.npy", "--out", tmp_path / "out")
    assert done.code == 0, done.stderr
    assert "5 frames of 30 × 20 pixels" in done.stdout


@pytest.mark.parametrize(
    ("film", "options", "message"),
    [
        (FILM, ["--size", "400"], "--size 400 does not suit the frames of"),
        (FILM, ["--size", "0"], "--size 0 is too small; use --size >= 16"),
        (FILM, ["--size", "small"], "--size"),
        (FILM, ["--start", "69"], "the film has 70 frames, but --start 69 and --horizon 1 need 71"),
        (FILM, ["--start", "1"], "--start 1 is too small; use --start >= 4"),
        (FILM, ["--horizon", "70"], "need 106; use an earlier start"),
        (FILM, ["--horizon", "0"], "--horizon 0"),
        (FILM, ["--frames", "4"], "give a film of at least 6 frames"),
        (FILM, ["--baselines", "dmd"], "--baselines"),
        (FILM, ["--false-alarms", "0.2"], "use 0 < rate < 0.05"),
        (FILM, ["--device", "abacus"], "abacus"),
        ("no-such-film.mp4", [], "no-such-film.mp4 does not exist"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, film, options, message):
    done = run("predict-video", film, *options, "--out", tmp_path / "out")
    assert done.code == 2
    assert message in refused(done)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_events_have_a_line_each_and_the_page_plays_the_film(tmp_path, light, monkeypatch):
    class Watching(LinearPixels):
        """Takes the frame 20 for a cut."""

        surprise_, cut_, received = 1.0, False, 0

        def fit(self, frames):
            self.received = len(frames) - 1
            return super().fit(frames)

        def update(self, frame):
            self.received += 1
            self.cut_ = self.received == 20
            self.surprise_ = 30.0 if self.cut_ else 1.0
            return super().update(frame)

    monkeypatch.setattr(VideoSettings, "methods", lambda _: {"frame_predictor": Watching(), "copy": CopyLastFrame()})
    rng = np.random.default_rng(0)
    np.save(
        tmp_path / "film.npy", np.concatenate([[rng.uniform(size=(32, 32))] * 20, [rng.uniform(size=(32, 32))] * 9])
    )
    done = run("predict-video", tmp_path / "film.npy", "--start", 12, "--out", tmp_path / "out")
    assert done.code == 0, done.stderr
    (event,) = read_csv(tmp_path / "out" / "events.csv")
    assert (event["frame"], event["kind"], float(event["size"])) == ("20", "cut", 30.0)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'src="predicted.mp4"' in page and "Events: 1 cut." in page
    assert "Events: 1 cut." in done.stdout


def test_a_film_that_is_cut_short_is_refused_and_nothing_is_left(tmp_path, light):
    with films.writing_film(tmp_path / "film.mp4") as add:
        for value in np.random.default_rng(0).integers(0, 255, size=(40, 32, 32, 3), dtype=np.uint8):
            add(value)
    whole = (tmp_path / "film.mp4").read_bytes()
    (tmp_path / "film.mp4").write_bytes(whole[: len(whole) // 2])
    done = run("predict-video", tmp_path / "film.mp4", "--out", tmp_path / "out")
    assert done.code == 2
    assert "film.mp4" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_interrupt_leaves_the_earlier_results_alone(tmp_path, light, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "predicted.mp4").write_bytes(b"an earlier one")

    class Interrupted(LinearPixels):
        def predict(self, horizon=None):
            if getattr(self, "n", 0) > 5:
                raise KeyboardInterrupt
            self.n = getattr(self, "n", 0) + 1
            return super().predict(horizon)

    monkeypatch.setattr(VideoSettings, "methods", lambda _: {"frame_predictor": Interrupted(), "copy": CopyLastFrame()})
    done = run("predict-video", FILM, "--size", "32", "--out", out)
    assert done.code == 130
    assert done.stderr.endswith("psmt: interrupted\n")
    assert [path.name for path in out.iterdir()] == ["predicted.mp4"]
    assert (out / "predicted.mp4").read_bytes() == b"an earlier one"


def test_hold_is_copying(tmp_path):
    assert run("predict-video", FILM, *TINY, "--horizon", 3, "--extrapolation", "hold", "--out", tmp_path).code == 0
    ratios = {row["ratio"] for row in read_csv(tmp_path / "scores.csv") if row["method"] == "frame_predictor"}
    assert {float(ratio) for ratio in ratios} == {1.0}
