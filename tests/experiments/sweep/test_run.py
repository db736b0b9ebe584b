"""The sweep: its figures against formulas written out, its files against those of an unbroken run."""

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest
from scipy import stats

from oracles.solvers import nonnegative_least_squares, recover_code
from psmt import SparseCoder, read_patches
from psmt.errors import NotEnoughFramesError
from psmt.experiments import film_tasks
from psmt.experiments.film_tasks import (
    code_patches,
    dictionary_task,
    learn_dictionary,
    reconstruct_window,
    unpack_codes,
)
from psmt.experiments.sweep.report import EXPERIMENT, sweep_claims
from psmt.experiments.sweep.run import sweep
from psmt.experiments.sweep.settings import SweepSettings
from psmt.pipeline.run import Run
from psmt.recovery import Recovery
from psmt.utils.files import write_files

TINY = SweepSettings(n_atoms=(8, 12), max_epochs=1, alpha=0.3, lam=(0.1, 3.0), null_windows=0)
FILM = "builtin:glide?frames=60&noise=0.2&size=48"


def read(film=FILM):
    return read_patches(film, frame_size=48, patch_size=4).values


@pytest.fixture(scope="module")
def patches():
    return read()


@pytest.fixture(scope="module")
def unbroken(patches, tmp_path_factory):
    """Folder of a run that nothing happened to, and its result."""
    folder = tmp_path_factory.mktemp("unbroken")
    result = sweep(patches, TINY, Run(folder=folder))
    write_table(result, folder, "sweep.csv")
    return folder, result


def write_table(result, folder, name):
    write_files(folder, {name: EXPERIMENT.files["sweep.csv"](result)})


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Figures


def test_a_window_against_the_formulas(engine, patches):
    frames, f, alpha, lam = patches[10:46], 5, 0.3, 0.1
    dictionary = learn_dictionary(patches=patches, n_atoms=8, alpha=alpha, max_epochs=2, seed=3)["dictionary"]
    codes = code_patches(patches=frames, dictionary=dictionary, alpha=alpha, device=engine.device)
    given = {"patches": frames, "dictionary": dictionary, "device": engine.device}
    result = reconstruct_window(**given, codes=codes, n_components=f, lam=lam)

    A = np.column_stack([nonnegative_least_squares(dictionary.T, x, np.full(8, 2 * alpha)) for x in frames])
    A[A < 1e-7] = 0.0
    H = A.shape[1]
    V = np.cov(A)
    D = (np.eye(H) - 0.5 * np.eye(H, k=1) - 0.5 * np.eye(H, k=-1))[:, 1:-1]
    values, vectors = np.linalg.eigh(V)
    assert values[0] > 1e-6 * values[-1]
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    P = np.linalg.eigh(root @ A @ D @ D.T @ A.T @ root)[1][:, :f].T @ root
    bound = 2 * A.sum(axis=0).max()
    recovered = np.array([recover_code(P, P @ a, lam, bound=bound) for a in A.T])
    np.testing.assert_allclose(result["mse"], np.mean((recovered @ dictionary - frames) ** 2, axis=1), rtol=1e-4)


@pytest.mark.parametrize("bound", [np.inf, 1.5])
def test_recovering_a_window_at_once_is_recovering_each_frame(bound):
    rng = np.random.default_rng(0)
    codes = np.maximum(rng.standard_normal((70, 20)), 0)
    embedding = rng.standard_normal((6, 20))
    embedding[:, [3, 11]] = 0.0
    together = Recovery(embedding, 0.1, activity=bound).many(codes @ embedding.T, codes)
    recover = Recovery(embedding, 0.1, activity=bound, tol=1e-14)
    np.testing.assert_allclose(together, [recover(embedding @ code, code) for code in codes], atol=1e-8)
    hidden = codes[:, [3, 11]].sum(axis=1)
    spent = together.sum(axis=1)
    assert (spent <= np.maximum(bound, hidden) + 1e-6).all()
    assert bound == np.inf or ((spent > bound - 1e-6) & (hidden < bound)).any()


