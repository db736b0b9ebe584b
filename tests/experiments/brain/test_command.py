"""`psmt brain` as a whole: its files, what they say, and that a second run finds its tasks."""

import csv
import json
import os
import re
import sys

import numpy as np
import pytest

from psmt.cli import main

pytestmark = pytest.mark.usefixtures("blank_figures")
PEOPLE = "builtin:bold?subjects=2&frames=100&regions=8&states=3"
SMALL = ["--window", "40", "--atoms", "8", "--states", "3", "--workers", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("brain") / "out"
    with pytest.MonkeyPatch.context() as patch:
        # Files are looked at here, not how good the states are: that is in test_states.py.
        patch.setattr("psmt.brain.states.MAX_STEPS", 3)
        assert main(["brain", PEOPLE, *SMALL, "--out", str(out)]) == 0
    return out


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_predictions_of_all_people_methods_and_horizons(folder):
    found = rows(folder / "prediction.csv")
    assert list(found[0]) == ["subject", "method", "horizon", "error"]
    assert {row["method"] for row in found} == {"psmt", "ridge", "lasso", "reduced_rank", "dmd", "copy", "mean"}
    assert len(found) == 2 * 7 * 5
    assert all(float(row["error"]) > 0 for row in found)


def test_states_of_each_volume_add_up_to_the_summary(folder):
    found, summary = rows(folder / "trajectory.csv"), json.loads((folder / "summary.json").read_text())
    assert len(found) == 200
    share = np.mean([row["state"] == "1" for row in found])
    assert summary["states"]["group"]["occupancy"][0] == pytest.approx(share)
    assert summary["tr"] == 2.0
    assert set(summary["agreement_with_truth"]) >= {"psmt", "pca", "swc"}
    assert {"activity", "connectivity", "networks", "likelihood_gain"} == set(
        summary["reproducibility"]["against_surrogates"]
    )
    assert summary["states_found"] in (True, False)
    claims = summary["claims"]
    assert {claim["as_measured"]["verdict"] for claim in claims.values()} <= {"yes", "no", "inconclusive"}
    assert {claim["beyond_controls"]["why"] for claim in claims.values()} <= {"This claim has no controls."}
    assert re.fullmatch(r"[\d.]+ × the error of (copying|the mean), \d ahead", claims["beats_trivial"]["size"])
    assert re.match(r"[+−][\d.]+ in adjusted Rand index", claims["states_true"]["size"])


def test_topology_and_report(folder):
    found = rows(folder / "components.csv")
    assert {"subject", "volume", "component", "event", "ends"} <= set(found[0]) if found else True
    page = (folder / "report.html").read_text()
    for part in ("Networks", "Components over time", "States", "How far to trust it", "adjusted Rand index"):
        assert part in page


def test_a_second_run_computes_nothing_and_writes_the_same(folder):
    tasks = {path: path.stat().st_mtime_ns for path in (folder / "tasks").iterdir()}
    before = {
        name: (folder / name).read_bytes() for name in ("summary.json", "trajectory.csv", "group.psmt", "report.html")
    }
    assert main(["brain", PEOPLE, *SMALL, "--out", str(folder)]) == 0
    assert {path: path.stat().st_mtime_ns for path in (folder / "tasks").iterdir()} == tasks
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_a_short_series_is_one_line(tmp_path, capsys):
    np.savez(tmp_path / "short.npz", series=np.random.default_rng(0).standard_normal((100, 5)), tr=2.0)
    assert main(["brain", str(tmp_path / "short.npz"), "--workers", "1", "--out", str(tmp_path / "out")]) == 2
    assert "short has 100 volumes, but two windows of --window 96 need 108" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_neither_text_nor_formulas_are_drawn_and_written_as_they_are(tmp_path):
    series = np.random.default_rng(0).standard_normal((60, 3)).cumsum(axis=0)
    path = tmp_path / os.fsdecode(b"\xff\n$x_$.csv")
    np.savetxt(path, series, delimiter=",", header="$x_$,\x1b[31m,plain")
    small = ["--window", "16", "--atoms", "4", "--states", "2", "--workers", "1", "--tr", "2"]
    assert main(["brain", str(path), *small, "--out", str(tmp_path / "out")]) == 0
    assert b"\\udcff\\n$x_$" in (tmp_path / "out" / "summary.json").read_bytes()
    assert b"\xff\n$x_$" in (tmp_path / "out" / "trajectory.csv").read_bytes()
