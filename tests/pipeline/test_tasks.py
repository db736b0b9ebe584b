"""Tasks: what is computed, what is kept, and where."""

import os
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import psmt
from pipeline import example_tasks as example
from psmt.pipeline import tasks as cells_module
from psmt.pipeline.cache import hash_code, load_result
from psmt.pipeline.executors import ProcessExecutor, SerialExecutor, open_executor, worker_count
from psmt.pipeline.tasks import Task, TaskError, run_tasks
from psmt.utils.files import clear_stale

X = np.arange(12.0).reshape(3, 4)


def scaled(name="a", factor=2.0, x=X):
    return Task(name, example.scaled, {"x": x, "factor": factor})


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def pool():
    """Two processes."""
    with open_executor(2) as executor:
        yield executor


@pytest.fixture
def log(tmp_path):
    """A file that `counted` writes to, and how often it did."""
    path = tmp_path / "log"
    path.touch()
    return path


def computed(log):
    return len(log.read_text().splitlines())


# Results


def test_results_come_in_order(tmp_path):
    results = run_tasks([scaled(f"c{i}", float(i)) for i in range(5)], tmp_path)
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result["y"], i * X)
        assert result["sum"] == 66


def test_a_result_is_a_plain_npz_named_after_the_cell(tmp_path):
    task = scaled()
    run_tasks([task], tmp_path)
    (path,) = (tmp_path / "tasks").iterdir()
    assert path == task.path(tmp_path)
    assert path.name == f"a-{task.key[:16]}.npz"
    with np.load(path) as stored:
        assert set(stored.files) == {"y", "sum"}
        np.testing.assert_array_equal(stored["y"], 2 * X)


def test_files_are_equal_byte_for_byte_whenever_they_are_written(tmp_path, monkeypatch):
    run_tasks([scaled()], tmp_path / "now")
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    run_tasks([scaled()], tmp_path / "later")
    assert contents(tmp_path / "now") == contents(tmp_path / "later")


def test_a_cell_has_arrays_of_its_own(tmp_path):
    x = X.copy()
    (result,) = run_tasks([Task("a", example.careless, {"x": x})], tmp_path)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(result["y"], (X + 1).T)
    assert result["y"].flags.c_contiguous


def test_equal_cells_in_one_run_are_computed_once(tmp_path, log):
    task = Task("a", example.counted, {"x": X, "log": str(log)})
    with ThreadPoolExecutor(2) as executor:
        first, second = run_tasks([task, task], tmp_path, executor=executor)
    assert computed(log) == 1
    np.testing.assert_array_equal(first["y"], second["y"])


# Keys


def test_a_key_depends_on_everything_that_the_result_does(monkeypatch):
    def key(**changes):
        return Task("a", example.scaled, {"x": X, "factor": 2.0} | changes).key

    tasks = [
        key(),
        key(factor=2),
        key(factor=None),
        key(factor="2.0"),
        key(factor=True),
        key(factor=[1, [2]]),
        key(factor=[[1], 2]),
        key(factor={"a": 1}),
        key(x=X.astype(np.float32)),
        key(x=X.reshape(4, 3)),
        key(x=-X),
        key(x=X.T.copy()),
        key(other=1),
        Task("a", example.counted, {"x": X, "factor": 2.0}).key,
    ]
    monkeypatch.setattr(cells_module, "hash_code", lambda function: "other code")
    tasks.append(key())
    monkeypatch.undo()
    assert len(set(tasks)) == len(tasks)
    monkeypatch.setattr(psmt, "__version__", "0")
    assert key() == tasks[0]


def test_a_key_does_not_depend_on_how_the_same_inputs_are_stored():
    wide = np.zeros((6, 8))
    wide[::2, ::2] = X
    same = [
        Task("b", example.scaled, {"factor": np.float64(2.0), "x": x})
        for x in (X, np.asfortranarray(X), wide[::2, ::2])
    ]
    assert {task.key for task in same} == {scaled().key}


@pytest.mark.parametrize("name", ["", "../a", "a b", ".a", "a/b", "x" * 101])
def test_names_suit_files(name):
    with pytest.raises(ValueError, match="does not suit a file"):
        scaled(name)


def test_functions_that_cannot_travel_are_refused():
    with pytest.raises(TypeError, match="top level"):
        Task("a", lambda: {"y": X}, {})


@pytest.mark.parametrize("value", [object(), np.array([{}])])
def test_inputs_are_plain(value, tmp_path):
    with pytest.raises(TypeError, match="a: input x"):
        run_tasks([Task("a", example.careless, {"x": value})], tmp_path)


# What is kept


def test_finished_cells_are_read_not_computed(tmp_path, log):
    task = Task("a", example.counted, {"x": X, "log": str(log)})
    (first,) = run_tasks([task], tmp_path)
    (second,) = run_tasks([task], tmp_path)
    assert computed(log) == 1
    np.testing.assert_array_equal(first["y"], second["y"])


