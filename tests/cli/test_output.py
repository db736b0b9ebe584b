"""What commands say: reports and summaries of all, tables on narrow screens, progress in pipes, words of errors."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from time import sleep

import numpy as np
import pytest
from PIL import Image

from cli.calls import refused, run
from made_up_series import wave
from psmt.cli.app import COMMANDS, app, as_typed
from psmt.cli.terminal import Bars, planned, show, show_table
from psmt.experiments import EXPERIMENTS, command_of, experiment_of
from psmt.experiments.contract import Experiment
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.phase import predict_phase
from psmt.figures.panels import as_picture
from psmt.report import Cell, Table

SMALL = {"horizon": 3, "n_atoms": 12, "window": 40, "n_components": 4, "alpha": 0.1, "lam": 0.1}


# Reports and summaries


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """A TIFF stack of 60 pages."""
    path = tmp_path_factory.mktemp("stack") / "cells.tif"
    pages = [Image.fromarray(page) for page in np.random.default_rng(0).integers(0, 255, (60, 24, 24), dtype=np.uint8)]
    pages[0].save(path, save_all=True, append_images=pages[1:])
    return path


def test_a_stack_has_a_report_and_a_summary_for_machines(stack, tmp_path):
    options = ["--size", 24, "--patch", 4, "--alpha", 0.3, "--workers", 1, "--out", tmp_path, "--json"]
    outcome = run("reconstruct", stack, *options)
    assert outcome.code == 0, outcome.stderr
    (line,) = outcome.stdout.splitlines()
    told = json.loads(line)
    assert told == json.loads((tmp_path / "summary.json").read_bytes())
    assert (told["command"], told["film"]["name"], told["film"]["n_frames"]) == ("reconstruct", "cells.tif", 60)
    # The paper's 512 atoms do not fit: fewer are taken, and that is said.
    assert told["settings"]["reconstruction"]["n_atoms"] == 32
    assert "M = 32 was used" in outcome.stderr and "M = 32 was used" in told["notes"][0]
    page = (tmp_path / "report.html").read_text()
    assert "psmt reconstruct on “cells.tif”" in page and "M = 32 was used" in page
    assert "<img" in page


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_report_and_numbers(name):
    experiment = experiment_of(name)
    assert "report.html" in experiment.files or experiment.page or command_of(name).chapter
    assert "summary.json" in experiment.files or experiment.summary is not Experiment.summary


# Series


def _series():
    moments = wave(80, 4) + 0.1 * np.random.default_rng(0).standard_normal((80, 4))
    return moments, moments * [1e4, 1e-3, 1.0, 50.0] + [9e5, 0.0, -3.0, 1.0]


def test_units_of_a_series_do_not_matter():
    plain, odd = (predict_phase(values, FilmPhase("one", 60), series=True, **SMALL) for values in _series())
    for method, score in plain.scores.items():
        np.testing.assert_allclose(odd.scores[method].vs_frame, score.vs_frame, rtol=1e-4)


def test_features_of_a_series_are_no_pixels():
    assert as_picture(np.ones(16), (4, 4)).shape == (4, 4)
    assert as_picture(np.ones(16), None).shape == (32, 32)


def test_the_extrapolation_that_was_asked_for_predicts():
    values, _ = _series()
    found = {
        name: predict_phase(values, FilmPhase("one", 60), series=True, extrapolation=name, **SMALL).scores
        for name in ("linear", "hold", "dynamics")
    }
    predicted = [scores["psmt"].predicted for scores in found.values()]
    assert not np.allclose(predicted[0], predicted[1]) and not np.allclose(predicted[0], predicted[2])
    np.testing.assert_array_equal(found["linear"]["baseline2"].predicted, found["hold"]["baseline2"].predicted)
    for command in ("predict", "reproduce"):
        _, bound, _ = app.parse_args([command, "film.mp4", "--extrapolation", "dynamics"])
        job = COMMANDS[command].job(COMMANDS[command].values(bound.arguments["given"]))
        assert job.settings()["prediction"].extrapolation == "dynamics"


# The screen


@pytest.fixture
def table():
    row = [Cell("PSMT, learned gain"), Cell("−3.54"), Cell("0.0123"), Cell("13.41", "loses"), Cell("0.392"), Cell("1")]
    measures = ["log MSE vs code", "MSE vs code", "vs code ÷ copying", "MSE vs frame", "vs frame ÷ copying"]
    return Table("methods", ["method", *measures], [row])


@pytest.mark.parametrize("width", [120, 60, 40])
def test_a_narrow_screen_wraps_cells(table, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    with redirect_stdout(io.StringIO()) as shown:
        show_table(table)
    assert all(len(line) <= width for line in shown.getvalue().splitlines())
    assert "…" not in shown.getvalue()
    assert ("loses" in shown.getvalue()) == (width > 40)


PLAN = {"load": 1.0, "codes": 4.0, "draw": 5.0}


def test_a_long_step_is_told_in_a_pipe(monkeypatch):
    monkeypatch.setattr("psmt.cli.terminal._SOONEST", 0.0)
    with redirect_stderr(io.StringIO()) as stderr, Bars("predict film", PLAN, interval=0.02) as progress:
        assert stderr.getvalue() == "psmt: predict film: load libraries, stage 1 of 3\n"
        progress("codes", 2, 8)
        sleep(0.1)
        progress("codes", 3, 8)
        progress("codes", 4, 8)
        sleep(0.1)
        progress("codes", 8, 8)
    _, first, *_, last = stderr.getvalue().splitlines()
    assert first == "psmt: codes: 2 of 8 after 0:00; 20% of all"
    assert any(
        line.startswith("psmt: codes: 4 of 8 after 0:00; 30% of all; 0:0") for line in stderr.getvalue().splitlines()
    )
    assert last.startswith("psmt: codes: 8 done in 0.")
    assert last.endswith(" left")


def test_the_time_left_follows_the_last_tasks(monkeypatch):
    """The first task compiles for 75 s, and the others take 2.5 s. A part found in the folder took no time."""
    now = 0.0
    monkeypatch.setattr("psmt.cli.terminal.perf_counter", lambda: now)
    with redirect_stderr(io.StringIO()), Bars("predict rows", {"codes": 1.0}, interval=60) as progress:
        progress("codes", 20, 100)
        assert progress._left() == ""
        told = []
        for done in range(21, 31):
            now += 75.0 if done == 21 else 2.5
            progress("codes", done, 100)
            told.append(progress._left())
    assert told[:2] == ["", "3:15 left"]
    assert told[-1] == "2:55 left"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_has_its_stages_in_the_plan(name):
    assert len(planned([name])) >= 5
    assert list(planned([name]))[-1] == "draw figures"


# Words


def test_examples_of_the_help_fit_into_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    examples = run("--help").stdout.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert len(examples) >= 8
    assert all(line.startswith("  psmt ") and len(line) <= 79 for line in examples)


def test_errors_speak_of_options():
    predict, sweep = COMMANDS["predict"].names, COMMANDS["sweep"].names
    assert as_typed("n_components=9 is more; use n_components <= 4, or a longer window", predict) == (
        "--components 9 is more; use --components <= 4, or a longer window"
    )
    assert as_typed("patch_size=9 of a larger frame_size", sweep) == "--patch 9 of a larger --size"
    assert as_typed("starts=(9,) with n_starts=3; start=9", predict) == "--start 9 with --starts 3; --start 9"


@pytest.mark.parametrize("out", ["missing/p.psmt", "."])
def test_learn_refuses_its_file_before_it_reads_a_film(tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    assert f"psmt: error: {out}: " in refused(run("learn", "no-such-film.mp4", "--out", out))


def test_learn_leaves_no_file_after_an_error(tmp_path):
    assert "no-such-film.mp4 does not exist" in refused(run("learn", "no-such-film.mp4", "--out", tmp_path / "p"))
    assert not list(tmp_path.iterdir())


def test_names_in_what_is_printed_at_the_end_do_not_control_the_terminal(capsys):
    show(["Next: psmt predict '\x1b[2J\x9b31m\u202e.csv' --starts 2", "out/\x07/report.html"])
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.split("\n"))
    assert printed.count("\n") == 2
