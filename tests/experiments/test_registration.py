"""The promise of the registration: every experiment is found from its line, on films and on series alike."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest
from studies.run import run_study

from made_up_series import wave
from psmt.cli.app import COMMANDS
from psmt.cli.commands import of_experiment, of_paper
from psmt.cli.work import fit_settings, run_experiments
from psmt.experiments import EXPERIMENTS, chapters, command_of, experiment_of
from psmt.experiments.contract import Command
from psmt.experiments.film_report import FilmRecord, FilmResults, make_page, make_summary
from psmt.experiments.options.declaration import Option
from psmt.experiments.options.parameters import extrapolation_names
from psmt.experiments.prediction import settings as prediction
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.extrapolation import EXTRAPOLATIONS
from psmt.figures.panels import as_picture
from psmt.pipeline.run import Run
from psmt.report import render
from psmt.utils.constraints import count

PNG = b"\x89PNG"


def asked(**given):
    """Settings that `psmt reproduce` asks for."""
    return COMMANDS["reproduce"].job(given).settings()


def test_every_line_is_a_command_and_an_experiment_and_no_two_share_a_name_or_a_claim():
    commands = [command_of(name) for name in EXPERIMENTS]
    assert len({command.name for command in commands}) == len(EXPERIMENTS)
    for command in commands:
        assert command.help.split("\n\n")[0].endswith(".")
    files = [file for name in chapters() for file in experiment_of(name).files]
    claims = [claim.key for name in chapters() for claim in experiment_of(name).claims(None, "too short")]
    for names in (files, claims):
        assert len(set(names)) == len(names) > 0


def test_what_is_needed_comes_earlier():
    for name, settings in asked().items():
        for need in experiment_of(name).needs(settings):
            assert EXPERIMENTS.index(need) < EXPERIMENTS.index(name)


def test_parameters_of_another_command_are_taken_where_they_mean_the_same():
    given = asked(n_atoms=40, window=130, n_components=7, alpha=0.3, seed=3, starts=(200,), horizon=5)
    assert given["sweep"].n_atoms == (40,)
    assert given["sweep"].window is None  # there it would be one row of Table 1
    assert given["topology"].window == given["reconstruction"].window == 130
    assert given["prediction"].starts == (200,)
    assert asked(n_atoms=40)["topology"].window == 120
    for settings in given.values():
        assert (settings.alpha, settings.seed) == (0.3, 3)
    assert {own.seed for own in COMMANDS["demo"].job({"seed": 5}).settings().values()} == {5}


def test_what_an_experiment_needs_has_its_values():
    own = prediction.PredictionSettings(n_atoms=64, window=200, alpha=0.3, lam="auto", n_components=5, horizon=7)
    needed = own.shared_with(ReconstructionSettings)
    assert (needed.n_atoms, needed.window, needed.alpha, needed.n_components, needed.horizon) == (64, 200, 0.3, 5, 7)
    assert needed.lam == 0.1


@pytest.mark.parametrize("quick", [False, True])
def test_commands_alone_ask_for_what_the_whole_paper_asks_for(quick):
    for name, settings in asked(quick=quick).items():
        assert of_experiment(name).job({"quick": quick}).settings() == {name: settings}
        assert type(settings).make(preset="quick" if quick else "") == settings


# One declaration


@dataclass(frozen=True, kw_only=True)
class _OneMoreOption(prediction.PredictionSettings):
    patience: Annotated[int, Option("--patience", "P: how long one waits."), count()] = 5


def test_an_option_that_is_added_to_predict_is_in_reproduce(monkeypatch):
    command = Command(name="predict", help="Predict.", settings=_OneMoreOption, chapter=True)
    monkeypatch.setattr(prediction, "COMMAND", command)
    _, reproduce = of_paper()
    assert ("--patience", "P: how long one waits.", "5") in reproduce.rows()
    assert reproduce.names["patience"] == "--patience"
    assert reproduce.job({"patience": 9}).settings()["prediction"].patience == 9
    assert "P = 9" in reproduce.job({"patience": 9}).settings()["prediction"].text()
    with pytest.raises(ValueError, match="patience=0 is too small; use patience >= 1"):
        reproduce.job({"patience": 0}).settings()


def test_one_option_is_one_parameter_in_all_experiments():
    for command in COMMANDS.values():
        by_option = {}
        for name, owned in command.declared.items():
            for one in owned.values():
                assert by_option.setdefault(one.option.name, name) == name


def test_choices_on_the_command_line_are_those_of_the_library():
    from psmt.experiments.predict_video.settings import VideoSettings
    from psmt.video import FRAME_BASELINES, FRAME_EXTRAPOLATIONS

    assert set(extrapolation_names()) == set(EXTRAPOLATIONS)
    for name in FRAME_EXTRAPOLATIONS:
        VideoSettings(extrapolation=name)
    VideoSettings(baselines=tuple(name for name, entry in FRAME_BASELINES.items() if entry.slow))
    with pytest.raises(ValueError, match="did you mean 'phase'"):
        VideoSettings(extrapolation="phases")


# The least that an experiment needs

_SETTINGS = '''
from dataclasses import dataclass
from psmt.experiments.contract import Command
from psmt.experiments.options.declaration import Settings

@dataclass(frozen=True, kw_only=True)
class CountSettings(Settings):
    """Nothing to set but this."""
    every: int = 2

COMMAND = Command(name="count", help="Count frames.", settings=CountSettings)
'''

_EXPERIMENT = """
from psmt.experiments.contract import Experiment

