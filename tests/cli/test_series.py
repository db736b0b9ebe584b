"""A series on the command line: taken in any units by what looks at patches, refused where there must be pictures."""

import json

import numpy as np
import pytest

from cli.calls import read_csv, run
from conftest import wave
from psmt.experiments.predict_video.settings import VideoSettings

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
    np.testing.assert_allclose(found, np.mean(np.diff(values[100:105], axis=0) ** 2, axis=1), rtol=1e-9)


@pytest.mark.slow
def test_the_whole_paper_on_a_series(sensors, tmp_path):
    outcome = run("reproduce", sensors / "sensors.npy", *TINY, "--horizon", 4, "--out", tmp_path)
    assert outcome.code == 0, outcome.stderr
    film = json.loads((tmp_path / "summary.json").read_bytes())["film"]
    assert (film["n_frames"], film["patch_size"]) == (150, None)
    page = (tmp_path / "report.html").read_text()
    assert "standardised features" in page and "standardised patches" not in page


def test_a_series_is_no_film(sensors, tmp_path):
    outcome = run("predict-video", sensors / "sensors.npy", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "which is a series" in outcome.stderr
    assert not (tmp_path / "out").exists()


def test_the_old_name_of_the_baselines_still_works():
    with pytest.warns(FutureWarning, match="--baselines"):
        assert VideoSettings(peers=("ridge",)).baselines == ("ridge",)
    text = run("predict-video", "--help").stdout
    assert "--baselines" in text and "--peers" not in text
