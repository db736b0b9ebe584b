"""The promise of the registration: every experiment is found from its line, on films and on series alike."""

from dataclasses import replace

import numpy as np
import pytest

from conftest import wave
from psmt.experiments import EXPERIMENTS, command_of, experiment_of
from psmt.experiments.prediction.command import PredictOptions
from psmt.experiments.reconstruction.command import ReconstructOptions
from psmt.experiments.reproduce.command import ReproduceOptions
from psmt.experiments.reproduce.page import FilmRecord, make_page, make_sections, make_summary
from psmt.experiments.reproduce.run import asked_settings, chapters, demo_settings, reproduce
from psmt.experiments.sweep.command import SweepOptions
from psmt.experiments.topology.command import TopologyOptions
from psmt.figures.panels import as_picture
from psmt.pipeline.run import Run
from psmt.report import render

PNG = b"\x89PNG"


def test_every_line_is_a_command_and_an_experiment_and_no_two_share_a_name_or_a_claim():
    commands = [command_of(name) for name in EXPERIMENTS]
    assert len({command.name for command in commands}) == len(EXPERIMENTS)
    assert len({command.options().out for command in commands}) == len(EXPERIMENTS)
    for command in commands:
        assert command.help.split("\n\n")[0].endswith(".")
    files = [file for name in chapters() for file in experiment_of(name).files]
    claims = [claim.key for chapter in chapters().values() for claim in chapter.claims(None, "too short")]
    for names in (files, claims):
        assert len(set(names)) == len(names) > 0


def test_what_is_needed_comes_earlier():
    for name, settings in asked_settings(ReproduceOptions()).items():
        for need in experiment_of(name).needs(settings):
            assert EXPERIMENTS.index(need) < EXPERIMENTS.index(name)


def test_options_of_another_command_are_taken_where_they_mean_the_same():
    given = ReproduceOptions(atoms=40, window=130, components=7, alpha=0.3, seed=3, start=(200,), horizon=5)
    assert SweepOptions.within(given).atoms == (40,)
    assert SweepOptions.within(given).window is None  # there it would be one row of Table 1
    assert TopologyOptions.within(given).window == ReconstructOptions.within(given).window == 130
    assert PredictOptions.within(given).start == (200,)
    assert SweepOptions.within(ReproduceOptions()).atoms == ()
    for settings in asked_settings(given).values():
        assert (settings.alpha, settings.seed) == (0.3, 3)
    assert {settings.seed for settings in demo_settings(ReproduceOptions(seed=5)).values()} == {5}


@pytest.mark.parametrize("quick", [False, True])
def test_commands_alone_ask_for_what_the_whole_paper_asks_for(quick):
    whole = asked_settings(ReproduceOptions(quick=quick))
    for name, settings in whole.items():
        assert command_of(name).options(quick=quick).settings() == settings
        assert type(settings).quick() == replace(settings) or not quick


# Series


def test_values_that_are_no_pixels_are_bars_even_where_they_would_fill_a_square():
    bars = as_picture(np.array([2.0, -1.0, 0.0, 0.5, -9.0]), None, limit=2.0)
    assert bars.shape == (32, 5)
    np.testing.assert_array_equal((bars > 0).sum(axis=0), [16, 0, 0, 4, 0])
    np.testing.assert_array_equal((bars < 0).sum(axis=0), [0, 8, 0, 0, 16])
    assert set(np.unique(bars)) == {-2.0, 0.0, 2.0}
    assert as_picture(np.ones(1000), None).shape == (32, 64)
    assert as_picture(np.ones(36), None).shape == (32, 36)


@pytest.fixture(scope="module")
def series_done(tmp_path_factory):
    """The whole paper on 31 sensors."""
    options = ReproduceOptions(atoms=24, components=6, alpha=0.1, lam=0.1, horizon=4)
    asked = asked_settings(options)
    asked["topology"] = replace(asked["topology"], overlap=0.75, n_permutations=19)
    return reproduce(wave(600, 31), asked, Run(folder=tmp_path_factory.mktemp("series")))


@pytest.mark.slow
def test_every_figure_and_section_bears_a_series(series_done):
    assert set(series_done.results) == set(chapters())
    files = {}
    for name, result in series_done.results.items():
        files |= experiment_of(name).written(result)
    assert all(content.startswith(PNG) for name, content in files.items() if name.endswith(".png"))
    assert any(name.endswith(".csv") for name in files)
    film = FilmRecord(name="sensors", checksum="0" * 64, n_frames=600)
    page = make_page(series_done, film, make_sections(series_done, files), {})
    html = render(page).decode()
    assert html.count("<img") >= 5
    assert "pixels, the centre" not in html
    assert b'"patch_size": null' in make_summary(series_done, film)
    assert [fact for fact in page.facts if fact.name == "Patch"] == []
