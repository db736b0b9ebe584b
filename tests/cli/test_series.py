"""A series on the command line: taken in any units by what looks at patches, refused where there must be pictures."""

import json
import re

import numpy as np
import pytest

from cli.calls import read_csv, run
from made_up_series import wave
from psmt.cli.commands import of_experiment
from psmt.data import open_series
from psmt.errors import SeriesWarning
from psmt.experiments.options.declaration import declarations
from psmt.experiments.options.parameters import make_departures
from psmt.experiments.prediction.settings import PredictionSettings

pytestmark = pytest.mark.usefixtures("blank_figures")
TINY = ["--atoms", "16", "--components", "4", "--lam", "0.1", "--alpha", "0.1", "--workers", "1"]


@pytest.fixture(scope="module")
def sensors(tmp_path_factory):
    """31 sensors over 150 moments, as text and as an array."""
    folder = tmp_path_factory.mktemp("sensors")
    np.savetxt(folder / "sensors.csv", wave(150, 31), delimiter=",", fmt="%.17g")
    np.save(folder / "sensors.npy", wave(150, 31))
    return folder


@pytest.mark.slow
def test_errors_are_in_standard_deviations_of_the_past(sensors, tmp_path):
    options = ["--start", 100, "--horizon", 4, *TINY, "--out", tmp_path]
    assert run("predict", sensors / "sensors.csv", *options).code == 0
    values = wave(150, 31)
    values = (values - values[:100].mean(axis=0)) / values[:100].std(axis=0)
    rows = read_csv(tmp_path / "prediction.csv")
    found = [float(row["mse_vs_frame"]) for row in rows if row["method"] == "copy"]
    # Standardised values are rounded to multiples of 2^-32.
    np.testing.assert_allclose(found, np.mean(np.diff(values[100:105], axis=0) ** 2, axis=1), rtol=1e-8)


@pytest.mark.slow
def test_the_whole_paper_on_a_series(sensors, tmp_path):
    outcome = run("reproduce", sensors / "sensors.npy", *TINY, "--horizon", 4, "--out", tmp_path)
    assert outcome.code == 0, outcome.stderr
    film = json.loads((tmp_path / "summary.json").read_bytes())["film"]
    assert (film["n_frames"], film["patch_size"]) == (150, None)
    page = (tmp_path / "report.html").read_text()
    assert "standardised features" in page and "standardised patches" not in page


@pytest.fixture(scope="module")
def weather(tmp_path_factory):
    """A table of 150 days with an index of dates, and what `psmt predict` makes of it."""
    folder = tmp_path_factory.mktemp("weather")
    values = np.cumsum(np.random.default_rng(0).standard_normal((150, 3)), axis=0) * [1.0, 10.0, 100.0] + 1000
    days = np.datetime64("2026-01-01") + np.arange(150)
    lines = [f"{day},{','.join(map(repr, map(float, row)))}" for day, row in zip(days, values, strict=True)]
    (folder / "weather.csv").write_text("\n".join(["day,temp,wind,rain", *lines]))
    few = ["--horizon", 10, "--starts", 2, "--workers", 1]
    outcome = run("predict", folder / "weather.csv", *few, "--out", folder / "out")
    assert outcome.code == 0, outcome.stderr
    return folder, values, outcome


@pytest.mark.slow
def test_a_table_is_predicted_as_for_series(weather):
    folder, _, outcome = weather
    settings = json.loads((folder / "out" / "summary.json").read_bytes())["settings"]["prediction"]
    assert (settings["extrapolation"], settings["departures"]["on_cut"]) == ("dynamics", "ignore")
    assert (settings["window"], settings["n_atoms"]) == (75, 16)
    assert "'day' is the index of the rows" in outcome.stderr


@pytest.mark.slow
def test_a_table_is_spoken_of_in_rows_and_features(weather):
    folder, _, outcome = weather
    page = re.sub(
        r"<style.*?</style>|data:image[^\"]+|<[^>]+>", " ", (folder / "out" / "report.html").read_text(), flags=re.S
    )
    for text in (outcome.stdout, page):
        assert "copy last row" in text and "features, learned gain" in text
        assert not re.search(r"\b(patch|frame|film|pixel)(e?s)?\b", text, re.IGNORECASE)
    assert "temp, wind, rain" in page


@pytest.mark.slow
def test_the_forecast_has_intervals_in_the_units_of_the_table(weather):
    folder, values, _ = weather
    rows = read_csv(folder / "out" / "forecast.csv")
    assert [row["feature"] for row in rows[:3]] == ["temp", "wind", "rain"]
    names = {"temp": 0, "wind": 1, "rain": 2}
    truth = [values[int(row["frame"]), names[row["feature"]]] for row in rows]
    np.testing.assert_allclose([float(row["truth"]) for row in rows], truth)
    first = np.datetime64("2026-01-01")
    assert [row["time"] for row in rows] == [str(first + int(row["frame"])) for row in rows]
    assert all(float(row["lower"]) < float(row["upper"]) for row in rows)
    hits = [float(row["lower"]) <= float(row["truth"]) <= float(row["upper"]) for row in rows]
    assert 0.7 < np.mean(hits) <= 1.0


@pytest.mark.slow
def test_columns_are_chosen_by_name(weather, tmp_path):
    table = weather[0] / "weather.csv"
    more = ["--start", 100, "--horizon", 4, "--starts", 1, *TINY]
    assert run("predict", table, "--columns", "rain,temp", *more, "--out", tmp_path).code == 0
    assert json.loads((tmp_path / "summary.json").read_bytes())["film"]["features"] == ["rain", "temp"]
    for wanted, words in (("rian", "did you mean 'rain'?"), ("day", "'day' is the index of weather.csv")):
        outcome = run("predict", table, "--columns", wanted, "--out", tmp_path / "other")
        assert outcome.code == 2 and words in outcome.stderr
    outcome = run("predict", "builtin:glide", "--columns", "rain", "--out", tmp_path / "other")
    assert outcome.code == 2 and "is a film, which has no columns" in outcome.stderr


@pytest.mark.slow
def test_the_paper_on_a_table_keeps_the_straight_line(weather):
    job = of_experiment("prediction").job({"departures": make_departures(literal=True)})
    assert job.settings(open_series(weather[0] / "weather.csv"))["prediction"].extrapolation == "linear"


def test_the_help_has_both_extrapolations():
    said = declarations(PredictionSettings)["extrapolation"].default_text
    assert PredictionSettings.make().extrapolation in said
    assert PredictionSettings.make(n_rows=600).extrapolation in said


def test_a_series_is_no_film(sensors, tmp_path):
    outcome = run("predict-video", sensors / "sensors.npy", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "which is a series" in outcome.stderr
    assert not (tmp_path / "out").exists()


def test_a_short_series_is_spoken_of_in_rows(tmp_path):
    np.savetxt(tmp_path / "few.csv", wave(5, 300), delimiter=",")
    with pytest.warns(SeriesWarning, match="5 rows, which are too few"):
        outcome = run("predict", tmp_path / "few.csv", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "the series has 5 rows" in outcome.stderr and "film" not in outcome.stderr
