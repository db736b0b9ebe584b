"""The map of regimes: a tiny run."""

from dataclasses import replace

import numpy as np
import pytest
from studies.regimes.figure import methods_figure
from studies.regimes.map import COPIES, METHODS, SIMPLE, MeasuredMap, Ratio
from studies.regimes.report import EXPERIMENT
from studies.regimes.run import RegimeRow, noisy_patches, regimes
from studies.regimes.settings import RegimesSettings
from studies.run import run_study

from psmt.data import GlideFilm
from psmt.figures import png
from psmt.pipeline.run import Run

TINY = RegimesSettings(
    speeds=(0.05, 4.0),
    noises=(0.0, 0.3),
    n_starts=6,
    n_atoms=48,
    window=144,
    past=160,
    horizon=6,
    n_components=16,
    lam=0.01,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and result of a tiny run."""
    folder = tmp_path_factory.mktemp("regimes")
    return folder, regimes(GlideFilm(), TINY, Run(folder=folder))


@pytest.mark.slow
def test_the_straight_line_wins_where_motion_is_slow_and_clean_and_nowhere_else(tmp_path):
    settings = RegimesSettings(speeds=(0.05, 4.0), noises=(0.0, 0.3), n_starts=6)
    line = regimes(GlideFilm(), settings, Run(folder=tmp_path)).map().ratios["code"]["psmt"]
    assert line[0.05, 0.0].mean < 0.3
    assert line[0.05, 0.0].verdict == "yes"
    for cell in ((0.05, 0.3), (4.0, 0.0), (4.0, 0.3)):
        assert line[cell].verdict != "yes"


def test_copying_has_ratio_one_and_the_mean_loses(made):
    known = made[1].map()
    for against, copying in COPIES.items():
        assert all(value.mean == pytest.approx(1) for value in known.ratios[against][copying].values())
        assert known.ratios[against]["mean"][0.05, 0.0].verdict == "no"


def test_ratios_are_those_of_mean_errors(made):
    rows = list(made[1].rows())
    assert len(rows) == 4 * 6 * len(METHODS)
    own, copied = (
        [row.mse_vs_frame for row in rows if (row.speed, row.noise, row.method) == (4.0, 0.3, method)]
        for method in ("ridge", "copy")
    )
    ratio = made[1].map().ratios["frame"]["ridge"][4.0, 0.3]
    assert ratio.mean == pytest.approx(np.mean(own) / np.mean(copied))
    assert ratio.low < ratio.mean < ratio.high


def test_psmt_is_compared_with_the_best_simple_method_of_each_cell(made):
    """The best by its mean over the films, vs code and vs frame separately."""
    known, rows = made[1].map(), list(made[1].rows())
    for against in COPIES:
        for cell, found in known.to_simple[against]["psmt"].items():
            means = {
                method: np.mean(
                    [getattr(r, f"mse_vs_{against}") for r in rows if (r.speed, r.noise, r.method) == (*cell, method)]
                )
                for method in METHODS
            }
            best = min(SIMPLE, key=means.__getitem__)
            assert found.method == best
            assert found.mean == pytest.approx(means["psmt"] / means[best])
            assert known.best(against)[cell].method == min(METHODS, key=means.__getitem__)


def test_the_films_are_as_asked(made):
    clean = [row for row in made[1].rows() if row.noise == 0 and row.method == "copy"]
    ratios = [row.measured_speed / row.speed for row in clean]
    assert np.median(ratios) == pytest.approx(1, rel=0.1)
    assert np.mean(np.abs(np.subtract(ratios, 1)) < 0.25) >= 0.9
    assert all(row.measured_noise < 0.05 for row in clean)
    noisy = [row.measured_noise for row in made[1].rows() if row.noise == 0.3]
    assert np.median(noisy) == pytest.approx(0.3, abs=0.08)


def test_noise_is_relative_to_the_patch():
    """A slow film sees one place: noise follows the contrast there, not that of the whole film."""
    for seed in (0, 5):
        film = GlideFilm(n_frames=60, seed=seed, speed=0.05, size=16)
        clean, noisy = noisy_patches(film, 0.0), noisy_patches(film, 0.2)
        # Standardised again with its noise, the content is smaller by the square root of 1 + 0.2^2.
        # Frames are clipped, which takes some of the noise at black and white.
        assert (noisy * np.sqrt(1.04) - clean).std() == pytest.approx(0.2, rel=0.2)


def test_an_interrupted_run_goes_on(made, monkeypatch):
    folder, result = made
    monkeypatch.setattr("studies.regimes.run._errors", None)
    assert list(regimes(GlideFilm(), TINY, Run(folder=folder)).rows()) == list(result.rows())


def test_files(made):
    files = EXPERIMENT.written(made[1])
    assert set(files) == {"regimes.csv", "regimes.png"}
    assert files["regimes.csv"].splitlines()[0].decode() == ",".join(RegimeRow._fields)


def test_verdicts_have_a_margin():
    assert Ratio(0.5, 0.4, 0.6).verdict == "yes"
    assert Ratio(0.97, 0.96, 0.98).verdict == "inconclusive"
    assert Ratio(2.0, 0.5, 8.0).verdict == "inconclusive"
    assert Ratio(2.0, 1.5, 3.0).verdict == "no"


def test_the_figure_is_drawn_for_any_grid():
    one = {(1.0, 0.1): np.random.default_rng(0).random((6, len(METHODS), 2))}
    assert png(methods_figure(MeasuredMap.of(one)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"speeds": ()}, "speeds=.. is not an axis of a map"),
        ({"noises": (0.1, 0.0)}, "noises=.*in ascending order"),
        ({"speeds": (0.0, 1.0)}, "speeds=0.0 is out of range"),
        ({"past": 100}, "past=100 is shorter than window=144; use past >= 144"),
        ({"n_starts": 5}, "n_starts=5 is too small; use n_starts >= 6"),
    ],
)
def test_bad_settings_name_the_way_out(changed, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **changed)


def test_the_command_needs_no_film_and_takes_no_other(tmp_path, capsys):
    assert run_study("studies.regimes", ["film.npy", "--out", str(tmp_path / "a")]) == 2
    np.save(tmp_path / "film.npy", np.zeros((40, 32, 32)))
    assert run_study("studies.regimes", [str(tmp_path / "film.npy"), "--out", str(tmp_path / "a")]) == 2
    assert "cannot be made faster or noisier; leave it out" in capsys.readouterr().err
    small = ["--speed", "1", "--noise", "0", "--n-starts", "6", "--atoms", "16", "--workers", "1"]
    assert run_study("studies.regimes", [*small, "--out", str(tmp_path / "b")]) == 0
    assert {"regimes.csv", "regimes.png"} < {path.name for path in (tmp_path / "b").iterdir()}