def test_nothing_moves_in_a_still_film(tmp_path):
    still = np.tile(np.linspace(-1, 1, 16), (40, 1))
    result = sweep(still, SweepSettings(n_atoms=(8,), alpha=0.1), Run(folder=tmp_path))
    # What layer 1 leaves is all that is left.
    dictionary = learn_dictionary(patches=still, n_atoms=8, alpha=0.1, max_epochs=5, seed=0)["dictionary"]
    coded = unpack_codes(code_patches(patches=still, dictionary=dictionary, alpha=0.1), 8) @ dictionary
    np.testing.assert_allclose(result.errors[30.0, 8, 16], np.mean((coded - still) ** 2))


def test_windows_overlap_by_three_quarters():
    settings = SweepSettings()
    assert settings.windows(512) == (1024, 1280, 1536)
    assert settings.segments(1536, 10_000)[22] == (8448, 9984)  # the paper's segment of least error
    assert len(settings.segments(1536, 10_000)) == 23
    assert settings.segments(16, 23) == [(0, 16), (4, 20)]
    assert settings.segments(16, 15) == []
    assert settings.components(512) == 128
    assert SweepSettings(n_components=7).components(512) == 7


def test_each_window_is_its_own_stretch_of_the_film(patches, unbroken, tmp_path):
    _, result = unbroken
    dictionary = learn_dictionary(patches=patches, n_atoms=12, alpha=0.3, max_epochs=1, seed=0)["dictionary"]
    given = {"patches": patches[12:36], "dictionary": dictionary}
    codes = code_patches(**given, alpha=0.3)
    window = reconstruct_window(**given, codes=codes, n_components=3, lam=0.1)
    np.testing.assert_allclose(result.errors[0.1, 12, 24][2], window["mse"], rtol=1e-9)


def test_tables(unbroken):
    _, result = unbroken
    table = {(line.lam, line.n_atoms, line.window): line for line in result.table()}
    sizes = [(8, 16), (8, 20), (8, 24), (12, 24), (12, 30), (12, 36)]
    assert list(table) == [(lam, *size) for lam in (0.1, 3.0) for size in sizes]
    for key, line in table.items():
        errors = result.errors[key].ravel()
        assert line.missing is None
        assert line.n_segments == (60 - key[2]) // (key[2] // 4) + 1 == len(result.errors[key])
        assert line.mean == pytest.approx(errors.mean())
        assert line.std == pytest.approx(errors.std())
        assert line.trimmed_mean == pytest.approx(stats.trim_mean(errors, 0.25))
        assert line.trimmed_std == pytest.approx(np.std(stats.trimboth(np.sort(errors), 0.25)))


