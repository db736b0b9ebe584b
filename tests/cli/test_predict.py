"""The command line, in process and at a tiny size: files, tables, exit codes and messages."""

import io
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import numpy as np
import pytest

import psmt
from cli.calls import read_csv, refused, run, run_into
from psmt import read_patches
from psmt.cli import main
from psmt.cli.app import COMMANDS
from psmt.evaluation import METHODS
from psmt.experiments.prediction import phase

pytestmark = pytest.mark.usefixtures("blank_figures")
FILM = "builtin:glide?frames=160&size=64"
TINY = ["--patch", "6", "--size", "64", "--atoms", "20", "--window", "60", "--horizon", "5", "--alpha", "0.3"]
TINY += ["--workers", "1", "--starts", "3"]
FILES = {"tasks", "report.html", "summary.json", "rollout.csv", "forecast.csv", "methods.png", "pipeline.png"}
FILES |= {"prediction.csv", "prediction.png", "starts.csv"}
ALL = METHODS.keys()
FIXED = ["--components", "8", "--lam", "0.1"]
COLUMNS = ["phase", "method", "step", "frame", "mse_vs_code", "mse_vs_frame"]
PNG = b"\x89PNG\r\n\x1a\n"


def column(rows: list[dict[str, str]], name: str, **where: object) -> list[float]:
    return [float(row[name]) for row in rows if all(row[key] == str(value) for key, value in where.items())]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A run that searches its phases."""
    out = tmp_path_factory.mktemp("searched") / "new" / "folder"
    return run_into(out, "predict", FILM, *TINY, *FIXED)


class Terminal(io.StringIO):
    def isatty(self):
        return True


GIVEN = [*TINY, "--frames", "120", "--position", "10,20", "--start", "70", "--start", "100"]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A run whose starts are given, with stderr on a terminal."""
    out, stderr = tmp_path_factory.mktemp("given"), Terminal()
    with redirect_stdout(io.StringIO()), redirect_stderr(stderr):
        code = main(["predict", FILM, *GIVEN, "--out", str(out)])
    return SimpleNamespace(out=out, code=code, stderr=stderr.getvalue())


# What is written


@pytest.mark.slow
def test_predict_writes_its_files_and_nothing_else(searched):
    assert searched.code == 0
    assert all(re.match("psmt: .*( done in | after | stage 1 of )", line) for line in searched.stderr.splitlines())
    assert {path.name for path in searched.out.iterdir()} == FILES | {"reconstruction.csv", "reconstruction.png"}
    for picture in searched.out.glob("*.png"):
        assert picture.read_bytes().startswith(PNG)


@pytest.mark.slow
def test_given_starts_need_no_reconstruction(given):
    assert given.code == 0
    assert {path.name for path in given.out.iterdir()} == FILES
    assert {row["phase"] for row in read_csv(given.out / "prediction.csv")} == {"start-70", "start-100"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prediction.csv", "rollout.csv"])
def test_tables_have_a_line_for_each_phase_method_and_step(searched, name):
    rows = read_csv(searched.out / name)
    assert list(rows[0]) == COLUMNS
    keys = {(row["phase"], row["method"], int(row["step"])) for row in rows}
    assert len(rows) == len(keys) == 2 * len(ALL) * 5
    assert keys == {(phase, method, k) for phase in ("calm", "lively") for method in ALL for k in range(1, 6)}


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["calm", "lively"])
def test_errors_of_copying_are_those_of_the_film(searched, phase):
    values = read_patches(FILM, patch_size=6, frame_size=64).values
    rows = read_csv(searched.out / "prediction.csv")
    where = {"phase": phase, "method": "copy"}
    start = int(column(rows, "frame", **where)[0]) - 1
    expected = np.mean(np.diff(values[start : start + 6], axis=0) ** 2, axis=1)
    np.testing.assert_allclose(column(rows, "mse_vs_frame", **where), expected, rtol=1e-12)
    assert column(rows, "frame", **where) == [start + k for k in range(1, 6)]
    rollout = np.mean((values[start + 1 : start + 6] - values[start]) ** 2, axis=1)
    where_rolled = read_csv(searched.out / "rollout.csv")
    np.testing.assert_allclose(column(where_rolled, "mse_vs_frame", **where), rollout, rtol=1e-12)


@pytest.mark.slow
def test_first_step_is_the_same_in_both_modes(searched):
    first = {
        name: {
            (r["phase"], r["method"]): float(r["mse_vs_code"])
            for r in read_csv(searched.out / name)
            if r["step"] == "1"
        }
        for name in ("prediction.csv", "rollout.csv")
    }
    assert first["prediction.csv"] == pytest.approx(first["rollout.csv"], rel=1e-9)


