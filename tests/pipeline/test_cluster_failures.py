"""Clusters that fail: a real scheduler and its workers on this machine, killed in the middle."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from pipeline import example_tasks as example
from psmt.pipeline import executors
from psmt.pipeline.executors import open_executor
from psmt.pipeline.tasks import Task, TaskError, run_tasks

pytest.importorskip("distributed")


class Cluster:
    """A scheduler and workers, processes of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        self.scheduler = self.start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = self.told(self.scheduler, "Scheduler at:").split()[-1]
        self.workers = []

    def start(self, module, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def told(self, process, words):
        for line in process.stderr:
            if words in line:
                # Somebody has to go on reading, or the process would wait for it.
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return line
        raise AssertionError(f"a process of the cluster never said {words!r}")

    def add_worker(self, *options):
        arguments = (self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder))
        worker = self.start("dask_worker", *arguments, *options)
        self.told(worker, "Registered to:")
        self.workers.append(worker)
        return worker


@contextmanager
def running(folder, *, workers=1):
    made = Cluster(folder)
    try:
        for _ in range(workers):
            made.add_worker("--no-nanny")
        yield made
    finally:
        for process in made.processes:
            process.kill()
            process.wait()


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(executors, "_WATCH_SECONDS", 0.1)
    monkeypatch.setattr(executors, "_SILENT_SECONDS", 6.0)
    monkeypatch.setattr(executors, "_WORKER_SECONDS", 5.0)
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 2.0)


def quick_then_slow(log):
    quick = [Task(f"quick-{i}", example.counted, {"x": np.arange(i + 1.0), "log": str(log)}) for i in range(3)]
    return [*quick, Task("slow", example.sleepy, {"seconds": 120.0})]


def fails_with(sentence, made, folder, kill, *, within):
    """Run tasks of which three end, kill something, and see what is told, and when; the finished ones are kept."""
    log, killed = folder / "log", []

    def watch(_stage, done, _total):
        if done == 3 and not killed:
            killed.append(time.monotonic())
            kill()

    with pytest.raises(TaskError, match=sentence), open_executor(cluster=made.address) as executor:
        run_tasks(quick_then_slow(log), folder, executor=executor, progress=watch)
    assert killed
    assert time.monotonic() - killed[0] < within
    lines = log.read_text()
    assert run_tasks(quick_then_slow(log)[:3], folder)[2]["y"].tolist() == [0, 2, 4]
    assert log.read_text() == lines


@pytest.mark.slow
def test_a_scheduler_that_is_killed(tmp_path, hasty):
    with running(tmp_path) as made:
        fails_with(
            "slow failed .ClusterError: the Dask scheduler.* is gone", made, tmp_path, made.scheduler.kill, within=30
        )


@pytest.mark.slow
def test_a_scheduler_that_hangs(tmp_path):
    with running(tmp_path) as made:

        def stop():
            made.scheduler.send_signal(signal.SIGSTOP)

        fails_with("does not answer any more", made, tmp_path, stop, within=30)


@pytest.mark.slow
def test_all_workers_are_killed(tmp_path, hasty):
    with running(tmp_path, workers=2) as made:

        def kill():
            for worker in made.workers:
                worker.kill()

        fails_with("has had no worker for 5 s", made, tmp_path, kill, within=30)


@pytest.mark.slow
def test_a_task_that_every_worker_dies_of(tmp_path):
    with running(tmp_path, workers=0) as made:
        made.add_worker("--nanny")
        begin = time.monotonic()
        with (
            pytest.raises(TaskError, match=r"deadly failed .ClusterError: its worker died 3 times"),
            open_executor(cluster=made.address) as executor,
        ):
            run_tasks([Task("deadly", example.mortal, {"x": 1.0, "marker": None})], tmp_path, executor=executor)
        # Most of it is three starts of a worker.
        assert time.monotonic() - begin < 120


INTERRUPTED = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background may have had it ignored
from pathlib import Path
from pipeline import example_tasks as example
from psmt.pipeline.executors import open_executor
from psmt.pipeline.tasks import Task, run_tasks
try:
    with open_executor(cluster=sys.argv[1]) as executor:
        print("ready", flush=True)
        run_tasks([Task("slow", example.sleepy, {"seconds": 120.0})], Path(sys.argv[2]), executor=executor)
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("gone", [False, True])
def test_ctrl_c_is_quick_and_clean(tmp_path, gone):
    with running(tmp_path) as made:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, made.address, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(2)
        if gone:
            made.scheduler.kill()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert errors == "interrupted\n"
