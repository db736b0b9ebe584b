"""A run: tasks in its folder, told to its listener under its name."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from pipeline import example_tasks as example
from psmt.pipeline.executors import SerialExecutor
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task


@pytest.fixture
def task(tmp_path):
    (tmp_path / "log").touch()
    return Task("a", example.counted, {"x": np.arange(3.0), "log": str(tmp_path / "log")})


def test_tasks_are_computed_once_and_kept_in_its_folder(tmp_path, task):
    run = Run(folder=tmp_path / "out")
    for _ in range(2):
        (result,) = run.tasks([task], "stage")
        np.testing.assert_array_equal(result["y"], [0.0, 2.0, 4.0])
    assert task.path(tmp_path / "out").exists()
    assert (tmp_path / "log").read_text() == "computed\n"


def test_its_name_stands_before_each_stage(tmp_path, task):
    heard = []
    run = Run(folder=tmp_path, progress=lambda *call: heard.append(call))
    run.tasks([task], "codes")
    replace(run, name="sweep").tasks([task], "codes")
    assert heard == [("codes", 0, 1), ("codes", 1, 1), ("sweep: codes", 0, 1), ("sweep: codes", 1, 1)]


def test_its_executor_computes(tmp_path, task):
    class Seen(SerialExecutor):
        submitted = 0

        def submit(self, fn, /, *args, **kwargs):
            self.submitted += 1
            return super().submit(fn, *args, **kwargs)

    executor = Seen()
    Run(folder=tmp_path, executor=executor).tasks([task], "stage")
    assert executor.submitted == 1


def test_it_is_handed_on_and_never_changed(tmp_path):
    with pytest.raises(FrozenInstanceError):
        Run(folder=tmp_path).name = "other"
