"""Plots show the numbers of models and tables, for pictures and for series, on the axes that they are given."""

import subprocess
import sys
from collections import namedtuple

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.exceptions import NotFittedError

from conftest import wave
from psmt import PSMT, FramePSMT, plot
from psmt.data import MovingShapes
from psmt.errors import MissingSourceError, PSMTError
from psmt.report import to_csv


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
    bars = plot.atoms(series_model, n=4)
    assert "36 features as bars" in bars.get_title("left")
    assert set(np.unique(shown(bars)[np.isfinite(shown(bars))])) == {-1.0, 0.0, 1.0}
    told = plot.atoms(series_model, n=4, shape=(4, 9))
    assert np.isfinite(shown(told)).sum() == 4 * 36 and "bars" not in told.get_title("left")
    with pytest.raises(ValueError, match=r"shape=\(5, 5\) has 25 pixels but there are 36 features"):
        plot.atoms(series_model, shape=(5, 5))


def test_predictions_of_whole_frames_and_atoms_of_arrays():
    frames = np.stack(list(MovingShapes(n_frames=40, size=32)))
    fitted = FramePSMT().fit(frames[:38])
    ax = drawn(plot.prediction(fitted, frames[38:]))
    assert shown(ax).shape[0] > 3 * 32  # what came, predictions, differences
    assert plot.atoms(np.eye(5)).get_title("left") == "5 atoms, 5 features as bars"
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
    with pytest.raises(ValueError, match=r"give those that came next: surprise\(model, frames\)"):
        plot.surprise(model)


def test_surprise_of_a_table_and_of_numbers():
    table = {
        "frame": [5, 5, 6, 6, 7, 7],
        "method": ["copy", "psmt"] * 3,
        "surprise": [np.nan, 1.0, np.nan, 40.0, np.nan, 0.5],
        "cut": [0, 0, 0, 1, 0, 0],
    }
    ax = plot.surprise(table)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[5, 1], [6, 40], [7, 0.5]])
    assert "1 cut" in ax.get_title("left")
    assert "no cut" in plot.surprise(np.ones(4)).get_title("left")


# Tables


def test_errors_of_all_methods_from_a_file_a_result_and_a_mapping(make_result, tmp_path):
    result = make_result("calm", horizon=5)
    rows = list(result.rows())
    file = tmp_path / "prediction.csv"
    file.write_bytes(to_csv(rows[0]._fields, rows))
    columns = {name: [getattr(row, name) for row in rows] for name in rows[0]._fields}
    for table in (file, str(file), result, columns, Frame(columns)):
        ax = plot.prediction(table)
        lines = {line.get_label().split(" (")[0]: line.get_ydata() for line in ax.lines}
        assert len(lines) == len(result.scores)
        np.testing.assert_allclose(lines["copy last patch"], np.log(result.scores["copy"].vs_frame))
    with pytest.raises(PSMTError, match="phase='lively' is not in the table; there are 'calm'"):
        plot.prediction(result, phase="lively")


class Frame(dict):
    """As much of a data frame as is asked for."""

    columns = property(lambda self: list(self))

    def __getitem__(self, name):
        return namedtuple("Column", "to_numpy")(lambda: np.array(dict.__getitem__(self, name)))


def test_a_sweep_is_table_1():
    rng = np.random.default_rng(0)
    sizes = [(8, 16), (8, 24), (16, 32), (16, 48)]
    columns = {"lam": np.full(400, 0.1), "n_atoms": [], "window": [], "mse": rng.random(400)}
    for n_atoms, window in sizes:
        columns["n_atoms"] += [n_atoms] * 100
        columns["window"] += [window] * 100
    ax = plot.sweep(columns)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["M = 8", "M = 16"]
    inner = np.sort(columns["mse"][:100])[25:75]
    assert ax.lines[0].get_ydata()[0] == pytest.approx(inner.mean())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2 M", "3 M"]
    with pytest.raises(PSMTError, match=r"lam=0.5 is not in the table; there are 0.1"):
        plot.sweep(columns, lam=0.5)


def test_the_choice_of_a_model_is_drawn(model, series_model):
    ax = plot.sweep(model)
    best = min(model.choice_.scores.values())
    assert ax.lines[-1].get_xydata().tolist() == [[model.lam_, best]]
    with pytest.raises(PSMTError, match="nothing was chosen"):
        plot.sweep(series_model)


def test_links_over_time_from_a_table():
    table = {"center": [1, 1, 2, 2], "atom": [3, 7, 3, 7], "component_size": [1, 4, 2, 8]}
    ax = plot.topology(table)
    np.testing.assert_array_equal([line.get_ydata() for line in ax.lines], [[1, 2], [4, 8]])


def test_tables_that_are_none_say_what_to_give(tmp_path):
    with pytest.raises(MissingSourceError, match="check the path"):
        plot.sweep(tmp_path / "sweep.csv")
    with pytest.raises(PSMTError, match=r"no column 'lam', .* but 'a'; give what psmt sweep \(sweep.csv\) writes"):
        plot.sweep({"a": [1]})
    with pytest.raises(PSMTError, match="the table is empty"):
        plot.surprise({"surprise": []})


# Files


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.svg", b"<?xml")])
def test_files_are_what_their_name_says_and_the_same_each_time(tmp_path, name, begins):
    contents = [plot.save(plot.atoms(np.eye(6)), tmp_path / name).read_bytes() for _ in range(2)]
    assert contents[0] == contents[1]
    assert contents[0].startswith(begins)


def test_other_names_are_refused(tmp_path):
    with pytest.raises(PSMTError, match=r"use \.pdf, \.png or \.svg"):
        plot.save(plot.atoms(np.eye(6)), tmp_path / "a.txt")
