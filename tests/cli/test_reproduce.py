"""`psmt reproduce` and the commands it is made of, at a tiny size: files, verdicts, and going on after a kill."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64decode
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import distributed
import numpy as np
import pytest
from scipy import stats

from cli.calls import read_csv, refused, run, run_into
from psmt.cli.app import COMMANDS
from psmt.data import open_frames
from psmt.evaluation import METHODS
from psmt.experiments.options.sources import PatchOptions
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.experiments.sweep.settings import SweepSettings
from psmt.experiments.topology.settings import TopologySettings

pytestmark = pytest.mark.usefixtures("blank_figures")
FILM = "builtin:glide?frames=90&noise=0.2&size=48"
PATCHES = ["--patch", "4", "--size", "48", "--alpha", "0.3"]
TINY = [*PATCHES, "--atoms", "12", "--components", "4", "--lam", "0.1"]
FEW = ["--horizon", "4", "--starts", "2"]
PARTS = ("sweep", "topology", "reconstruction", "prediction")
FILES = {f"{part}.{kind}" for part in PARTS for kind in ("csv", "png")}
FILES |= {"forecast.csv", "starts.csv", "methods.png", "pipeline.png", "rollout.csv", "summary.json", "report.html"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that must be the same in every run, tasks and all."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """A run that nothing happened to."""
    out = tmp_path_factory.mktemp("unbroken")
    outcome = run_into(out, "reproduce", FILM, *TINY, *FEW, "--workers", 1)
    return SimpleNamespace(summary=json.loads((out / "summary.json").read_bytes()), **vars(outcome))


def test_all_files_are_written_and_the_last_line_is_the_report(unbroken):
    assert unbroken.code == 0
    assert {path.name for path in unbroken.out.iterdir()} == FILES | {"tasks"}
    assert unbroken.stdout.splitlines()[-1] == str(unbroken.out / "report.html")
    for claim in unbroken.summary["claims"].values():
        verdicts = f"{claim['as_measured']['verdict']} +{claim['beyond_controls']['verdict']}"
        assert re.search(rf"^  {verdicts} +{re.escape(claim['claim'])}", unbroken.stdout, re.MULTILINE)


def test_the_answer_comes_first_and_agrees_with_the_tables(unbroken):
    """The method named, its ratio and the counts of claims follow from the files of the same run."""
    summary, lines = unbroken.summary, unbroken.stdout.splitlines()
    assert lines[0] == summary["answer"]
    assert lines[1].startswith(f"Next: {summary['next']} ")
    page = unescape((unbroken.out / "report.html").read_text())
    places = [
        page.index(text) for text in (summary["answer"], summary["next"], "Every method compared", "as measured</")
    ]
    assert places == sorted(places)
    errors = {}
    for row in read_csv(unbroken.out / "starts.csv"):
        if row["film"] == "film":
            errors.setdefault(row["method"], []).append(float(row["mse_vs_frame"]))
    means = {method: np.mean(own) for method, own in errors.items()}
    best = min(means, key=means.get)
    assert f"“{METHODS[best]}” predicts the next patch best" in summary["answer"]
    told = float(re.search(r"best: ([\d.]+) × the error of copying", summary["answer"])[1])
    assert told == pytest.approx(means[best] / means["copy"], rel=0.06)
    paper = [claim for claim in summary["claims"].values() if claim["of"] == "the paper"]
    measured, beyond = (
        sum(claim[name]["verdict"] == "yes" for claim in paper) for name in ("as_measured", "beyond_controls")
    )
    counted = rf"{len(paper)} claims, {measured} comes? out as measured and {beyond} beyond controls"
    assert re.search(counted, summary["answer"])
    # The command exists, and is about this film.
    program, command, film, *_ = shlex.split(summary["next"])
    assert (program, film) == ("psmt", FILM) and command in COMMANDS


def test_claims_have_both_verdicts_with_ratio_interval_and_reason(unbroken):
    for claim in unbroken.summary["claims"].values():
        assert "verdict" not in claim
        for judged in (claim["as_measured"], claim["beyond_controls"]):
            assert set(judged) == {"verdict", "ratio", "low", "high", "why"}
            assert judged["verdict"] in ("yes", "no", "inconclusive") and judged["why"]


def test_a_log_line_per_stage(unbroken):
    lines = unbroken.stderr.splitlines()
    for stage in ("read frames", "sweep: windows", "topology: windows", "reconstruction: all", "prediction: phases"):
        assert sum(line.startswith(f"psmt: {stage}") and " done in " in line for line in lines) == 1


# Going on


def begin(out: Path, until: str, count: int = 1) -> None:
    """Start a run in a process of its own, and kill it as soon as so many tasks of that name are on disk."""
    arguments = ["reproduce", FILM, *TINY, *FEW, "--workers", "1", "--out", str(out)]
    code = f"import sys; from psmt.cli import main; sys.exit(main({arguments!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while len(list((out / "tasks").glob(f"{until}*.npz"))) < count:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.002)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_and_ends_the_same(unbroken, tmp_path):
    for until, count in (("sweep", 2), ("prediction-calm", 1)):
        begin(tmp_path, until, count)
        assert not (tmp_path / "summary.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "tasks").glob("*.npz")}
    assert 0 < len(kept) < len(list((unbroken.out / "tasks").iterdir()))
    (tmp_path / ".summary.json.4194305.tmp").write_bytes(b"half")  # as a killed writer leaves it
    (tmp_path / "prediction.csv").write_bytes(b"of an older run")

    assert run("reproduce", FILM, *TINY, *FEW, "--workers", 1, "--out", tmp_path).code == 0
    assert contents(tmp_path) == contents(unbroken.out)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


# The numbers


def test_summary_says_what_the_tables_say(unbroken):
    summary = unbroken.summary
    rows = read_csv(unbroken.out / "sweep.csv")
    for line in summary["sweep"]:
        errors = [float(row["mse"]) for row in rows if int(row["window"]) == line["window"]]
        assert line["trimmed_mean"] == pytest.approx(stats.trim_mean(errors, 0.25), rel=1e-12)
        assert line["mean"] == pytest.approx(np.mean(errors), rel=1e-12)
    windows = {}
    for row in read_csv(unbroken.out / "sweep.csv"):
        if int(row["window"]) == 36:
            windows.setdefault((int(row["start"]), int(row["stop"])), []).append(float(row["mse"]))
    # Of the windows of the sweep that leave room for two phases of 5 frames behind the first window of 36.
    least = min((place for place in windows if place[1] >= 46), key=lambda place: np.mean(windows[place]))
    assert summary["reconstruction"]["least_error"] == {
        "start": least[0],
        "stop": least[1],
        "mse": pytest.approx(np.mean(windows[least])),
    }
    rows = read_csv(unbroken.out / "prediction.csv")
    for phase in summary["prediction"]:
        own = [row for row in rows if row["phase"] == phase["phase"]]
        assert [int(row["frame"]) for row in own[:4]] == [phase["start"] + k for k in range(1, 5)]
        for line in phase["one_step"]:
            logs = np.log([float(row["mse_vs_code"]) for row in own if row["method"] == line["method"]])
            assert line["log_mse_vs_code"] == pytest.approx(logs.mean(), rel=1e-12)
    rows = read_csv(unbroken.out / "topology.csv")
    assert {int(row["atom"]) for row in rows} == set(summary["topology"]["chosen"])
    assert len(rows) == 3 * summary["topology"]["n_windows"]


def test_summary_names_film_settings_and_versions_but_no_duration(unbroken):
    summary = unbroken.summary
    assert summary["film"]["checksum"] == open_frames(FILM).checksum()
    assert summary["film"]["n_frames"] == 90
    assert summary["settings"]["sweep"]["n_atoms"] == [12]
    assert set(summary["versions"]) >= {"python", "numpy", "numba"}
    assert "seconds" not in json.dumps(summary)


def test_report_carries_its_pictures(unbroken):
    page = (unbroken.out / "report.html").read_text()
    assert not re.search(r"https?://|<script|<link|url\(", page)
    pictures = [b64decode(source) for source in re.findall(r'<img src="data:image/png;base64,([^"]*)"', page)]
    # Methods, pipeline, sweep, topology, reconstruction, two phases.
    assert len(pictures) == 7
    for name in ("sweep", "topology", "reconstruction"):
        assert (unbroken.out / f"{name}.png").read_bytes() in pictures
    assert page.index("More atoms help") < page.index("<section>")
    for words in (unbroken.summary["film"]["checksum"], "numba"):
        assert words in page


# The commands that it is made of


@pytest.mark.slow
def test_each_command_writes_the_same_and_shares_the_cells(unbroken, tmp_path):
    shutil.copytree(unbroken.out / "tasks", tmp_path / "tasks")
    before = set((tmp_path / "tasks").iterdir())
    common = ["--workers", 1, "--out", tmp_path]
    topology = run("topology", FILM, *PATCHES, "--atoms", 12, "--components", 4, *common)
    reconstruct = run("reconstruct", FILM, *TINY, "--horizon", 4, *common)
    assert (topology.code, reconstruct.code) == (0, 0)
    assert set((tmp_path / "tasks").iterdir()) == before
    for name in ("topology.csv", "topology.png", "reconstruction.csv", "reconstruction.png"):
        assert (tmp_path / name).read_bytes() == (unbroken.out / name).read_bytes()
    assert "Clusters persist across time" in topology.stdout
    assert "least in frames" in reconstruct.stdout


@pytest.mark.slow
def test_sweep_on_a_cluster_gives_the_same_files(unbroken, tmp_path):
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as here:
        outcome = run("sweep", FILM, *TINY, "--cluster", here.scheduler_address, "--out", tmp_path)
    assert outcome.code == 0, outcome.stderr
    for name in ("sweep.csv", "sweep.png"):
        assert (tmp_path / name).read_bytes() == (unbroken.out / name).read_bytes()
    mean = unbroken.summary["sweep"][0]["trimmed_mean"]
    assert f"{mean:.3f} ± " in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == str(tmp_path / "report.html")


def test_one_window_of_one_size(tmp_path):
    assert run("sweep", FILM, *TINY, "--window", 41, "--workers", 1, "--out", tmp_path).code == 0
    assert {row["window"] for row in read_csv(tmp_path / "sweep.csv")} == {"41"}


# Films of all kinds


@pytest.mark.slow
def test_films_with_a_cut_and_too_short_ones(tmp_path):
    first = np.stack(list(open_frames("builtin:glide?frames=60&size=48")))
    second = np.stack(list(open_frames("builtin:glide?frames=60&size=48&seed=5")))
    np.save(tmp_path / "cut.npy", np.concatenate([first, second[:, ::-1]]))
    np.save(tmp_path / "short.npy", first[:34])
    out = tmp_path / "out"
    # At the paper's sizes: even the longer film has room for the smallest of those that are tried only.
    for name in ("cut", "short"):
        outcome = run("reproduce", tmp_path / f"{name}.npy", *PATCHES, "--workers", 1, "--out", out / name)
        assert outcome.code == 0, outcome.stderr

    cut = json.loads((out / "cut" / "summary.json").read_bytes())
    assert cut["used"]["topology"]["n_atoms"] == 32
    assert cut["used"]["prediction"] is None
    fits = {row["n_atoms"]: row["missing"] is None for row in cut["sweep"]}
    assert fits == {32: True, 512: False, 1024: False, 2048: False}
    assert cut["claims"]["more_frames"]["figures"]
    assert cut["claims"]["more_atoms"]["as_measured"]["verdict"] == "inconclusive"
    page = (out / "cut" / "report.html").read_text()
    assert "needs 127" in page
    assert page.count("film too short") == 27
    assert not (out / "cut" / "prediction.csv").exists()

    short = json.loads((out / "short" / "summary.json").read_bytes())
    for claim in short["claims"].values():
        assert {claim[name]["verdict"] for name in ("as_measured", "beyond_controls")} == {"inconclusive"}
        assert "34 frames" in " ".join(claim["notes"])
    written = {"tasks", "summary.json", "report.html", "reconstruction.csv", "reconstruction.png"}
    assert {path.name for path in (out / "short").iterdir()} == written


@pytest.mark.slow
def test_demo_is_a_small_reproduction_of_the_built_in_film(tmp_path, monkeypatch):
    small = {"n_atoms": 8, "window": 24}
    for settings, tiny in (
        (SweepSettings, {"n_atoms": (8,), "ratios": (3.0,), "max_epochs": 1}),
        (TopologySettings, small | {"overlap": 0.5, "n_permutations": 9}),
        (ReconstructionSettings, small | {"horizon": 2}),
        (PredictionSettings, small | {"horizon": 2, "n_components": 4, "lam": 0.1, "n_starts": 2, "n_null": 1}),
    ):
        monkeypatch.setattr(settings, "PRESETS", {"demo": tiny})
    read = PatchOptions.open
    monkeypatch.setattr(PatchOptions, "open", lambda options, _: read(options, "builtin:glide?frames=60"))
    monkeypatch.setattr("joblib.cpu_count", lambda: 1)
    outcome = run("demo", "--seed", 3, "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.splitlines()[-1] == str(tmp_path / "demo" / "report.html")
    assert json.loads((tmp_path / "demo" / "summary.json").read_bytes())["settings"]["topology"]["seed"] == 3


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce"], "FILM"),
        (["reproduce", FILM, "b.mp4"], "b.mp4 is more than this command takes; give one film"),
        (["reproduce", FILM, *TINY, "--horizon", 4, "--start", 89], "use a start from 36 to 85"),
        (["reproduce", FILM, "--workers", 2, "--cluster", "tcp://127.0.0.1:9"], "leave out one of them"),
        (["reproduce", FILM, "--workers", 0], "--workers 0 is too small"),
        (["reproduce", FILM, "--device", "cuda:99"], "use --device cpu"),
        (
            ["sweep", FILM, *PATCHES, "--workers", 1],
            "the film has 90 frames; the smallest window that is tried needs 96",
        ),
        (["sweep", FILM, "--atoms", 0], "--atoms 0 is too small"),
        (["sweep", FILM, "--window", 300], "give one --atoms with it"),
        (["topology", FILM, *PATCHES, "--workers", 1], "the smallest that is tried, needs"),
        (["reconstruct", FILM, *PATCHES, "--atoms", 512], "not more than --atoms 512; use --atoms < 90"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, arguments, message):
    assert message in refused(run(*arguments, "--out", tmp_path / "a" / "b"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["reproduce", "sweep", "topology", "reconstruct"])
def test_help_of_a_command_names_the_shared_options(command):
    text = run(command, "--help").stdout
    for name in ("atoms", "window", "components", "alpha", "seed", "frames", "out", "quick", "cluster"):
        assert f"--{name} " in text