def test_the_file_has_a_line_per_window_and_frame(unbroken):
    folder, result = unbroken
    with open(folder / "sweep.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["lam", "n_atoms", "window", "segment", "start", "stop", "frame", "mse"]
    assert len(lines) == sum(errors.size for errors in result.errors.values())
    line = lines[-1]
    segment = len(result.errors[3.0, 12, 36]) - 1
    expected = {"n_atoms": 12, "window": 36, "segment": segment, "start": 18, "stop": 54, "frame": 53}
    assert {key: int(line[key]) for key in expected} == expected
    assert float(line["lam"]) == 3.0
    assert float(line["mse"]) == result.errors[3.0, 12, 36][-1, -1]


# Several λ


@pytest.mark.slow
def test_several_prices_at_once_are_each_of_them_alone_bit_for_bit(patches, unbroken, tmp_path):
    _, both = unbroken
    for lam in (0.1, 3.0):
        alone = sweep(patches, replace(TINY, lam=(lam,), null_windows=0), Run(folder=tmp_path))
        for key, errors in alone.errors.items():
            np.testing.assert_array_equal(both.errors[key], errors)
    assert not np.array_equal(both.errors[0.1, 12, 36], both.errors[3.0, 12, 36])
    assert len(list((tmp_path / "tasks").glob("dictionary-*"))) == 2  # shared by the λ, as the codes are
    assert len(list((tmp_path / "tasks").glob("codes-*"))) == 2


def test_prices_on_the_command_line():
    assert SweepSettings.make().lam == (0.1, 3.0, 30.0)
    assert SweepSettings.make({"lam": (0.5, 2.0)}).lam == (0.5, 2.0)
    assert SweepSettings.make({"lam": 0.5}).lam == (0.5,)
    with pytest.raises(ValueError, match=r"lam=-1\.0 is out of range"):
        SweepSettings(lam=(0.1, -1.0))


@pytest.mark.slow
def test_more_atoms_help_where_the_film_has_more_parts_than_atoms(tmp_path):
    # A sparse film: few of 16 fixed patterns at a time, with smooth activity. Four atoms cannot show them, 16 can.
    rng = np.random.default_rng(0)
    patterns = rng.standard_normal((16, 20))
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    phase, t = rng.uniform(0, 2 * np.pi, 16), np.arange(300)[:, None]
    activity = 4 * np.maximum(np.cos(t * rng.uniform(0.02, 0.06, 16) + phase) - 0.6, 0)
    settings = SweepSettings(n_atoms=(4, 16), ratios=(2.0, 3.0), alpha=0.02, lam=(0.001, 0.01), n_components=16)
    settings = replace(settings, steps_per_window=1)
    result = sweep(activity @ patterns, settings, Run(folder=tmp_path))
    claim = sweep_claims(replace(result, null_errors={}))[0]
    assert claim.as_measured.verdict == "yes"
    assert all(own[f"λ = {lam}, H = 3 M"]["estimate"]["high"] < np.log(0.7) for lam, own in claim.figures.items())
    # They would show the same frames in any order: there is no gain beyond the null model.
    beyond = sweep_claims(result)[0]
    assert beyond.beyond_controls.verdict == "no"
    assert beyond.as_measured.verdict == "yes"
    assert "which the film does not exceed" in beyond.beyond_controls.why


# Films that are too short


def test_combinations_that_do_not_fit_are_named(patches, tmp_path):
    result = sweep(patches[:23], TINY, Run(folder=tmp_path))
    reasons = {(line.n_atoms, line.window): line.missing for line in result.table()}
    assert reasons.pop((8, 16)) is None and reasons.pop((8, 20)) is None
    assert reasons == {
        (size, window): f"the film has 23 frames, the window needs {window}"
        for size, window in [(8, 24), (12, 24), (12, 30), (12, 36)]
    }  # at both λ
    assert np.isnan(result.table()[-1].trimmed_mean)
    assert not list((tmp_path / "tasks").glob("dictionary-M0012*"))


def test_a_film_too_short_for_all_is_refused(patches, tmp_path):
    with pytest.raises(NotEnoughFramesError, match=r"has 15 frames.*needs 16.*n_atoms <= 7"):
        sweep(patches[:15], TINY, Run(folder=tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_atoms": ()}, "at least one value"),
        ({"lam": ()}, "at least one value"),
        ({"n_atoms": (0,)}, "n_atoms=0 is too small"),
        ({"ratios": (0.0,)}, "ratios=0.0 is out of range"),
        ({"n_atoms": (1,)}, "window=2 is too small"),
        ({"lam": (1.0, -1.0)}, "lam=-1.0"),
        ({"alpha": 0.0}, "alpha=0.0"),
    ],
)
def test_settings_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        SweepSettings(**change)


# What is kept


def test_the_same_again_is_read_from_disk(patches, unbroken, tmp_path, monkeypatch):
    folder, _ = unbroken
    before = contents(folder)
    monkeypatch.setattr(SparseCoder, "fit", None)
    monkeypatch.setattr(SparseCoder, "transform", None)
    monkeypatch.setattr(film_tasks, "round_trip", None)
    write_table(sweep(patches, TINY, Run(folder=folder)), tmp_path, "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == before["sweep.csv"]
    assert contents(folder) == before


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 0.4},
        {"seed": 1},
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ({"lam": (0.2,)}, {"n_components": 3}, {"max_epochs": 2})
        ),
    ],
)
def test_changed_settings_reuse_no_window(patches, tmp_path, change):
    common = {"n_atoms": (8,), "ratios": (3.0,), "max_epochs": 1, "null_windows": 0}
    sweep(patches, SweepSettings(**common), Run(folder=tmp_path))
    before = set(contents(tmp_path))
    sweep(patches, SweepSettings(**common | change), Run(folder=tmp_path))
    windows = [name for name in set(contents(tmp_path)) - before if "sweep-" in name]
    assert len(windows) == 7


