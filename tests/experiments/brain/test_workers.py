"""Where a study runs changes nothing: in this process, in two, or on a Dask cluster."""

import pytest

from psmt.data.readers.scans import Parcels
from psmt.experiments.brain.exports import TABLES
from psmt.experiments.brain.run import study_brains
from psmt.experiments.brain.settings import BrainSettings
from psmt.experiments.brain.subjects import find_people, read_study
from psmt.experiments.film_report import to_json
from psmt.pipeline.executors import open_executor
from psmt.pipeline.run import Run

SETTINGS = BrainSettings(n_atoms=4, n_components=2, n_states=2, window=24, horizon=2, swc_seconds=20.0)


def found(folder, executor=None):
    """All numbers of a tiny study, and all files of its tasks."""
    study = read_study(find_people(["builtin:bold?subjects=2&frames=60&regions=6&networks=3&states=2"]), Parcels())
    result = study_brains(study, SETTINGS, Run(folder=folder, executor=executor))
    rows = [b"".join(table.content(result) or ()) for table in TABLES]
    return to_json(result.summary()), rows, {path.name: path.read_bytes() for path in (folder / "tasks").iterdir()}


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    return found(tmp_path_factory.mktemp("serial"))


@pytest.mark.slow
def test_two_workers_give_the_same(serial, tmp_path):
    with open_executor(workers=2) as executor:
        assert found(tmp_path, executor) == serial


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same(serial, tmp_path):
    distributed = pytest.importorskip("distributed")
    local = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**local, dashboard_address=":0", silence_logs=50) as cluster,
        open_executor(cluster=cluster.scheduler_address) as executor,
    ):
        assert found(tmp_path, executor) == serial