EXPERIMENT = Experiment(
    run=lambda values, settings, run, _: len(values) // settings.every,
    shown=lambda result: [f"{result} frames"],
    files={"count.csv": lambda result: b"%d" % result},
)
"""


def test_an_experiment_needs_its_settings_and_a_function_only(tmp_path, monkeypatch, capsys):
    package = tmp_path / "elsewhere" / "counting"
    package.mkdir(parents=True)
    (package / "settings.py").write_text(_SETTINGS)
    (package / "report.py").write_text(_EXPERIMENT)
    monkeypatch.syspath_prepend(tmp_path)
    np.save(tmp_path / "film.npy", np.random.default_rng(0).uniform(size=(30, 20, 20)))
    options = ["--size", "20", "--patch", "4", "--workers", "1", "--out", str(tmp_path / "out")]
    assert run_study("elsewhere.counting", [str(tmp_path / "film.npy"), *options]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "15 frames"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"count.csv", "summary.json", "report.html"}


# Series


def test_values_that_are_no_pixels_are_bars_even_where_they_would_fill_a_square():
    bars = as_picture(np.array([2.0, -1.0, 0.0, 0.5, -9.0]), None, limit=2.0)
    assert bars.shape == (32, 30)  # few bars are widened
    bars = bars[:, ::6]
    np.testing.assert_array_equal((bars > 0).sum(axis=0), [16, 0, 0, 4, 0])
    np.testing.assert_array_equal((bars < 0).sum(axis=0), [0, 8, 0, 0, 16])
    assert set(np.unique(bars)) == {-2.0, 0.0, 2.0}
    assert as_picture(np.ones(1000), None).shape == (32, 64)
    assert as_picture(np.ones(36), None).shape == (32, 36)


@pytest.fixture(scope="module")
def series_done(tmp_path_factory):
    """The whole paper on 31 sensors."""
    given = asked(n_atoms=24, n_components=6, alpha=0.1, lam=0.1, horizon=4)
    given["topology"] = replace(given["topology"], overlap=0.75, n_permutations=19)
    used, notes = fit_settings(given, 600)
    results = run_experiments(wave(600, 31), used, Run(folder=tmp_path_factory.mktemp("series")))
    film = FilmRecord(name="sensors", checksum="0" * 64, n_frames=600)
    return FilmResults(command="reproduce", film=film, asked=given, used=used, notes=notes, results=results, paper=True)


@pytest.mark.slow
def test_every_figure_and_section_bears_a_series(series_done):
    assert set(series_done.results) == set(chapters())
    files = {}
    for name, result in series_done.results.items():
        files |= experiment_of(name).written(result)
    assert all(content.startswith(PNG) for name, content in files.items() if name.endswith(".png"))
    assert any(name.endswith(".csv") for name in files)
    page = make_page(series_done, files)
    html = render(page).decode()
    assert html.count("<img") >= 5
    assert "pixels, the centre" not in html
    assert b'"patch_size": null' in make_summary(series_done, page)
    assert [fact for fact in page.facts if fact.name == "Patch"] == []
