"""A real Dask cluster of two worker processes on this machine."""

import os
import signal
import socket
import subprocess
import sys
import time

import distributed
import numpy as np
import pytest

from pipeline import example_tasks as example
from psmt import read_patches
from psmt.experiments.sweep.run import sweep
from psmt.experiments.sweep.settings import SweepSettings
from psmt.pipeline import executors
from psmt.pipeline.executors import ClusterError, open_executor, worker_count
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, TaskError, run_tasks


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path, cluster):
    patches = read_patches("builtin:glide?frames=60&noise=0.2&size=48", frame_size=48, patch_size=4).values
    settings = SweepSettings(n_atoms=(8, 12), max_epochs=1, alpha=0.3)
    alone = sweep(patches, settings, Run(folder=tmp_path / "serial"))

    killed = []

    def kill(stage, done, total):
        if stage == "sweep: windows" and done == 3 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    with open_executor(cluster=cluster.scheduler_address) as executor:
        assert worker_count(executor) == 2
        result = sweep(patches, settings, Run(folder=tmp_path / "cluster", executor=executor, progress=kill))
    assert list(result.rows()) == list(alone.rows())
    assert killed
    assert contents(tmp_path / "cluster") == contents(tmp_path / "serial")


@pytest.mark.slow
def test_cells_on_a_cluster_may_be_large_and_have_one_thread(tmp_path, cluster, recwarn):
    x = np.zeros(2_000_000)
    tasks = [Task("large", example.careless, {"x": x}), Task("threads", example.threads, {})]
    with open_executor(cluster=cluster.scheduler_address) as executor:
        large, threads = run_tasks(tasks, tmp_path, executor=executor)
    assert large["y"].sum() == x.size
    assert (threads["blas"], threads["numba"]) == (1, 1)
    assert not [warning for warning in recwarn if "large graph" in str(warning.message)]


def test_cells_are_carried_out_and_one_that_fails_is_named(tmp_path):
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as here,
        open_executor(cluster=here.scheduler_address) as executor,
    ):
        (threads,) = run_tasks([Task("threads", example.threads, {})], tmp_path, executor=executor)
        assert threads["blas"] == 1
        with pytest.raises(TaskError, match=r"bad-one.*ArithmeticError: no 7"):
            run_tasks([Task("bad-one", example.failing, {"x": 7})], tmp_path, executor=executor)


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0.5)
    begin = time.monotonic()
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        with pytest.raises(ClusterError, match=f"no Dask scheduler answers.*{address}"), open_executor(cluster=address):
            pass
    assert time.monotonic() - begin < 10


@pytest.mark.slow
def test_an_address_that_is_none_leaves_no_client_behind():
    """Dask's finalizer would wait for such a client at the end of the process, and print a traceback."""
    code = """
import sys
from psmt.pipeline import executors
executors._CONNECT_SECONDS = 0.5
for address in sys.argv[1:]:
    try:
        with executors.open_executor(cluster=address):
            pass
    except executors.ClusterError as error:
        print(error)
"""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never says a word
        addresses = ["x y", "tls://127.0.0.1:9", "tcp://[::1", f"tcp://127.0.0.1:{silent.getsockname()[1]}"]
        command = [sys.executable, "-c", code, *addresses]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [line[:25] for line in done.stdout.splitlines()] == 4 * ["no Dask scheduler answers"]
    assert not done.stderr


def test_a_scheduler_without_workers(monkeypatch):
    monkeypatch.setattr(executors, "_WORKER_SECONDS", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", processes=True) as empty,
        pytest.raises(ClusterError, match=r"dask worker tcp://.* --nthreads 1"),
        open_executor(cluster=empty.scheduler_address),
    ):
        pass


def test_the_extra_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"psmt\[cluster\]"), open_executor(cluster="tcp://127.0.0.1:9"):
        pass