@pytest.mark.slow
def test_starts_and_nulls_have_a_line_per_method(searched):
    rows = read_csv(searched.out / "starts.csv")
    assert {row["film"] for row in rows} == {"film", "shuffled", "noise"}
    for film in ("film", "shuffled", "noise"):
        starts = {row["start"] for row in rows if row["film"] == film}
        assert len(starts) == 3
        methods = set(METHODS) if film == "film" else set(METHODS) - {"whole_frame"}
        assert len([row for row in rows if row["film"] == film]) == 3 * len(methods)
        assert {row["method"] for row in rows if row["film"] == film} == methods
    phases = read_csv(searched.out / "prediction.csv")
    errors = column(phases, "mse_vs_frame", phase="calm", method="mean")
    start = int(column(phases, "frame", phase="calm")[0]) - 1
    assert column(rows, "mse_vs_frame", film="film", method="mean", start=start) == [pytest.approx(np.mean(errors))]


@pytest.mark.slow
def test_phases_are_where_the_reconstruction_says(searched):
    errors = np.array(column(read_csv(searched.out / "reconstruction.csv"), "mse"))
    assert len(errors) == 160
    # Segments of 60 frames, every 15, that leave room for two phases of 6 frames behind the first 60.
    segment = min((s for s in range(0, 101, 15) if s + 60 >= 72), key=lambda s: errors[s : s + 60].mean())
    means = {s: errors[s : s + 6].mean() for s in range(max(segment, 60), segment + 55)}
    rows = read_csv(searched.out / "prediction.csv")
    calm, lively = (int(column(rows, "frame", phase=phase)[0]) - 1 for phase in ("calm", "lively"))
    assert {calm, lively} <= set(means)
    assert abs(calm - lively) >= 6
    assert means[lively] - means[calm] == max(means[j] - means[i] for i in means for j in means if abs(i - j) >= 6)


@pytest.mark.slow
def test_phases_may_be_searched_in_the_whole_film(tmp_path):
    assert run("reconstruct", FILM, *TINY[:-2], *FIXED, "--search", "film", "--out", tmp_path).code == 0


@pytest.mark.slow
def test_options_reach_the_film(given):
    values = read_patches(FILM, patch_size=6, frame_size=64, position=(10, 20), stop=120).values
    expected = np.mean((values[101] - values[100]) ** 2)
    rows = read_csv(given.out / "prediction.csv")
    found = column(rows, "mse_vs_frame", method="copy", step=1, phase="start-100")
    assert found == [pytest.approx(expected, rel=1e-12)]


@pytest.mark.slow
def test_predictions_go_on_where_they_were(searched, tmp_path, monkeypatch):
    """What was interrupted after one phase computes the other one only."""
    shutil.copytree(searched.out / "tasks", tmp_path / "tasks")
    (lively,) = (tmp_path / "tasks").glob("prediction-lively*")
    lively.unlink()
    starts, predict_phase = [], phase.predict_phase

    def counted(patches, where, **settings):
        starts.append(where.start)
        return predict_phase(patches, where, **settings)

    monkeypatch.setattr("psmt.experiments.prediction.phase.predict_phase", counted)
    assert run("predict", FILM, *TINY, *FIXED, "--out", tmp_path).code == 0
    assert starts == [int(column(read_csv(searched.out / "prediction.csv"), "frame", phase="lively")[0]) - 1]
    for path in searched.out.glob("*.*"):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


# What is shown


@pytest.mark.slow
def test_screen_begins_with_the_answer_has_a_table_and_ends_with_the_report(searched):
    lines = searched.stdout.splitlines()
    assert "predicts the next patch best" in lines[0] and lines[1].startswith("Next: psmt ")
    assert lines[-1] == str(searched.out / "report.html")
    for name in ALL:
        assert sum(bool(re.match(rf" *{METHODS[name]} +\d", line)) for line in lines) == 1