def test_experiments_share_a_dictionary(patches, unbroken):
    folder, _ = unbroken
    assert dictionary_task(patches, n_atoms=12, alpha=0.3, max_epochs=1, seed=0).path(folder).exists()


# Killed runs

SCRIPT = f"""
import os, signal, sys
from pathlib import Path
import psmt.utils.files
from psmt import read_patches
from psmt.pipeline.executors import open_executor
from psmt.utils.files import write_files
from psmt.pipeline.run import Run
from psmt.experiments.sweep.report import EXPERIMENT
from psmt.experiments.sweep.run import sweep
from psmt.experiments.sweep.settings import SweepSettings

def main(folder, workers, last):
    replace = os.replace
    def mortal(source, target):
        if last in target.name:  # the file is written, but does not have its name yet
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)
    psmt.utils.files.os.replace = mortal
    patches = read_patches({FILM!r}, frame_size=48, patch_size=4).values
    settings = SweepSettings(n_atoms=(8, 12), max_epochs=1, alpha=0.3, lam=(0.1, 3.0), null_windows=0)
    with open_executor(workers) as executor:
        result = sweep(patches, settings, Run(folder=Path(folder), executor=executor))
        write_files(folder, {{"sweep.csv": EXPERIMENT.files["sweep.csv"](result)}})

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
"""


@pytest.fixture
def start(tmp_path):
    """Start the sweep in a process of its own, which dies as it puts a file of the given name in its place."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    started = []

    def run(folder, *, workers=1, dies_at="never"):
        started.append(subprocess.Popen([sys.executable, str(script), str(folder), str(workers), dies_at]))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def temporary(folder):
    return [path.name for path in folder.rglob(".*.tmp")]


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_like_an_unbroken_one(tmp_path, patches, unbroken, start):
    folder = tmp_path / "out"

    # Killed as the first dictionary is about to be there.
    assert start(folder, dies_at="dictionary-").wait(120) == -signal.SIGKILL
    assert len(temporary(folder)) == 1
    assert not list(folder.rglob("dictionary-*.npz"))

    # Killed from outside among the windows, with two processes at work, which follow.
    run = start(folder, workers=2)
    deadline = time.monotonic() + 120
    while not list(folder.rglob("sweep-*.npz")) and time.monotonic() < deadline:
        time.sleep(0.002)
    workers = psutil.Process(run.pid).children(recursive=True)
    assert len(workers) >= 2
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert not psutil.wait_procs(workers, timeout=20)[1]
    assert not (folder / "sweep.csv").exists()

    # Two at once, one of them killed as the table is about to be there.
    runs = [start(folder), start(folder, dies_at="sweep.csv")]
    assert [run.wait(120) for run in runs] == [0, -signal.SIGKILL]

    write_table(sweep(patches, TINY, Run(folder=folder)), folder, "sweep.csv")
    assert contents(folder) == contents(unbroken[0])