def test_changed_inputs_are_computed(tmp_path, log):
    run_tasks([Task("a", example.counted, {"x": X, "log": str(log)})], tmp_path)
    (result,) = run_tasks([Task("a", example.counted, {"x": X + 1, "log": str(log)})], tmp_path)
    assert computed(log) == 2
    np.testing.assert_array_equal(result["y"], 2 * X + 2)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign", "text"])
def test_damaged_files_are_computed_again(tmp_path, log, damage):
    task = Task("a", example.counted, {"x": X, "log": str(log)})
    run_tasks([task], tmp_path)
    path = task.path(tmp_path)
    good = path.read_bytes()
    if damage == "foreign":
        np.savez(path, y=np.zeros(3))
    else:
        middle = good.index((2 * X).tobytes()) + 40
        flipped = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
        path.write_bytes({"empty": b"", "cut": good[:-30], "flipped": flipped, "text": b"no zip at all"}[damage])
    (result,) = run_tasks([task], tmp_path)
    assert computed(log) == 2
    assert path.read_bytes() == good
    np.testing.assert_array_equal(result["y"], 2 * X)


def test_each_flipped_byte_is_noticed_or_harmless(tmp_path):
    """No single damaged byte makes a task of other values."""
    task = scaled()
    run_tasks([task], tmp_path)
    path = task.path(tmp_path)
    good = path.read_bytes()
    for at in range(0, len(good), 3):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        found = load_result(path, task.key)
        if found is not None:
            assert set(found) == {"y", "sum"}
            np.testing.assert_array_equal(found["y"], 2 * X)
            assert found["sum"] == 66


def test_temporary_files_of_dead_runs_go_and_those_of_live_runs_stay(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder = tmp_path / "tasks"
    folder.mkdir()
    names = {
        "dead": f".a-1.npz.{dead.pid}.tmp",
        "ours": f".b.npz.{os.getpid()}.tmp",
        "live": f".c.npz.{os.getppid()}.tmp",
    }
    for name in (*names.values(), "notes.tmp"):
        (folder / name).touch()
    run_tasks([], tmp_path)
    assert {path.name for path in folder.iterdir()} == {names["live"], "notes.tmp"}


def test_a_writer_whose_temporary_file_was_taken_away_writes_again(tmp_path, monkeypatch):
    replace = os.replace
    seen = []

    def robbed(source, target):
        if not seen:
            seen.append(source)
            clear_stale(tmp_path / "tasks")
        replace(source, target)

    monkeypatch.setattr("psmt.utils.files.os.replace", robbed)
    run_tasks([scaled()], tmp_path)
    assert seen and scaled().path(tmp_path).exists()


# Failures


def test_a_failing_cell_is_named_and_the_others_are_kept(tmp_path, pool):
    tasks = [scaled("good"), Task("bad-one", example.failing, {"x": 7})]
    for name, executor in {"serial": None, "pool": pool}.items():
        with pytest.raises(TaskError, match=r"bad-one.*ArithmeticError: no 7"):
            run_tasks(tasks, tmp_path / name, executor=executor)
        assert [path.name[:4] for path in (tmp_path / name / "tasks").iterdir()] == ["good"]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="there are no such signals")
def test_a_hang_up_of_the_terminal_reaches_no_worker(pool):
    """What a terminal sends to all processes at once is for the parent, which ends the others."""
    of_worker = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
    assert {signal.SIGHUP, signal.SIGINT} <= of_worker
    assert signal.SIGTERM not in of_worker
    assert not {signal.SIGHUP, signal.SIGINT} & signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_nothing_is_begun_after_a_failure(tmp_path, log):
    tasks = [Task("bad", example.failing, {"x": 7}), Task("after", example.counted, {"x": X, "log": str(log)})]
    with pytest.raises(TaskError, match="bad"):
        run_tasks(tasks, tmp_path)
    assert computed(log) == 0


def test_results_are_arrays_of_numbers(tmp_path):
    with pytest.raises(TaskError, match="a task returns arrays of numbers"):
        run_tasks([Task("a", example.objects, {})], tmp_path)


def test_a_worker_of_another_version_is_refused(tmp_path):
    with pytest.raises(psmt.errors.PSMTError, match=r"the worker has psmt .* started by psmt 0\.0\.0"):
        cells_module._evaluate(example.threads, {}, "0.0.0", hash_code(example.threads))


def test_a_worker_with_other_code_is_refused():
    with pytest.raises(psmt.errors.PSMTError, match=r"other source code behind pipeline.example_tasks.*\(hash 0bad"):
        cells_module._evaluate(example.threads, {}, psmt.__version__, "0bad")


# Executors


def test_processes_give_the_same_files_as_one_process(tmp_path, pool):
    tasks = [scaled(f"c{i}", i / 7) for i in range(9)]
    run_tasks(tasks, tmp_path / "serial")
    run_tasks(tasks, tmp_path / "pool", executor=pool)
    assert contents(tmp_path / "serial") == contents(tmp_path / "pool")
    assert len(contents(tmp_path / "pool")) == 9