@pytest.mark.slow
def test_losing_against_copying_is_marked(searched):
    rows = read_csv(searched.out / "starts.csv")
    code, frame = (
        {method: np.mean(column(rows, errors, film="film", method=method)) for method in ALL}
        for errors in ("mse_vs_code", "mse_vs_frame")
    )
    expected = [
        sum([code[method] > 1.001 * code["copy_code"], frame[method] > 1.001 * frame["copy"]])
        for method in sorted(ALL, key=frame.__getitem__)
    ]
    names = "|".join(METHODS[name] for name in ALL)
    found = [line.count("loses") for line in searched.stdout.splitlines() if re.match(rf" *({names}) +\d", line)]
    assert found == expected
    assert 0 < sum(found) < 2 * len(found)


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.mp4"], "nowhere.mp4 does not exist"),
        (["builtin:glide?frames=90"], "M = 32 with H = 96, the smallest that is tried, needs 127"),
        ([FILM, "--atoms", 512], "the film has 160 frames; --window 1536 and --horizon 30 need at least 1567"),
        ([FILM, *TINY, "--start", 150, "--start", 155], "use a start from 60 to 154"),
        ([FILM, *TINY, "--start", 59], "use a start from 60 to 154"),
        ([FILM, *TINY, "--start=-1"], "use a start from 60 to 154"),
        ([FILM, *TINY, "--device", "cuda:99"], "use --device cpu"),
        ([FILM, "--horizon", 0], "--horizon 0 is too small"),
        ([FILM, "--atoms", 0], "--atoms 0 is too small"),
        ([FILM, "--alpha", 0], "--alpha 0.0 is out of range"),
        ([FILM, *TINY, "--components", "many"], "--components"),
        ([FILM, *TINY, "--components", 21, "--lam", 0.1, "--start", 150], "more than the rank"),
        ([FILM, *TINY, "--position", "7"], "'7' is not ROW,COLUMN"),
        ([FILM, *TINY, "--position", "7,900"], "outside the reduced frame"),
        ([FILM, "--atomz", 3], "--atomz"),
        ([], "FILM"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, arguments, message):
    out = tmp_path / "a" / "b"
    assert message in refused(run("predict", *arguments, "--out", out))
    assert not list(tmp_path.iterdir())


def test_out_that_is_a_file_lies_below_one_or_may_not_be_written_to(tmp_path, monkeypatch):
    path = tmp_path / "taken"
    path.write_text("mine")
    assert f"--out {path} is a file; give a folder" in refused(run("predict", FILM, *TINY, "--out", path))
    assert str(path / "below") in refused(run("predict", FILM, *TINY, "--out", path / "below"))
    assert path.read_text() == "mine"
    monkeypatch.setattr("psmt.cli.work.os.access", lambda *_: False)  # root may write anywhere
    assert "may not be written to" in refused(run("predict", FILM, *TINY, "--out", tmp_path))


@pytest.mark.slow
def test_earlier_files_survive_a_failure_at_the_last_moment(tmp_path, monkeypatch):
    earlier = tmp_path / "prediction.csv"
    earlier.write_text("earlier")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("psmt.utils.files.os.fsync", full)
    outcome = run("predict", FILM, *TINY, *FIXED, "--start", 150, "--out", tmp_path)
    assert outcome.code == 2
    assert "No space left on device" in outcome.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["prediction.csv"]
    assert earlier.read_text() == "earlier"


def test_interruption(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("psmt.experiments.prediction.phase.predict_phase", interrupted)
    outcome = run("predict", FILM, *TINY, "--start", 150, "--out", tmp_path / "out")
    assert outcome.code == 130
    assert "Traceback" not in outcome.stderr
    assert not list(tmp_path.iterdir())


def test_a_bug_is_not_disguised(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise KeyError("bug")

    with monkeypatch.context() as patched:
        patched.setattr("psmt.experiments.prediction.run.phase_task", broken)
        with pytest.raises(KeyError):
            run("predict", FILM, *TINY, "--start", 150, "--out", tmp_path / "out")
    monkeypatch.setattr("psmt.experiments.prediction.phase.predict_phase", broken)
    assert "KeyError: 'bug'" in run("predict", FILM, *TINY, "--start", 150, "--out", tmp_path / "out").stderr
    assert not list(tmp_path.iterdir())


# Help


def test_help_names_commands_examples_and_where_files_go():
    text = run("--help").stdout
    for words in ("psmt predict film.mp4", "psmt reproduce film.mp4", "psmt demo", "--out", "recovery"):
        assert words in text


def test_help_of_predict_names_every_option_with_its_default():
    text = " ".join(run("predict", "--help").stdout.replace("│", " ").split())
    assert "--literal" in text
    rows = COMMANDS["predict"].rows()
    assert ("--window", "H: number of codes of an embedding.", "3 times M") in rows
    for option, _, default in rows:
        assert f"{option} " in text
        if default:
            assert f"[default: {default}]" in text


def test_version():
    assert run("--version").stdout.strip() == psmt.__version__


def test_help_loads_nothing_that_only_the_work_needs():
    heavy = "{'matplotlib', 'jinja2', 'numba', 'numpy', 'sklearn'}"
    code = f"import sys, psmt.cli.app; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_progress_is_drawn_on_a_terminal_only(given):
    assert "━" in given.stderr and "psmt: read frames: 120 done in" not in given.stderr
    other = run("predict", FILM, *GIVEN, "--out", given.out).stderr
    assert "━" not in other and "psmt: read frames: 120 done in" in other
