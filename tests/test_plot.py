"""Plots show the numbers of models and tables, for pictures and for series, on the axes that they are given."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.exceptions import NotFittedError

from made_up_series import wave
from psmt import PSMT, FramePredictor, plot
from psmt.data import GlideFilm
from psmt.errors import PSMTError


@pytest.fixture(scope="module")
def model(glide):
    """Of patches of 6 x 6 pixels."""
    return PSMT(n_atoms=24, window=120, random_state=0).fit(glide[:300])


@pytest.fixture(scope="module")
def series_model():
    """Of 36 sensors: a square number, and no picture."""
    rng = np.random.default_rng(0)
    mixed = wave(300, 36)[:, rng.permutation(36)] * rng.choice([-1, 1], 36)
    return PSMT(n_atoms=20, window=120, n_components=8, lam=0.1, alpha=0.1, random_state=0).fit(mixed)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn(ax):
    ax.figure.canvas.draw()
    return ax


def shown(ax):
    """What an image shows, NaN between its pictures."""
    return np.ma.filled(ax.images[0].get_array(), np.nan)


@pytest.mark.parametrize("name", ["atoms", "codes", "trajectory", "topology", "prediction"])
def test_each_draws_where_it_is_told_or_makes_axes(model, series_model, name):
    function = getattr(plot, name)
    for fitted in (model, series_model):
        _, ax = plt.subplots()
        assert function(fitted, ax=ax) is ax
        made = drawn(function(fitted))
        assert made is not ax and made.get_title("left")
    with pytest.raises(NotFittedError):
        function(PSMT())


def test_importing_psmt_imports_no_matplotlib():
    script = "import sys, psmt; sys.exit(bool({'matplotlib', 'psmt.plot', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# Pictures, or not


def test_atoms_are_pictures_most_used_first(model):
    ax = plot.atoms(model, n=9)
    first = model.dictionary_[np.argmax(model.codes_.sum(axis=0))].reshape(6, 6)
    np.testing.assert_allclose(shown(ax)[:6, :6], first / np.abs(first).max())
    assert "9 of 24 atoms" in ax.get_title("left")
    assert np.isfinite(shown(ax)).sum() == 9 * 36


def test_a_square_number_of_features_is_no_picture(series_model):
    rows = plot.atoms(series_model, n=4)
    assert "36 features" in rows.get_title("left")
    first = series_model.dictionary_[np.argmax(series_model.codes_.sum(axis=0))]
    np.testing.assert_allclose(shown(rows)[0], first / np.abs(first).max())
    told = plot.atoms(series_model, n=4, shape=(4, 9))
    assert np.isfinite(shown(told)).sum() == 4 * 36 and "features" not in told.get_title("left")
    with pytest.raises(ValueError, match=r"shape=\(5, 5\) has 25 pixels, not 36 features"):
        plot.atoms(series_model, shape=(5, 5))


def test_predictions_of_whole_frames_and_atoms_of_arrays():
    frames = np.stack(list(GlideFilm(n_frames=40, size=32)))
    fitted = FramePredictor().fit(frames[:38])
    ax = drawn(plot.prediction(fitted, frames[38:]))
    assert shown(ax).shape[0] > 3 * 32  # what came, predictions, differences
    assert plot.atoms(np.eye(5)).get_title("left") == "5 atoms, 5 features"
    with pytest.raises(ValueError, match=r"dictionary has shape \(3,\)"):
        plot.atoms(np.ones(3))


def test_predictions_stand_below_what_came(model, glide):
    ax = plot.prediction(model, glide[300:305])
    tiles = shown(ax)
    np.testing.assert_allclose(tiles[:6, :6], glide[300].reshape(6, 6))
    np.testing.assert_allclose(tiles[7:13, 7:13], model.predict(2)[1].reshape(6, 6))
    with pytest.raises(ValueError, match=r"truth has shape \(2, 36\) but predictions have \(3, 36\)"):
        plot.prediction(model.predict(3), glide[300:302])


@pytest.mark.parametrize("n_features", [31, 36])
def test_predictions_of_series_are_lines(n_features):
    rng = np.random.default_rng(1)
    came, predicted = rng.standard_normal((2, 9, n_features))
    ax = plot.prediction(predicted, came)
    lively = np.sort(np.argsort(-came.std(axis=0))[:4])
    lines = [line.get_ydata() for line in ax.lines if len(line.get_ydata())]
    np.testing.assert_array_equal(lines, [values[:, k] for k in lively for values in (came, predicted)])
    assert len(plot.prediction(predicted, shape=None).lines) == 9


def test_a_forecast_has_names_a_past_and_an_interval():
    table = pd.DataFrame(np.cumsum(np.random.default_rng(2).standard_normal((200, 3)), axis=0), columns=["a", "b", "c"])
    model = PSMT.for_series(n_atoms=16, random_state=0).fit(table[:150])
    ax = plot.prediction(model, table[150:155], interval=0.8, features=["c", 0], past=table[:150])
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["c", "a", "truth", "predicted", "interval"]
    known, predicted = (line.get_xydata() for line in ax.lines[:2])
    np.testing.assert_array_equal(known[:, 0], np.arange(-59, 6))
    np.testing.assert_array_equal(known[:, 1], table["c"][90:155])
    forecast = model.predict(5, interval=0.8)
    np.testing.assert_array_equal(predicted[:, 1], forecast.predicted["c"])
    low, high = forecast.lower["c"].min(), forecast.upper["c"].max()
    drawn = ax.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([drawn.min(), drawn.max()], [low, high])
    again = plot.prediction(forecast, features=["b"])
    assert again.get_legend().get_texts()[0].get_text() == "b"
    with pytest.raises(ValueError, match="feature 'd' is not there; choose from 0 to 2, or a, b, c"):
        plot.prediction(forecast, features=["d"])
    atoms = plot.atoms(model)
    assert [tick.get_text() for tick in atoms.get_xticklabels()] == ["a", "b", "c"]
    assert atoms.images[0].get_array().shape == (16, 3)


def test_codes_and_trajectories_are_the_models(model, glide):
    ax = plot.codes(model, n=5, last=30)
    used = np.argsort(-model.codes_[-30:].sum(axis=0), kind="stable")[:5]
    np.testing.assert_array_equal(ax.images[0].get_array(), model.codes_[-30:, used].T)
    ax = plot.trajectory(model, glide[300:340], components=(0, 2))
    points = model.transform(glide[300:340])[:, [0, 2]]
    np.testing.assert_allclose([segment[0] for segment in ax.collections[0].get_segments()], points[:-1])
    with pytest.raises(ValueError, match=r"components=\(0, 99\) are not there; there are 0 to"):
        plot.trajectory(model, components=(0, 99))


def test_links_are_those_above_the_threshold():
    matrix = np.array([[1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.1, -0.1, 1.0, 0.0]])
    ax = plot.topology(matrix, threshold=0.9)
    assert ax.get_title("left").startswith("3 links between 4 atoms")
    assert sum(len(lines.get_segments()) for lines in ax.collections if hasattr(lines, "get_segments")) == 3
    assert "0 links" in plot.topology(np.eye(4)).get_title("left")


# Surprise


def test_surprise_is_what_the_model_says_and_leaves_it_as_it_is(model, glide):
    future = glide[300:340].copy()
    future[20:] = np.random.default_rng(0).standard_normal((20, 36)) * 3
    before = model.predict()
    ax = plot.surprise(model, future)
    values = ax.lines[0].get_ydata()
    assert values[20] > 3 * values[:20].max()
    assert "no cut" not in ax.get_title("left")
    np.testing.assert_array_equal(model.predict(), before)
    with pytest.raises(ValueError, match=r"give the frames that came next: surprise\(model, frames\)"):
        plot.surprise(model)


def test_surprise_of_numbers():
    assert "no cut" in plot.surprise(np.ones(4)).get_title("left")


# Files


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.png", b"\x89PNG"),
        pytest.param("a.PDF", b"%PDF", marks=pytest.mark.slow),
        pytest.param("a.svg", b"<?xml", marks=pytest.mark.slow),
    ],
)
def test_files_are_what_their_name_says_and_the_same_each_time(tmp_path, name, begins):
    contents = [plot.save(plot.atoms(np.eye(6)), tmp_path / name).read_bytes() for _ in range(2)]
    assert contents[0] == contents[1]
    assert contents[0].startswith(begins)


def test_other_names_are_refused(tmp_path):
    with pytest.raises(PSMTError, match=r"use \.pdf, \.png or \.svg"):
        plot.save(plot.atoms(np.eye(6)), tmp_path / "a.txt")