def test_a_cell_has_one_thread_everywhere(tmp_path, pool):
    for name, executor in {"serial": None, "pool": pool}.items():
        (result,) = run_tasks([Task("a", example.threads, {})], tmp_path / name, executor=executor)
        assert (result["blas"], result["numba"]) == (1, 1)


def test_threads_are_given_back(tmp_path):
    with threadpool_limits(2, user_api="blas"):
        before = numba.get_num_threads()
        with ThreadPoolExecutor(3) as executor:
            results = run_tasks([Task(f"c{i}", example.threads, {}) for i in range(6)], tmp_path, executor=executor)
        assert {(int(result["blas"]), int(result["numba"])) for result in results} == {(1, 1)}
        blas = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
        assert blas == len(blas) * [2]
        assert numba.get_num_threads() == before


def test_libraries_of_a_worker_find_one_thread_when_they_are_imported(tmp_path, pool):
    before = dict(os.environ)
    (result,) = run_tasks([Task("a", example.environment, {"name": "OPENBLAS_NUM_THREADS"})], tmp_path, executor=pool)
    assert str(result["value"]) == "1"
    assert os.environ == before


@pytest.mark.slow
def test_a_killed_worker_costs_no_result_and_a_cell_that_kills_each_is_named(tmp_path):
    tasks = [scaled(f"c{i}", float(i)) for i in range(4)]
    tasks.insert(2, Task("mortal", example.mortal, {"x": X, "marker": str(tmp_path / "marker")}))
    with ProcessExecutor(1) as executor:
        results = run_tasks(tasks, tmp_path, executor=executor)
        assert (tmp_path / "marker").exists()
        np.testing.assert_array_equal(results[2]["y"], 2 * X)
        np.testing.assert_array_equal(results[4]["y"], 3 * X)
        with pytest.raises(TaskError, match=r"deadly.*died in 2 of 2.*fewer workers"):
            run_tasks([Task("deadly", example.mortal, {"x": X, "marker": None})], tmp_path, executor=executor)


def test_only_a_few_cells_are_held_at_once(tmp_path):
    made, landed = [], []

    def endless():
        for i in range(40):
            made.append(i)
            assert len(made) - len(landed) <= 2 * 2 + 1
            yield scaled(f"c{i}", float(i))

    with ThreadPoolExecutor(2) as executor:
        run_tasks(endless(), tmp_path, executor=executor, progress=lambda stage, done, total: landed.append(done))
    assert len(made) == 40


def test_progress_counts_cells_that_are_read_too(tmp_path):
    calls = []
    tasks = [scaled(f"c{i}", float(i)) for i in range(3)]
    for _ in range(2):
        run_tasks(tasks, tmp_path, progress=lambda *call: calls.append(call), stage="here")
    assert calls == 2 * [("here", done, 3) for done in range(4)]


def test_open_executor_takes_as_many_as_it_is_told():
    with open_executor(1) as executor:
        assert isinstance(executor, SerialExecutor) and worker_count(executor) == 1
    with open_executor(3) as executor:
        assert isinstance(executor, ProcessExecutor) and worker_count(executor) == 3
    with ThreadPoolExecutor(5) as threads:
        assert worker_count(threads) == 5
    with pytest.raises(ValueError, match="workers=0 is too small"), open_executor(0):
        pass
    with pytest.raises(ValueError, match="leave out one"), open_executor(2, cluster="tcp://host:1"):
        pass


def test_the_archive_is_not_compressed(tmp_path):
    """Compressed bytes would depend on the machine's zlib."""
    run_tasks([scaled()], tmp_path)
    with zipfile.ZipFile(scaled().path(tmp_path)) as archive:
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}


WORKING = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background may have had it ignored
from pipeline import example_tasks as example
from psmt.pipeline.executors import open_executor
from psmt.pipeline.tasks import Task, run_tasks
tasks = [Task(f"slow-{i}", example.sleepy, {"seconds": 60.0 + i, "marks": sys.argv[1]}) for i in range(5)]
try:
    with open_executor(2) as executor:
        run_tasks(tasks, sys.argv[1], executor=executor)
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_workers_end_with_their_parent(tmp_path, name):
    process = subprocess.Popen(
        [sys.executable, "-c", WORKING, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": ""},  # without pgrep
        stderr=subprocess.PIPE,
        text=True,
    )

    def until(condition):
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.05)

    until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    workers = [int(path.stem) for path in tmp_path.glob("*.pid")]
    process.send_signal(getattr(signal, name))
    begin = time.monotonic()
    # Workers have the pipe too: it ends with the last of them.
    _, errors = process.communicate(timeout=10)
    assert time.monotonic() - begin < 5
    assert errors == ("interrupted\n" if name == "SIGINT" else "")
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
